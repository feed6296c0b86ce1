"""The edge tier: which pods run near their users (KubeDSM 4 and 5). docs/edge.md states the model.

These modules know nothing but an `EdgeState`: `place/edge_view` and `place/edge_present` make one of the simulation and
of a cluster, `place/near_users` and `disrupt/edge` have decisions on it carried into the plan. `new_pods` places what
is new without moving anything; `suggesting` moves a few pods now and then. Both ask `making_room`, which has `matching`
seat them, and the integer `program` for what is too much for searches over subsets; `search` is what all of them know.
`tools/bench/edge_reference.py` is the yardstick.
"""
