"""The documents of the API that no command has: structs, worked out from a picture of the cluster."""
