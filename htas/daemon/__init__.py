"""The daemon: observes, plans, executes and records, when it is time to. The composition root."""
