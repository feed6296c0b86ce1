"""The laboratory: HTAS and its baselines on the same work, and the bills compared. Not part of the wheel."""
