"""Solvers: searches over numbers. They know nothing of Kubernetes, and what they answer is replayed by who asked."""
