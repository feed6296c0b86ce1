"""The cluster as planning sees it: nodes as columns, pods in classes, what fits where, and whose room is kept."""
