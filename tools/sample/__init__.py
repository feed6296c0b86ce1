"""A cluster as people run them, as `kubectl get … -o json` prints it: for trying `htas simulate`, and for its tests."""
