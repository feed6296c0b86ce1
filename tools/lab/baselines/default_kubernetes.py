"""Default Kubernetes as the HTAS paper compares itself with: kube-scheduler and the Cluster Autoscaler of its day.

Source: HTAS paper 2.1.2, 2.1.3 and Table 5. Pods go to the node with the lowest utilisation, at once; where they fit
none, one machine of the one flavour (m1.medium, the workers' own) is bought in an autoscaling cycle; nodes at or
below half use are emptied by eviction after Cluster Autoscaler's ten minutes. kube-scheduler draws lots among equal
nodes; here the first is taken. The cluster starts with its two workers and keeps at least one of them.
"""

from __future__ import annotations

import math

from htas.model.flavours import Catalogue, Flavour
from htas.model.plan import Plan
from htas.model.policy import Cycles, NodeGroup, Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import Stage
from htas.planning.place.placing import Order
from tools.lab.baselines.draft import Draft
from tools.lab.baselines.orders import LEAST_REQUESTED
from tools.lab.baselines.scale_down import scale_down

PAPERS_CYCLES = Cycles(scheduling_s=20.0, autoscaling_s=300.0, cleaning_s=20.0)
"""Table 6: what the paper's own baselines run in."""
FLAVOUR = "m1.medium"
CORES_M, MEMORY_BYTES = 2000, 8 * 2**30
"""Table 7's m1.medium; of another price list the flavour that is most like it is taken."""
WORKERS_AT_FIRST, WORKERS_AT_LEAST = 2, 1
"""Table 5's two; that one of them may go when there is no work is ours, and in favour of this baseline."""


def settings(catalogue: Catalogue) -> Policy:
    """Pods are placed as they come; buying has the paper's cycle, cleaning that of its scheduling."""
    group = NodeGroup("workers", flavours=(flavour_of(catalogue),), min_nodes=WORKERS_AT_LEAST)
    return Policy("default-kubernetes", catalogue, (group,), cycles=PAPERS_CYCLES)


def flavour_of(catalogue: Catalogue) -> str:
    """Table 5's flavour of workers, or the one whose cores and memory are nearest to its, in factors."""
    if catalogue.named(FLAVOUR) is not None:
        return FLAVOUR

    def unlike(flavour: Flavour) -> tuple[float, str]:
        cores, memory = max(flavour.capacity.cpu_m, 1), max(flavour.capacity.memory_bytes, 1)
        return abs(math.log(cores / CORES_M)) + abs(math.log(memory / MEMORY_BYTES)), flavour.name

    return min(catalogue.flavours, key=unlike).name


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    draft = Draft(snapshot, policy, now)
    is_short = place_and_buy_one(draft, LEAST_REQUESTED, is_due=Stage.AUTOSCALING in stages)
    memory = scale_down(draft, is_due=Stage.CLEANING in stages and not is_short, min_nodes=WORKERS_AT_LEAST)
    return draft.written(memory)


def place_and_buy_one(draft: Draft, order: Order, *, is_due: bool) -> bool:
    """Place what waits; buy one machine if there is need. Returns whether pods waited that nothing on its way holds."""
    left = draft.place(draft.waiting, draft.there, order)
    short = draft.place(left, draft.coming, order)
    offer = draft.offers[0] if is_due and (short or draft.is_first) else None
    for _ in range(WORKERS_AT_FIRST if draft.is_first else 1):
        if offer is not None and draft.may_buy(offer):
            draft.buy(offer)
    still_short = draft.place(short, draft.coming, order)
    draft.leave(still_short)
    return bool(short)
