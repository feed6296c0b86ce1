"""What a release consists of, made here as the workflow makes it: `make release`. Nothing is published."""
