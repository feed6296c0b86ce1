"""Random: any node that fits, edge or cloud, by lot.

The lot depends on the pod and on where all others are, so that the same run draws the same lots again, and another
run others.
"""

from __future__ import annotations

from random import Random

import numpy as np

from htas.experiments.baselines.draft import Draft
from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.model.stages import Stage


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    draft = Draft(snapshot, policy, now)
    others = " ".join(f"{pod.key}={pod.node}" for pod in snapshot.cluster.pods)
    for pod in draft.waiting:
        fitting = np.flatnonzero(draft.sim.feasible(draft.book.class_of(pod)) & draft.there)
        if len(fitting):
            draft.put(pod, Random(f"{pod.key} {others}").choice(fitting.tolist()))
        else:
            draft.leave([pod])
    return draft.written(Memory())
