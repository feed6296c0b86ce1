"""Whether there is hope for what waits: only work that somebody may yet have room for holds back emptying."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from htas.planning.preemption.preemptor import could_hold
from htas.planning.scaling.cost_efficiency import Demand
from htas.planning.scaling.offers import offers_of
from htas.planning.situation import Situation


def is_there_hope(situation: Situation, demands: Sequence[Demand]) -> bool:
    """Whether some node would take a pod of some demand if it were empty, or some machine on offer would.

    A pod of 64 cores where the largest machine has 32 waits for ever, and so does one with a selector that no node and
    no flavour meets: were they counted as a queue, one such pod would keep every half-empty node of the cluster.
    Whether a limit or a quota allows a machine is not asked: that may change at any time.
    """
    sim = situation.opening.sim
    every_row = np.ones(len(sim.table), dtype=np.bool_)
    if any(could_hold(sim, demand.cls, every_row).any() for demand in demands):
        return True
    if not demands:
        return False
    offers = offers_of(sim, situation.policy, situation.snapshot, [demand.cls for demand in demands])
    return any(offer.could_hold(demand.cls) for demand in demands for offer in offers)
