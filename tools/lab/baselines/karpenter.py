"""A Karpenter-like autoscaler: one largest-possible claim grown by first-fit decreasing, and consolidation to one.

Source: Karpenter 1.14, provisioning/scheduling (queue.go, scheduler.go, nodeclaim.go) and disruption (emptiness.go,
multinodeconsolidation.go, singlenodeconsolidation.go, consolidation.go) with its defaults: consolidateAfter 0s, a
budget of a tenth of the nodes, rounded up. kube-scheduler binds. Pods without room, the most CPU first, go to
machines on their way (those with the fewest pods first), then to claims being drafted, each of which keeps the
flavours that still hold all it was given; in the end each takes the cheapest of them.

Consolidation, every ten seconds: empty nodes go; else the longest run of nodes, the least disruptive first, whose
pods have room elsewhere or on one cheaper machine, found by bisection; else a single node. More than one replacement
is refused. A replacement is bought first, and the nodes go when a later look finds room on it. Pods are evicted, jobs
start again. Karpenter's 15 s of validation before it acts are left out, and its batching window is kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from htas.model.flavours import Catalogue
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Cycles, NodeGroup, Policy
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.model.stages import Stage
from htas.planning.cluster.classes import Ints, PodClass
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.simulation import Simulation
from htas.planning.provision.offers import Offer
from tools.lab.baselines.draft import Draft
from tools.lab.baselines.emptying import Emptying, Occupied
from tools.lab.baselines.orders import LEAST_REQUESTED, FirstFit

BUDGET = 0.1
MOST_AT_ONCE = 100
"""Nodes looked at together by multi-node consolidation."""
SETTLES_S = 30.0
"""A node Ready for less is left alone: pods nominated to it are about to be bound."""


def settings(catalogue: Catalogue) -> Policy:
    """Batching 1 s idle and 10 s at most; disruption is looked at every ten seconds."""
    cycles = Cycles(scheduling_s=20.0, autoscaling_s=10.0, cleaning_s=10.0, batch_idle_s=1.0, batch_max_s=10.0)
    return Policy("karpenter", catalogue, (NodeGroup("default"),), cycles=cycles)


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    draft = Draft(snapshot, policy, now)
    left = draft.place(draft.waiting, draft.there, LEAST_REQUESTED)
    left.sort(key=_decreasing)
    left = draft.place(left, draft.coming, FewestPods(_pods_by_row(draft)))
    if left and Stage.AUTOSCALING in stages:
        claims, left = grown(draft, left)
        for claim in claims:
            draft.buy(claim.cheapest, claim.pods)
    draft.leave(left)
    if Stage.CLEANING in stages and not left:
        _consolidate(draft)
    return draft.written(Memory())


def _decreasing(pod: Pod) -> tuple[object, ...]:
    return -pod.requests.cpu_m, -pod.requests.memory_bytes, pod.created_at, pod.key


def _pods_by_row(draft: Draft) -> Counter[int]:
    return Counter({row: len(pods) for row, pods in draft.opening.running.items()})


@dataclass(frozen=True, slots=True)
class FewestPods:
    """Machines on their way in Karpenter's order, by the pods given to them in earlier plans."""

    pods: Counter[int]
    is_stable: bool = True

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        return (np.array([self.pods[row] for row in rows.tolist()]),)


@dataclass(slots=True)
class Growing:
    """A claim being drafted: its pods, what they ask for together, and the flavours that still hold them, by price."""

    offers: list[Offer]
    used: Ints
    pods: list[Pod] = field(default_factory=list)

    @property
    def cheapest(self) -> Offer:
        return self.offers[0]

    def takes(self, pod: Pod, cls: PodClass) -> bool:
        """Take a pod if some flavour holds it too."""
        if cls.most_per_node is not None and any(other.labels == pod.labels for other in self.pods):
            return False
        still = [o for o in self.offers if o.would_take(cls) and fits((o.free - self.used)[:, None], cls)[0]]
        if not still:
            return False
        self.offers, self.used = still, self.used + cls.requests
        self.pods.append(pod)
        return True


