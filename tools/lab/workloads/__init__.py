"""Workloads of experiments: the paper's patterns, and tables of one's own."""
