"""The operator's seat: the HTTP API under /api/v1 and the pages at /, on what a daemon, a dump or the demo shows."""
