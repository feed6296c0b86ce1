"""Of `schedule`, first: waiting pods are placed; where the usual way leaves some out, as they were bought for.

A tight mix of machines holds its pods in one way, which best fit need not find again when the machines come. Best fit
goes first, so that no pod waits for its own machine while another has room for all.

**The order** (task bundling). Higher priority first. Then services by size, memory before CPU; batch jobs by run
length, longest first, so that work that ends together shares a node (HTAS paper 4.3 (1)). Batch jobs that have waited
too long come before the others, the oldest first. Else the machine bought for a short job is taken by the longer ones
that come while it boots, and so is the next one: with machines that take two minutes and five jobs a minute, a job of
four minutes waited eleven. Pods of services are protected from that by what they were promised (`promises.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from htas.planning.place.placing import BestFit, fill
from htas.planning.place.promises import MOST_CLASSES, Promises

InTurn = Callable[[Sequence[Demand], int], None]
"""Told of what has no room, and of the priority whose turn it is: preempts for pods of that priority, if it does."""


class SchedulingQueue:
    """The waiting pods of a plan, in placing order. Before they are placed anew, a fork is dropped."""

    def __init__(self, context: PlanContext) -> None:
        simulated, memory = context.simulated, context.snapshot.memory
        self._opening = simulated
        self._placer = context.placer
        self._near = EdgePlacement(context)
        self._nominations = Nominations(simulated, context.policy)
        self._promises = Promises(context)
        waiting = (*simulated.waiting, *self._nominations.lapsed)
        self._classes = bundle(waiting, simulated.book, context.policy.overdue(context.now))
        self._bought_for = {**memory.bought_for, **memory.meant_for}
        own = {**self._bought_for, **memory.promised}
        lacking = (pod.key for cls in self._classes if any(cls.missing) for pod in cls.pods)
        self._sized_for = {key: own[key] for key in lacking if key in own}
        """Pods without requests and their machines, which default requests gave room to: any node would take them."""
        self._launches = memory.launches.open
        self._found_as_meant = self._found_by_moving = False

    def leave_out(self, pods: Collection[Pod]) -> None:
        """Take pods out of it: they are preempted for."""
        keys = {pod.key for pod in pods}
        for cls in self._classes if keys else ():
            self._opening.sim.set_members(cls, [pod for pod in cls.pods if pod.key not in keys])
        self._classes = [cls for cls in self._classes if cls.pods]

    def place(self) -> list[Demand]:
        """Place them in the opening's simulation; returns what has no room, in placing order.

        Where something would be bought for services, once more with promised machines exchanged for others on their
        way. That counts if nobody has lost room by it, and somebody has found some.
        """
        sim = self._opening.sim
        with sim.fork() as branch:
            left = self._found()
            if len(self._classes) > MOST_CLASSES or not self._promises.may_make_room(left):
                branch.commit()
                return left
        meant_for = self._bought_for if self._found_as_meant else None
        with sim.fork() as branch:
            found = self._placed(meant_for=meant_for, may_move=True)
            if not self._promises.are_broken and _is_less(found, left):
                self._found_by_moving = True
                branch.commit()
                return found
        return self._placed(meant_for=meant_for)

    def _found(self) -> list[Demand]:
        """Placed the usual way, or as they were bought for where that leaves fewer without room."""
        sim = self._opening.sim
        with sim.fork() as branch:
            left = self._placed()
            if not left or not self._bought_for:
                branch.commit()
                return left
        many = _count(left)
        with sim.fork() as branch:
            as_meant = self._placed(meant_for=self._bought_for)
            if _count(as_meant) < many:
                self._found_as_meant = True
                branch.commit()
                return as_meant
        return self._placed()

    def place_in_turn(self, preempt: InTurn) -> list[Demand]:
        """What `place` found once more, but that pods without room preempt before less important ones are placed."""
        meant_for = self._bought_for if self._found_as_meant else None
        return self._placed(meant_for=meant_for, may_move=self._found_by_moving, preempt=preempt)

    def _placed(
        self,
        *,
        meant_for: Mapping[str, str] | None = None,
        may_move: bool = False,
        preempt: InTurn | None = None,
    ) -> list[Demand]:
        """Those that have a machine of their own (`meant_for`: pod to claim) go first, the others where they fit best.

        Nominated pods come before waiting ones of their priority; of those come first the ones that the edge is for,
        then the ones that were promised a machine; these come in the order of all where they `may_move` to others.
        """
        sim, near, nominations, promises = self._opening.sim, self._near, self._nominations, self._promises
        nominations.begin()
        near.begin()
        promises.begin(may_move=may_move)
        counts = self._placed_as_meant(own) if (own := meant_for or self._sized_for) else {}
        demands: list[Demand] = []
        for priority, group in groupby(self._classes, key=lambda cls: cls.priority):
            classes = list(group)
            nominations.settle(priority)
            near.settle(classes, [counts.get(id(cls), 0) for cls in classes])
            promises.keep(classes, counts)
            for cls, has_hope in with_hope(sim, classes):
                promises.keep_no_later(cls, counts)
                left = len(cls.pods) - counts.get(id(cls), 0)
                left -= self._place(cls, left) if left and has_hope else 0
                if left:
                    demands.append(Demand(cls, left))
            if preempt is not None and demands and demands[-1].cls.priority == priority:
                with nominations.all_kept():
                    preempt(demands, priority)
                demands = [demand for demand in demands if demand.count]
        nominations.settle()
        return self._placed_again(demands)

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

    def _placed_as_meant(self, meant_for: Mapping[str, str]) -> dict[int, int]:
        """How many of each class (by its id) were placed on their own machines."""
        sim, counts = self._opening.sim, dict[int, int]()
        rows = {node.claim or node.name: row for row, node in enumerate(sim.table.nodes)}
        for cls in self._classes:
            self._nominations.settle(cls.priority)
            wanted = Counter(rows[claim] for pod in cls.pods if (claim := meant_for.get(pod.key)) in rows)
            for row, count in sorted(wanted.items()):
                counts[id(cls)] = counts.get(id(cls), 0) + fill(sim, cls, count, slice(row, row + 1), BestFit())
        return counts


def _count(demands: Sequence[Demand]) -> int:
    return sum(demand.count for demand in demands)


def _is_less(found: Sequence[Demand], left: Sequence[Demand]) -> bool:
    """Whether fewer of some class are without room, and more of none."""
    before = {id(demand.cls): demand.count for demand in left}
    return _count(found) < _count(left) and all(demand.count <= before.get(id(demand.cls), 0) for demand in found)


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
