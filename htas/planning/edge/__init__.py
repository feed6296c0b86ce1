"""The edge tier: which pods run near their users (KubeDSM 4 and 5). docs/edge.md states the model.

Four modules know pods and policies: `view` and `present` make an `EdgeState` of the simulation and of a cluster,
`placing_near` and `moving` (with `movers`) have decisions on it carried into the plan. All others know nothing but the
state. `immediate` places what is new without moving anything; `suggesting` moves a few pods now and then; both ask
`deciding`. `best_fit` makes room, `matching` seats, `beyond` and `improving` do with the integer `program` what is too
much for searches over subsets. `reference` is the yardstick of tests and of `tools.bench.edge`.
"""
