"""The sandbox's own workloads: a day of mixed work, and a real trace."""
