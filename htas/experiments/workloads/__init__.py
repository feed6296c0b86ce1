"""Workloads for the sandbox."""
