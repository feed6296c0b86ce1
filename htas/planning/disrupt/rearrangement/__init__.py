"""Rearrangements: what the optimiser decided is carried out over many cycles, slot by slot, or given up as a whole."""
