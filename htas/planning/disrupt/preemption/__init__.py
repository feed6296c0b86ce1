"""Default preemption: room for one pod where only pods of lower priority are in its way.

Source: kube-scheduler v1.36, plugins/defaultpreemption/default_preemption.go and framework/preemption/preemption.go.
What differs is told in docs/algorithms.md, "Preempting".
"""
