"""When cycles run, what one does, and which daemon leads."""
