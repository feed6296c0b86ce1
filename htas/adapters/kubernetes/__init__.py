"""Kubernetes at the edge: its JSON decoded with msgspec and translated into the model. Decides nothing."""
