"""The edge tier's evaluation (KubeDSM 6): three edge nodes, one cloud node, four services under changing load."""
