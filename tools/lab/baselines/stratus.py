"""Stratus: tasks that end together share a machine, machines by cost efficiency, and under-used ones are cleared.

Source: A. Chung, J. W. Park and G. R. Ganger, "Stratus: Cost-Aware Container Scheduling in the Public Cloud" (SoCC
2018), in the cycles of the HTAS paper (Table 6). Run lengths fall into bins that double in width; a machine's bin is
that of its longest task, and a service's is the last. A task goes to a machine of its own bin, the one that ends
closest to it; else to greater bins upwards, then to lesser ones downwards, there to the machine with the most left
(HTAS paper 6.3 calls it LRP). Machines are bought bin by bin from the last downwards: of each flavour one filled with
the longest tasks, the one with the best score nc ÷ price; room left on it is filled from lesser bins. A machine at
most half used for five minutes is cleared by moving its tasks with their progress; where they have no room a cheaper
machine is bought for them. An empty machine goes at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from htas.model.flavours import Catalogue
from htas.model.moves import MigrationMethod
from htas.model.plan import Plan
from htas.model.pods import Pod, WorkKind
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.model.stages import Stage
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Bools, Ints, PodClass
from htas.planning.cluster.run_length import remaining_s
from htas.planning.cluster.simulation import Simulation
from htas.planning.provision.cost_efficiency import Unit
from htas.planning.provision.offers import Offer
from tools.lab.baselines.default_kubernetes import PAPERS_CYCLES
from tools.lab.baselines.draft import Draft, fits_together
from tools.lab.baselines.emptying import Emptying, Occupied

THRESHOLD = 0.5
UNDERUSED_S = 300.0
REPLACEMENT_PAYS_S = 300.0
"""A replacement is bought for work that goes on for so long: a machine takes minutes to come."""
LAST_BIN = 64
_BEYOND = 1 << 20


def settings(catalogue: Catalogue) -> Policy:
    """The paper's cycles (Table 6); tasks are moved with their progress."""
    group = NodeGroup("machines", cleaning=CleaningRules(migration=MigrationMethod.CHECKPOINT))
    return Policy("stratus", catalogue, (group,), cycles=PAPERS_CYCLES)


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    draft = Draft(snapshot, policy, now)
    order = RunLengthBins({row for row, pods in draft.opening.running.items() if any(map(_is_service, pods))})
    waiting = sorted(draft.waiting, key=lambda pod: (-draft.book.class_of(pod).run_length_s, pod.created_at, pod.key))
    left = _place(draft, waiting, draft.there, order)
    left = _place(draft, left, draft.coming, order)
    is_buying = Stage.AUTOSCALING in stages
    if is_buying:
        left = _buy(draft, left)
    draft.leave(left)
    memory = _clear(draft, order, may_buy=is_buying) if Stage.CLEANING in stages else snapshot.memory
    return draft.written(memory)


def bin_of(seconds: float) -> int:
    """Bins double: 0 s is in bin 0, 1 s in 1, 2 s and 3 s in 2, 240 s in 8; what never ends is in the last."""
    return LAST_BIN if math.isinf(seconds) else int(seconds).bit_length()


@dataclass(slots=True)
class RunLengthBins:
    """Own bin by closest end, then greater bins upwards and lesser ones downwards by the most left.

    `forever` are rows with services.
    """

    forever: set[int] = field(default_factory=set)
    is_stable: bool = False

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        own, length = bin_of(cls.run_length_s), cls.run_length_s
        ranks, seconds = [], []
        for row in rows.tolist():
            left = math.inf if row in self.forever else max(0.0, float(sim.table.run_until[row]) - sim.now)
            bin_ = bin_of(left)
            ranks.append(bin_ - own if bin_ >= own else _BEYOND + own - bin_)
            seconds.append(0 if bin_ != own or left == length else int(abs(left - length)))
        table = sim.table
        share = table.free[:2, rows] * 1000 // np.maximum(table.allocatable[:2, rows], 1)
        return np.array(ranks), np.array(seconds), -share.sum(axis=0)


def _is_service(pod: Pod) -> bool:
    return pod.kind is WorkKind.SERVICE and not pod.is_daemon


def _place(draft: Draft, pods: Iterable[Pod], rows: Bools, order: RunLengthBins) -> list[Pod]:
    left = []
    for pod in pods:
        row = draft.best_row(draft.book.class_of(pod), rows, order)
        if row is None:
            left.append(pod)
            continue
        draft.put(pod, row)
        if _is_service(pod):
            order.forever.add(row)
    return left


def _buy(draft: Draft, pods: Sequence[Pod]) -> list[Pod]:
    """Buy for pods, longest first, until all have a machine or nothing may be bought; returns those left."""
    unit, left, hopeless = Unit.of(draft.policy.catalogue), list(pods), list[Pod]()
    while left:
        last = bin_of(draft.book.class_of(left[0]).run_length_s)
        bin_ = [pod for pod in left if bin_of(draft.book.class_of(pod).run_length_s) == last]
        filled = [(offer, fits_together(draft, offer, bin_)) for offer in draft.offers if draft.may_buy(offer)]
        offer, held = max(
            filled, key=lambda item: _efficiency(draft, item[0], item[1], unit), default=(None, list[Pod]())
        )
        if offer is None or not held:
            hopeless += bin_
        else:
            held = fits_together(draft, offer, [*held, *(pod for pod in left if pod not in held)])
            draft.buy(offer, held)
        gone = {pod.key for pod in (held or bin_)}
        left = [pod for pod in left if pod.key not in gone]
    return hopeless


def _efficiency(draft: Draft, offer: Offer, pods: Sequence[Pod], unit: Unit) -> float:
    """Resources put to use per unit of price, CPU and memory alike (HTAS paper 3.1.2 (3))."""
    used = sum((draft.book.class_of(pod).requests for pod in pods), np.zeros_like(offer.free))
    usage = 0.5 * int(used[CPU_ROW]) / unit.cpu_m + 0.5 * int(used[MEMORY_ROW]) / unit.memory_bytes
    return usage / offer.price if offer.price else math.inf


def _clear(draft: Draft, order: RunLengthBins, *, may_buy: bool) -> Memory:
    """Give back empty machines, and those under-used for long enough; returns since when they are."""
    emptying, before = Emptying(draft), draft.snapshot.memory.underutilized_since
    nodes = emptying.nodes()
    low = [each for each in nodes if each.utilization <= THRESHOLD]
    since = {each.node.name: before.get(each.node.name, draft.now) for each in low}
    for each in sorted(low, key=lambda each: (not each.is_empty, each.utilization, each.node.name)):
        if each.node.name in emptying.receiving:
            continue
        if not each.is_empty and (draft.waiting or draft.now - since[each.node.name] < UNDERUSED_S):
            continue
        if not emptying.empty(each, order) and may_buy:
            _replace(draft, emptying, each, order)
    return Memory(underutilized_since=since)


def _replace(draft: Draft, emptying: Emptying, source: Occupied, order: RunLengthBins) -> None:
    """Buy the cheapest machine that holds what an under-used one runs, unless one is on its way that would do."""
    pods = emptying.movable(source)
    if not pods or max(remaining_s(pod, draft.policy, draft.now) for pod in pods) < REPLACEMENT_PAYS_S:
        return
    rows = emptying.targets([source]) | draft.coming
    with draft.sim.fork():
        if emptying.rehouse(source, order, rows):
            return
    for offer in draft.offers:
        if offer.price < source.price and draft.may_buy(offer) and len(fits_together(draft, offer, pods)) == len(pods):
            draft.buy(offer, why=f"replaces {source.node.name}")
            return
