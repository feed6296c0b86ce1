"""Whether a pod may leave its node, for whom, and how: drain rules, budgets, promises, moves, how many of a service."""
