"""Simulated machines in a real cluster, for trials: KWOK plays the kubelets."""
