"""Inputs that nobody would write, for as long as one likes. Here, not in tests/: `make fuzz` runs without pytest."""