def grown(draft: Draft, pods: Sequence[Pod]) -> tuple[list[Growing], list[Pod]]:
    """Claims for pods, in Karpenter's order, and the pods that no flavour holds."""
    offers = [offer for offer in draft.offers if draft.may_buy(offer)]
    claims: list[Growing] = []
    hopeless = []
    for pod in sorted(pods, key=_decreasing):
        cls = draft.book.class_of(pod)
        if any(claim.takes(pod, cls) for claim in sorted(claims, key=lambda claim: len(claim.pods))):
            continue
        claim = Growing(offers, np.zeros(len(draft.sim.table.axis), dtype=np.int64))
        if claim.takes(pod, cls):
            claims.append(claim)
        else:
            hopeless.append(pod)
    return claims, hopeless


def _consolidate(draft: Draft) -> None:
    """Carry out the first of Karpenter's methods that finds something to do."""
    emptying = Emptying(draft)
    nodes = [each for each in emptying.nodes() if draft.now - each.claim.since >= SETTLES_S]
    budget = math.ceil(BUDGET * len(draft.snapshot.cluster.nodes)) - len(draft.snapshot.drains)
    empty = [each for each in nodes if each.is_empty]
    if empty:
        for each in empty[: max(0, budget)]:
            emptying.empty(each, FirstFit())
        return
    candidates = sorted(nodes, key=lambda each: (len(each.pods), -each.price, each.node.name))[: max(0, budget)]
    command = _multi_node(draft, emptying, candidates[:MOST_AT_ONCE]) or _single_node(draft, emptying, nodes, budget)
    if command is None:
        return
    if command.replacement is not None:
        draft.buy(command.replacement, why="replaces " + ", ".join(each.node.name for each in command.nodes))
        return
    for each in command.nodes:
        emptying.empty(each, FirstFit())


@dataclass(frozen=True, slots=True)
class Command:
    """Nodes that can go, once the replacement is there if one is needed."""

    nodes: Sequence[Occupied]
    replacement: Offer | None = None


def _multi_node(draft: Draft, emptying: Emptying, candidates: Sequence[Occupied]) -> Command | None:
    """The most of the first candidates that can go together, by bisection; at least two."""
    best, low, high = None, 2, len(candidates)
    while low <= high:
        middle = (low + high) // 2
        command = _consolidation(draft, emptying, candidates[:middle])
        if command is None:
            high = middle - 1
        else:
            best, low = command, middle + 1
    return best


def _single_node(draft: Draft, emptying: Emptying, nodes: Sequence[Occupied], budget: int) -> Command | None:
    if budget < 1:
        return None
    for each in sorted(nodes, key=lambda each: (len(each.pods), -each.price, each.node.name)):
        command = _consolidation(draft, emptying, [each])
        if command is not None:
            return command
    return None


def _consolidation(draft: Draft, emptying: Emptying, nodes: Sequence[Occupied]) -> Command | None:
    """What giving back some nodes together takes: nothing, or one machine that is cheaper than they are together.

    While a machine is on its way that would hold their pods nothing is done: it may be their replacement.
    """
    left, rows = list[Pod](), emptying.targets(nodes)
    if any(each.node.name in emptying.receiving for each in nodes):
        return None
    with draft.sim.fork():
        for each in nodes:
            pods = emptying.movable(each)
            if pods is None:
                return None
            for pod in sorted(pods, key=_decreasing):
                cls = draft.book.class_of(pod)
                row = draft.best_row(cls, rows, FirstFit())
                if row is None:
                    left.append(pod)
                else:
                    draft.sim.place(cls, row)
        if not left:
            return Command(nodes)
        if any(draft.best_row(draft.book.class_of(pod), draft.coming, FirstFit()) is not None for pod in left):
            return None
        claims, hopeless = grown(draft, left)
    price = sum(each.price for each in nodes)
    if hopeless or len(claims) != 1 or claims[0].cheapest.price >= price:
        return None
    return Command(nodes, claims[0].cheapest)
