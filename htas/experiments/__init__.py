"""Experiments: workloads, and what they cost."""
