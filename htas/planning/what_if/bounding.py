"""The least that a cluster's work can cost, whatever is bought: beside what stays, on the flavours that may take it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from htas.model.flavours import Flavour
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.planning.cluster.classes import Ints, PodClass, ResourceAxis
from htas.planning.cluster.simulated import SimulatedCluster, open_simulation
from htas.planning.provision.bound import lower_bound_nanos
from htas.planning.provision.offers import Offer, offers_of
from htas.planning.what_if.adopting import AdoptedCluster

MOST_KINDS = 12
"""Kinds of work told apart; the rest count as one that may use what any of them may, which only lowers the bound."""
Admitting = tuple[frozenset[int], frozenset[int]]
"""The flavours, by their place, that may take a pod, and the rows of nodes that stay and may."""


def bound_nanos(present: AdoptedCluster, stay: Mapping[str, str]) -> int:
    """The price of the nodes that stay, and the least that any mix costs which holds the rest beside their free room.

    A pod counts for those flavours alone that have its size and whose machines, bought or there, would take it (taints,
    selectors, zones of volumes), and that of its node. Work that shares neither flavour nor room with other work is
    paid for by itself. DaemonSet and mirror pods are left out of the demand, and a flavour counts with the most that
    any of its nodes offers: both only lower the bound.
    """
    nodes = {node.name: node for node in present.snapshot.cluster.nodes}
    paid = sum(present.price(nodes[name]) for name in stay)
    work = _Work(present, stay)
    prices = [flavour.nanos_per_hour for flavour in present.policy.catalogue.flavours]
    return paid + sum(_least(kinds, work, prices) for kinds in _apart(list(work.demands)))


def _apart(kinds: Sequence[Admitting]) -> list[list[Admitting]]:
    """Kinds of work in groups that share no flavour and no room with each other."""
    groups: list[list[Admitting]] = []
    for kind in kinds:
        near = [group for group in groups if any(kind[0] & other[0] or kind[1] & other[1] for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([kind, *(other for group in near for other in group)])
    return groups


def _least(kinds: Sequence[Admitting], work: _Work, prices: Sequence[int]) -> int:
    """As if work were fluid; and of work that no room takes, a whole machine at least."""
    whole = [min(prices[i] for i in flavours) for flavours, rows in kinds if flavours and not rows]
    sold = sorted(frozenset[int]().union(*(flavours for flavours, _ in kinds)))
    left = sum((work.demands[kind] for kind in kinds), start=np.zeros_like(work.demands[kinds[0]]))
    for row in frozenset[int]().union(*(rows for _, rows in kinds)):
        left = left - work.rooms[row]
    fluid = lower_bound_nanos(
        np.maximum(left, 0).tolist(), [work.capacities[i] for i in sold], [prices[i] for i in sold]
    )
    return max(fluid, _by_kinds(kinds, work, prices), max(whole, default=0))


def _by_kinds(kinds: Sequence[Admitting], work: _Work, prices: Sequence[int]) -> int:
    if len(kinds) == 1:
        return 0  # no kind of work to tell apart from another
    # Imported here: loading ortools takes half a second, which those who never ask need not spend.
    from htas.planning.solvers.fluid import MachineSupply, bound_by_kinds

    flavours = [
        MachineSupply(capacity, frozenset(k for k, (admitted, _) in enumerate(kinds) if i in admitted), prices[i])
        for i, capacity in enumerate(work.capacities)
    ]
    rooms = [
        MachineSupply(room.tolist(), frozenset(k for k, (_, rows) in enumerate(kinds) if row in rows))
        for row, room in work.rooms.items()
    ]
    demands = [work.demands[kind].tolist() for kind in kinds]
    return bound_by_kinds(demands, flavours, [room for room in rooms if room.takes])


class _Work:
    """What moves, by what may take it; and what the flavours and the nodes that stay offer."""

    def __init__(self, present: AdoptedCluster, stay: Mapping[str, str]) -> None:
        snapshot, policy = present.snapshot, present.policy
        self._opening: SimulatedCluster = open_simulation(snapshot, policy, present.now)
        self._nodes = self._opening.sim.table.nodes
        self._stay = stay
        self._place = {flavour.name: i for i, flavour in enumerate(policy.catalogue.flavours)}
        pods = [pod for pod in snapshot.cluster.pods if pod.node is not None]
        moving = [pod for pod in pods if pod.node not in stay and pod.is_work]
        axis = self._opening.sim.table.axis
        self.capacities = _most_offered(policy.catalogue.flavours, self._nodes, axis)
        self.rooms = self._free_rooms(pods, axis)
        classes = {id(pod): self._opening.book.class_of(pod) for pod in moving}
        offers = offers_of(self._opening.sim, policy, snapshot, {id(c): c for c in classes.values()}.values())
        self.demands = self._by_admission(moving, classes, offers)

    def _by_admission(
        self, moving: Iterable[Pod], classes: Mapping[int, PodClass], offers: list[Offer]
    ) -> dict[Admitting, Ints]:
        flavour_of = {node.name: node.flavour for node in self._nodes}
        known: dict[tuple[int, str | None], Admitting] = {}
        found: dict[Admitting, Ints] = {}
        for pod in moving:
            cls, at_home = classes[id(pod)], flavour_of.get(pod.node or "")
            key = id(cls), at_home
            if key not in known:
                known[key] = self._admitting(cls, at_home, offers)
            found[known[key]] = found.get(known[key], 0) + cls.requests
        return _at_most(found)

    def _admitting(self, cls: PodClass, at_home: str | None, offers: Iterable[Offer]) -> Admitting:
        rows = np.flatnonzero(self._opening.sim.allowed(cls)).tolist()
        there = [self._nodes[row] for row in rows]
        names = {offer.flavour.name for offer in offers if offer.takes[cls.static_key]}
        names |= {node.flavour for node in there if node.name not in self._stay and node.flavour is not None}
        large = {
            name
            for name in names & self._place.keys()
            if all(self.capacities[self._place[name]][r] >= cls.requests[r] for r in cls.needs)
        }
        home = {at_home} & self._place.keys() if at_home is not None else set[str]()
        stay = frozenset(
            row for row in rows if row in self.rooms and all(self.rooms[row][r] >= cls.requests[r] for r in cls.needs)
        )
        return frozenset(self._place[name] for name in large | home), stay

    def _free_rooms(self, pods: Iterable[Pod], axis: ResourceAxis) -> dict[int, Ints]:
        """Of open nodes that stay, by row."""
        used: dict[str, Ints] = defaultdict(lambda: np.zeros(len(axis), dtype=np.int64))
        for pod in pods:
            if pod.node in self._stay:
                used[pod.node or ""] += axis.vector(pod.requests)
        return {
            row: np.maximum(axis.vector(node.allocatable) - used[node.name], 0)
            for row, node in enumerate(self._nodes)
            if node.name in self._stay and not node.is_unschedulable
        }


def _at_most(found: Mapping[Admitting, Ints]) -> dict[Admitting, Ints]:
    """The choosiest kinds of work, and all others as one."""
    ordered = sorted(found, key=lambda each: (len(each[0]), len(each[1]), sorted(each[0]), sorted(each[1])))
    kinds = {each: found[each] for each in ordered[: MOST_KINDS - 1]}
    rest = ordered[MOST_KINDS - 1 :]
    if rest:
        merged = frozenset[int]().union(*(each[0] for each in rest)), frozenset[int]().union(*(e[1] for e in rest))
        kinds[merged] = sum((found[each] for each in rest), kinds.get(merged, np.zeros_like(found[rest[0]])))
    return kinds


def _most_offered(flavours: Iterable[Flavour], nodes: Iterable[Node], axis: ResourceAxis) -> list[list[int]]:
    most = {flavour.name: axis.vector(flavour.allocatable) for flavour in flavours}
    for node in nodes:
        if node.flavour in most:
            most[node.flavour] = np.maximum(most[node.flavour], axis.vector(node.allocatable))
    return [offered.tolist() for offered in most.values()]
