"""Pending pods are placed in one pass, highest priority first.

Within a priority services come first by size, memory before CPU. Batch jobs follow by run length, longest first: then
work that ends together shares a node (task bundling, HTAS paper 4.3 (1)). Batch jobs that have waited longer than
`maxWaitForCapacity` come before the others, the oldest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from htas.model.pods import Pod, WorkKind
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.many_classes import with_hope
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.place.near_users import EdgePlacement
from htas.planning.place.nominations import Nominations
from htas.planning.place.reservations import Reservations

InTurn = Callable[[Sequence[Demand], int], None]
"""Gets the demands without room and the priority whose turn it is; may preempt for pods of that priority."""


class SchedulingQueue:
    """The waiting pods of a plan, in placing order. Before they are placed anew, a fork is dropped."""

    def __init__(self, context: PlanContext) -> None:
        simulated, memory = context.simulated, context.snapshot.memory
        self._opening = simulated
        self._placer = context.placer
        self._near = EdgePlacement(context)
        self._nominations = Nominations(simulated, context.policy)
        self._reservations = Reservations(context)
        waiting = (*simulated.waiting, *self._nominations.lapsed)
        self._overdue = context.policy.overdue(context.now)
        self._classes = bundle(waiting, simulated.book, self._overdue)
        self._launches = memory.launches.open

    def leave_out(self, pods: Collection[Pod]) -> None:
        """Take pods out of it: they are preempted for."""
        keys = {pod.key for pod in pods}
        for cls in self._classes if keys else ():
            self._opening.sim.set_members(cls, [pod for pod in cls.pods if pod.key not in keys])
        self._classes = [cls for cls in self._classes if cls.pods]

    def place(self, preempt: InTurn | None = None) -> list[Demand]:
        """Place them in the opening's simulation; returns what has no room, in placing order.

        Of each priority, nominated pods come first, then those that the edge is for, those with reservations, and the
        others where they fit best. With `preempt`, pods without room preempt before less important ones are placed.
        """
        near, nominations = self._near, self._nominations
        nominations.begin()
        near.begin()
        demands: list[Demand] = []
        for priority, group in groupby(self._classes, key=lambda cls: cls.priority):
            classes = list(group)
            nominations.settle(priority)
            near.settle(classes)
            demands += self._placed_in_order(classes)
            if preempt is not None and demands and demands[-1].cls.priority == priority:
                with nominations.all_kept():
                    preempt(demands, priority)
                demands = [demand for demand in demands if demand.count]
        nominations.settle()
        return self._placed_again(demands)

    def _placed_in_order(self, classes: Sequence[PodClass]) -> Iterator[Demand]:
        """Place classes of one priority: services, then overdue batch pods, then others; yields what has no room.

        Of each of these, reserved room comes before other room.
        """
        for _, some in groupby(classes, key=lambda cls: (cls.kind is WorkKind.BATCH, self._is_overdue(cls))):
            alike = list(some)
            reserved = self._reservations.place(alike)
            for cls, has_hope in with_hope(self._opening.sim, alike):
                left = len(cls.pods) - reserved[id(cls)]
                left -= self._place(cls, left) if left and has_hope else 0
                if left:
                    yield Demand(cls, left)

    def _is_overdue(self, cls: PodClass) -> bool:
        return cls.kind is WorkKind.BATCH and bool(cls.pods) and cls.pods[0].created_at <= self._overdue

    def _placed_again(self, demands: list[Demand]) -> list[Demand]:
        """Those that were refused a node for its rental, once more: who came after them may be on it for as long.

        A job of 300 s with precedence is no bargain on a node that ends in 30 s. One behind it that has waited too long
        to be refused is put there; then there is room for the first one, too, and nothing to wait for.
        """
        for demand in demands:
            if self._placer.has_turned_away(demand.cls):
                demand.count -= self._place(demand.cls, demand.count)
        return [demand for demand in demands if demand.count]

    def _place(self, cls: PodClass, count: int) -> int:
        """How many of so many pods found room; not on what comes for others, where launches for them were unused."""
        sim = self._opening.sim
        if not cls.owner_apart:
            return self._placer.place(sim, cls, count)
        own = {claim for claim, launch in self._launches.items() if cls.owner_apart in launch.owners}
        nodes, coming = sim.table.nodes, self._opening.coming
        with sim.closed([row for row, node in enumerate(nodes) if node.name in coming and node.claim not in own]):
            return self._placer.place(sim, cls, count)


def bundle(pods: Iterable[Pod], book: ClassBook, overdue: float = -math.inf) -> list[PodClass]:
    """Classes of waiting pods in placing order; within a class the oldest pod is first.

    Those that wait since `overdue` or longer have waited too long.
    """
    classes: dict[int, PodClass] = {}
    ordered = sorted(pods, key=attrgetter("created_at", "namespace", "name"))
    book.prepare(ordered)
    for pod in ordered:
        cls = book.class_of(pod)
        if id(cls) not in classes:
            classes[id(cls)] = cls
            cls.pods.clear()
        cls.pods.append(pod)
    return sorted(classes.values(), key=lambda cls: _placing_order(cls, overdue))


def _placing_order(cls: PodClass, overdue: float = -math.inf) -> tuple[object, ...]:
    memory, cpu = cls.size
    is_batch, first = cls.kind is WorkKind.BATCH, cls.pods[0]
    since = first.created_at if is_batch and first.created_at <= overdue else math.inf
    length = -cls.run_length_s if is_batch else 0.0
    return (
        -cls.priority,
        is_batch,
        since,
        length,
        -memory,
        -cpu,
        first.created_at,
        first.namespace,
        first.name,
    )
