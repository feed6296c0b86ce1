"""Placing: waiting pods in the order of their priority, each class on the nodes that it fits best."""
