"""The optimiser's search: the best placement of what there is, solved stage by stage within a budget of steps."""
