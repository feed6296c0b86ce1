"""Adapters: I/O behind the ports. They translate at the edge and decide nothing."""
