"""Moving services to the edge: which pods may, where to, in which order, and why others stay."""
