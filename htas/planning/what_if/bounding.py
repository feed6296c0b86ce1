"""The least that a cluster's work can cost, whatever is bought: beside what stays, on the flavours that may take it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from htas.model.pods import Pod
from htas.planning.cluster.classes import Ints, PodClass, ResourceAxis
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.simulated import SimulatedCluster, open_simulation
from htas.planning.provision.bound import lower_bound_nanos
from htas.planning.provision.offers import Offer, offers_of
from htas.planning.what_if.adopting import AdoptedCluster

MOST_KINDS = 12
"""Kinds of work told apart; the rest count as one that may use what any of them may, which only lowers the bound."""
Sold = tuple[str, str | None]
"""A flavour in a zone."""
Admitting = tuple[frozenset[int], frozenset[int]]
"""What is sold, by its place, that may take a pod, and the rows of nodes that stay and may."""


@dataclass(slots=True)
class _Demand:
    """What the pods of a kind ask for together, and how many there are of each sort of which no node takes two."""

    requests: Ints
    apart: Counter[Hashable] = field(default_factory=Counter)

    def __add__(self, other: _Demand) -> _Demand:
        return _Demand(self.requests + other.requests, self.apart + other.apart)


def bound_nanos(present: AdoptedCluster, stay: Mapping[str, str]) -> int:
    """The price of the nodes that stay, and the least that any mix costs which holds the rest beside their free room.

    A pod counts for those flavours and zones alone that have its size and whose machines, bought or there, would take
    it (taints, selectors, zones of volumes), and that of its node. Pods that keep each other away from their nodes, or
    share a host port, need a machine each. Work that shares neither flavour nor room with other work is paid for by
    itself. A flavour counts with the most that DaemonSet and mirror pods leave on any of its machines.
    """
    nodes = {node.name: node for node in present.snapshot.cluster.nodes}
    paid = sum(present.price(nodes[name]) for name in stay)
    work = _Work(present, stay)
    return paid + sum(_least(kinds, work) for kinds in _apart(list(work.demands)))


def _apart(kinds: Sequence[Admitting]) -> list[list[Admitting]]:
    """Kinds of work in groups that share no flavour and no room with each other."""
    groups: list[list[Admitting]] = []
    for kind in kinds:
        near = [group for group in groups if any(kind[0] & other[0] or kind[1] & other[1] for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([kind, *(other for group in near for other in group)])
    return groups


def _least(kinds: Sequence[Admitting], work: _Work) -> int:
    """As if work were fluid, and by the number of machines that some of it needs whatever their size."""
    sold = sorted(frozenset[int]().union(*(flavours for flavours, _ in kinds)))
    asked = sum((work.demands[kind].requests for kind in kinds), start=np.zeros_like(work.demands[kinds[0]].requests))
    left = beside(asked, (work.rooms[row] for row in frozenset[int]().union(*(rows for _, rows in kinds))))
    fluid = lower_bound_nanos(left.tolist(), [work.capacities[i] for i in sold], [work.prices[i] for i in sold])
    covers = _covers(kinds, work)
    whole = [machines * min(work.prices[i] for i in flavours) for flavours, machines in covers.items()]
    return max(fluid, _by_kinds(kinds, work, covers), max(whole, default=0))


def _covers(kinds: Sequence[Admitting], work: _Work) -> dict[frozenset[int], int]:
    """How many machines at least must be of which flavours: one for work that no room takes, and one for each pod of a
    sort that has its nodes to itself, less the rooms that would take one.
    """
    covers = {flavours: 1 for flavours, rows in kinds if flavours and not rows}
    for sort in {sort for kind in kinds for sort in work.demands[kind].apart}:
        mine = [kind for kind in kinds if sort in work.demands[kind].apart]
        for some in (mine, *([kind] for kind in mine)):
            flavours = frozenset[int]().union(*(flavours for flavours, _ in some))
            rooms = frozenset[int]().union(*(rows for _, rows in some))
            count = sum(work.demands[kind].apart[sort] for kind in some) - len(rooms)
            if flavours and count > covers.get(flavours, 0):
                covers[flavours] = count
    return covers


def _by_kinds(kinds: Sequence[Admitting], work: _Work, covers: Mapping[frozenset[int], int]) -> int:
    if len(kinds) == 1:
        return 0  # no kind of work to tell apart from another
    # Imported here: loading ortools takes half a second, which those who never ask need not spend.
    from htas.planning.solvers.fluid import Cover, MachineSupply, bound_by_kinds

    flavours = [
        MachineSupply(capacity, frozenset(k for k, (admitted, _) in enumerate(kinds) if i in admitted), work.prices[i])
        for i, capacity in enumerate(work.capacities)
    ]
    rooms = [
        MachineSupply(room.tolist(), frozenset(k for k, (_, rows) in enumerate(kinds) if row in rows))
        for row, room in work.rooms.items()
    ]
    demands = [work.demands[kind].requests.tolist() for kind in kinds]
    numbers = [Cover(sold, machines) for sold, machines in covers.items()]
    return bound_by_kinds(demands, flavours, [room for room in rooms if room.takes], numbers)


class _Work:
    """What moves, by what may take it; and what the flavours and the nodes that stay offer."""

    def __init__(self, present: AdoptedCluster, stay: Mapping[str, str]) -> None:
        snapshot, policy = present.snapshot, present.widest
        self._opening: SimulatedCluster = open_simulation(snapshot, policy, present.now)
        self._nodes = self._opening.sim.table.nodes
        self._moving_rows = np.array([node.name not in stay for node in self._nodes], dtype=np.bool_)
        self._sold_on = [_sold(node) for node in self._nodes]
        self._are_hosts = all(HOSTNAME_LABEL in node.labels for node in self._nodes)
        pods = [pod for pod in snapshot.cluster.pods if pod.node is not None]
        moving = [pod for pod in pods if pod.node not in stay and pod.is_work]
        axis = self._opening.sim.table.axis
        classes = {id(pod): self._opening.book.class_of(pod) for pod in moving}
        offers = offers_of(self._opening.sim, policy, snapshot, {id(c): c for c in classes.values()}.values())
        offered = _most_offered(offers, self._nodes, pods, axis)
        flavours = {flavour.name: flavour for flavour in policy.catalogue.flavours}
        sold = [each for each in offered if each[0] in flavours]
        self._place = {each: i for i, each in enumerate(sold)}
        self.capacities = [offered[each].tolist() for each in sold]
        self.prices = [flavours[name].nanos_in(zone) for name, zone in sold]
        rooms = free_rooms(self._nodes, pods, stay, axis)
        self.rooms = {row: rooms[node.name] for row, node in enumerate(self._nodes) if node.name in rooms}
        self.demands = self._by_admission(moving, classes, offers)

    def _by_admission(
        self, moving: Iterable[Pod], classes: Mapping[int, PodClass], offers: list[Offer]
    ) -> dict[Admitting, _Demand]:
        sold_of = {node.name: sold for node, sold in zip(self._nodes, self._sold_on, strict=True)}
        known: dict[tuple[int, Sold | None], Admitting] = {}
        found: dict[Admitting, _Demand] = {}
        for pod in moving:
            cls, at_home = classes[id(pod)], sold_of.get(pod.node or "")
            key = id(cls), at_home
            if key not in known:
                known[key] = self._admitting(cls, at_home, offers)
            demand = _Demand(cls.requests, Counter(self._sorts_apart(cls)))
            found[known[key]] = found[known[key]] + demand if known[key] in found else demand
        return _at_most(found)

    def _sorts_apart(self, cls: PodClass) -> list[Hashable]:
        """What a pod is one of, of which a node takes one: those with its host ports, or that keep their like away."""
        ports: list[Hashable] = [cls.constraints.host_ports] if cls.constraints.host_ports else []
        if not self._are_hosts:
            return ports  # a node without that label is no domain, and takes any number
        return [*ports, *self._opening.book.own_repulsions(cls, HOSTNAME_LABEL)]

    def _admitting(self, cls: PodClass, at_home: Sold | None, offers: Iterable[Offer]) -> Admitting:
        allowed = self._opening.sim.allowed(cls)
        taking = {(offer.flavour.name, offer.zone) for offer in offers if offer.takes[cls.static_key]}
        going = np.flatnonzero(allowed & self._moving_rows).tolist()
        taking |= {sold for row in going if (sold := self._sold_on[row]) is not None}
        large = {sold for sold in taking & self._place.keys() if fits(self.capacities[self._place[sold]], cls)}
        home = {at_home} & self._place.keys() if at_home is not None else set[Sold]()
        stay = frozenset(row for row, room in self.rooms.items() if allowed[row] and fits(room, cls))
        return frozenset(self._place[sold] for sold in large | home), stay


def free_rooms(
    nodes: Iterable[Node], pods: Iterable[Pod], stay: Collection[str], axis: ResourceAxis
) -> dict[str, Ints]:
    """What open nodes that stay have left beside all they hold."""
    used: dict[str, Ints] = defaultdict(lambda: np.zeros(len(axis), dtype=np.int64))
    for pod in pods:
        if pod.node in stay:
            used[pod.node or ""] += axis.vector(pod.requests)
    return {
        node.name: np.maximum(axis.vector(node.allocatable) - used[node.name], 0)
        for node in nodes
        if node.name in stay and not node.is_unschedulable
    }


def beside(demand: Ints, rooms: Iterable[Ints]) -> Ints:
    """What these rooms leave of a demand at least, as if it were fluid."""
    for room in rooms:
        demand = demand - room
    return np.maximum(demand, 0)


def _at_most(found: Mapping[Admitting, _Demand]) -> dict[Admitting, _Demand]:
    """The choosiest kinds of work, and all others as one."""
    ordered = sorted(found, key=lambda each: (len(each[0]), len(each[1]), sorted(each[0]), sorted(each[1])))
    kinds = {each: found[each] for each in ordered[: MOST_KINDS - 1]}
    rest = ordered[MOST_KINDS - 1 :]
    if rest:
        merged = frozenset[int]().union(*(each[0] for each in rest)), frozenset[int]().union(*(e[1] for e in rest))
        nothing = _Demand(np.zeros_like(found[rest[0]].requests))
        kinds[merged] = sum((found[each] for each in rest), kinds.get(merged, nothing))
    return kinds


def _sold(node: Node) -> Sold | None:
    return (node.flavour, node.labels.get(ZONE_LABEL)) if node.flavour is not None else None


def _most_offered(
    offers: Iterable[Offer], nodes: Iterable[Node], pods: Iterable[Pod], axis: ResourceAxis
) -> dict[Sold, Ints]:
    """By what is sold, or is there, the most that DaemonSet and mirror pods leave on a machine of it."""
    used: dict[str, Ints] = defaultdict(lambda: np.zeros(len(axis), dtype=np.int64))
    for pod in pods:
        if not pod.is_work:
            used[pod.node or ""] += axis.vector(pod.requests)
    found: dict[Sold, Ints] = {}
    for offer in offers:
        each = offer.flavour.name, offer.zone
        found[each] = np.maximum(found.get(each, 0), offer.free)
    for node in nodes:
        sold = _sold(node)
        if sold is not None:
            found[sold] = np.maximum(found.get(sold, 0), axis.vector(node.allocatable) - used[node.name])
    return found
