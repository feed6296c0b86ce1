"""A store that is never in the way: a remote one behind a copy and a queue on the local disk."""
