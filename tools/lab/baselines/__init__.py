"""Other autoscalers and schedulers, one a module: a policy (`settings`) and a planner (`plan`) in the place of HTAS's.

They ask the planning package what fits where, as HTAS does, and decide by themselves. The rest is shared: the same
daemon carries their plans out in the same sandbox, and the same ledger bills them. What a real one does between its
decisions (watching, binding, draining, waiting for machines) therefore takes as long as HTAS takes for it.
"""
