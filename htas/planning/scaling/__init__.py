"""Autoscaling: which machines to buy for the work that does not fit (HTAS paper 5.2)."""
