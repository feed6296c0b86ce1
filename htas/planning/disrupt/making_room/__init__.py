"""Making room: a machine that is about to be bought is not, where moving a pod or two costs less than it does."""
