"""COCA: best-fit scheduling, homogeneous scaling, and a rescheduler that compacts the cluster by eviction.

Source: M. A. Rodriguez and R. Buyya, "Containers Orchestration with Cost-Efficient Autoscaling in Cloud Computing
Environments" (2018), as the HTAS paper configured it (6.2): Cluster Autoscaler's purchases (one machine of the one
flavour in an autoscaling cycle), pods on the fullest node that holds them, memory before CPU, and a rescheduler that
evicts what runs on an under-used node (Table 6: at most half used) as soon as all of it has room elsewhere. Evicted
jobs start again. While work waits nothing is compacted, since it would take the room; that is ours, and in its
favour.
"""

from __future__ import annotations

from htas.model.flavours import Catalogue
from htas.model.plan import Plan
from htas.model.policy import NodeGroup, Policy
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.model.stages import Stage
from htas.planning.place.placing import BestFit
from tools.lab.baselines.default_kubernetes import PAPERS_CYCLES, WORKERS_AT_LEAST, flavour_of, place_and_buy_one
from tools.lab.baselines.draft import Draft
from tools.lab.baselines.emptying import Emptying

THRESHOLD = 0.5
"""Table 6."""


def settings(catalogue: Catalogue) -> Policy:
    """The paper's cycles (Table 6)."""
    group = NodeGroup("workers", flavours=(flavour_of(catalogue),), min_nodes=WORKERS_AT_LEAST)
    return Policy("coca", catalogue, (group,), cycles=PAPERS_CYCLES)


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    draft = Draft(snapshot, policy, now)
    is_short = place_and_buy_one(draft, BestFit(), is_due=Stage.AUTOSCALING in stages)
    work_waits = is_short or bool(draft.coming.any())
    if Stage.CLEANING in stages and not work_waits:
        compact(draft)
    return draft.written(Memory())


def compact(draft: Draft) -> None:
    """Empty under-used nodes, the least used first, as long as there is room and one worker is left."""
    emptying = Emptying(draft)
    left = len(draft.snapshot.cluster.nodes) - len(draft.snapshot.drains) - WORKERS_AT_LEAST
    for each in sorted(emptying.nodes(), key=lambda each: (not each.is_empty, each.utilization, each.node.name)):
        if left < 1:
            return
        if each.utilization <= THRESHOLD and each.node.name not in emptying.receiving:
            left -= emptying.empty(each, BestFit())
