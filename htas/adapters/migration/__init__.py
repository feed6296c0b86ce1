"""Moves of running pods: the engine that takes each from state to state, and the methods that make its twin."""
