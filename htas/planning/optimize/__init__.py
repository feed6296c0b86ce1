"""The optimiser, and who is considered in a search."""
