"""The Resource Profiler: what nodes offered and held, what machines cost, what was done (HTAS paper 4.1)."""
