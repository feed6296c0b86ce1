"""The edge tier: which pods run near their users (KubeDSM 4 and 5). docs/edge.md states the model.

All but `stage` knows nothing of Kubernetes: it decides on an `EdgeState`. `immediate` places what is new without moving
anything; `suggesting` moves a few pods now and then; both ask `deciding`, and `reference` is what they are measured
against.
"""
