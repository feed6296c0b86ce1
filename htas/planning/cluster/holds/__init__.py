"""Room that is kept: the slots of a rearrangement under way."""
