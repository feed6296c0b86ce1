"""Configuration: the settings tree, its loader, and its translation into the policy."""
