"""A cluster as people run them: what `kubectl get … -o json` prints of it, for trying `htas simulate` and for its tests."""
