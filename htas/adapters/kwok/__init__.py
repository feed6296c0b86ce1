"""Simulated machines and moves in a real cluster, for trials: KWOK plays the kubelets."""
