"""The instance cleaner: which machines to empty and give back (HTAS paper 4.4, 5.3)."""
