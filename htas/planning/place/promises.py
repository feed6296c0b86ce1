"""Promises: the room on a machine to come is kept for the service's pod that waits for it.

By size alone the room is the largest pod's in each plan anew, and so a small one's machine was given to larger ones
that came as it was Ready, and so was the next one bought for it: with starts of 120 s a pod of 0.2 cores waited 526 s.
It is the machine that is kept, and no place in the queue: were those who wait longest placed first wherever they fit,
they would take what comes sooner than their own from whom that was bought for, and some still waited two starts.

Whoever was promised a machine and has room sooner on what is there gets that. What is in flight is capacity, and is not
bought twice: where something would be bought for other services, those who were promised a machine may go to another
one on its way, as long as that comes no later (`Promises.keep_no_later`).

Batch work has no promises: it goes to the node of its time bin, and who waits too long is placed before all others
(`Policy.overdue`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from htas.model.claims import ClaimState, NodeClaim
from htas.model.pods import WorkKind
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.place.placing import BestFit, Placer, fill

Held = tuple[PodClass, int, int]
"""Pods of a class on a row, so many."""

AS_SOON_S = 10.0
"""A machine requested so much later counts as coming no later. `cycles.batchMax` is as long: what comes within it is
bought for together, and only when a plan happened to be made told two such requests apart. Starts take one or two
minutes, and differ by more than that. From when the first machine was requested (`Memory.put_off`): a pod is not put
off by as much once more for each larger one that comes."""
MOST_CLASSES = 1000
"""Where more wait, nobody is moved: all of them are placed once more for it, or twice, and plans have to be quick."""


class _NoLater:
    """Refuses rows of machines that come too late, or that should have come by now; a judge of placing."""

    def __init__(self, rows: int, coming: Mapping[int, float]) -> None:
        self.earliest = self.latest = -math.inf
        self._is_there = np.ones(rows, dtype=np.bool_)
        self._requested = np.zeros(rows)
        for row, since in coming.items():
            self._is_there[row], self._requested[row] = False, since

    def worth(self, cls: PodClass, rows: Ints, count: int) -> Bools:
        requested = self._requested[rows]
        is_in_time: Bools = (self.earliest <= requested) & (requested <= self.latest)
        return self._is_there[rows] | is_in_time

    def has_turned_away(self, cls: PodClass) -> bool:
        return False


class Promises:
    """What the last plan promised (`Memory.promised`), as rows of this one."""

    def __init__(self, context: PlanContext) -> None:
        self._sim = sim = context.simulated.sim
        self._policy = context.policy
        self._pools = context.simulated.pools
        coming = {claim.id: claim.created_at for claim in context.snapshot.claims if claim.is_coming}
        rows = {node.claim or node.name: row for row, node in enumerate(sim.table.nodes)}
        self._row_of = {pod: rows[claim] for pod, claim in context.snapshot.memory.promised.items() if claim in rows}
        self._coming = {rows[claim]: since for claim, since in coming.items() if claim in rows}
        self._put_off = context.snapshot.memory.put_off
        # One requested with a machine that has been Ready for longer than that, and not there yet, is late.
        just_ready = {
            rows[claim.id]: claim.created_at
            for claim in context.snapshot.claims
            if claim.state is ClaimState.READY and claim.id in rows and context.now - _ready_at(claim) <= AS_SOON_S
        }
        self._requested = just_ready | self._coming
        self._no_later = _NoLater(len(sim.table.nodes), self._coming)
        self._anywhere = Placer(self._policy, self._pools, self._no_later)
        self._owed: dict[int, list[Held]] = {}
        self._kept_on: set[int] = set()
        self._may_move = False
        self.are_broken = False
        """Somebody found no room by `keep_no_later`."""

    def begin(self, *, may_move: bool) -> None:
        """From the first priority on: by `keep`, or by `keep_no_later` what it kept the last time."""
        self._may_move, self.are_broken = may_move, False
        if not may_move:
            self._owed, self._kept_on = {}, set()

    def keep(self, classes: Sequence[PodClass], counts: dict[int, int]) -> None:
        """Place what was promised to pods of one priority; `counts` (by a class's id) are placed, and grow by it."""
        is_due = self._row_of and not self._may_move
        asked = [(cls, wanted) for cls in classes if (wanted := self._wanted(cls))] if is_due else []
        if not asked:
            return
        most = {id(cls): len(cls.pods) - counts.get(id(cls), 0) for cls, _ in asked}
        with self._sim.fork():
            held = self._held(asked, most)
        for each in held:
            self._owed.setdefault(id(each[0]), []).append(each)
        coming = [each for each in held if each[1] in self._coming]
        with self._sim.fork():
            there = self._on_what_is_there([each for each in held if each[1] not in self._coming], coming)
        left = Counter[int]()
        for cls, _, count in held:
            left[id(cls)] += count
        for cls, row, count in (*there, *coming):
            placed = fill(self._sim, cls, min(count, left[id(cls)]), slice(row, row + 1), BestFit())
            left[id(cls)] -= placed
            self._kept_on.add(row)
            counts[id(cls)] = counts.get(id(cls), 0) + placed

    def may_make_room(self, demands: Sequence[Demand]) -> bool:
        """Whether a service's pod without room might have some if those with promises went to other machines to come:
        what `keep` filled has enough left, all together, and something of it would take the pod if it were empty."""
        wanting = [demand.cls for demand in demands if demand.cls.kind is WorkKind.SERVICE and demand.cls.is_ours]
        if not wanting or not self._coming or not self._kept_on:
            return False
        rows = list(self._kept_on | self._coming.keys())
        spare = np.maximum(self._sim.table.free[:, rows], 0).sum(axis=1)
        left = list(self._kept_on)
        return len(rows) > 1 and any(
            (cls.requests <= spare).all() and self._sim.could_hold(cls)[left].any() for cls in wanting
        )

    def keep_no_later(self, cls: PodClass, counts: dict[int, int]) -> None:
        """Place those of a class to whom `keep` kept a machine, where they fit best of all that is there or comes as
        soon as their own."""
        owed = self._owed.get(id(cls), ()) if self._may_move else ()
        first = self._first_requested(cls) if owed else {}
        for _, row, count in owed:
            since = self._requested.get(row, -math.inf)
            self._no_later.latest = max(since, first.get(row, since) + AS_SOON_S)
            self._no_later.earliest = -math.inf if row in self._coming else since - AS_SOON_S
            placed = self._anywhere.place(self._sim, cls, count)
            self.are_broken |= placed < count
            counts[id(cls)] = counts.get(id(cls), 0) + placed

    def _first_requested(self, cls: PodClass) -> dict[int, float]:
        """By row, of the pods that it was promised to: when the first machine that one of them was promised was."""
        first: dict[int, float] = {}
        for pod in cls.pods:
            row = self._row_of.get(pod.key)
            if row in self._requested:
                since = self._put_off.get(pod.key, self._requested[row])
                first[row] = min(since, first.get(row, since))
        return first

    def _wanted(self, cls: PodClass) -> Counter[int]:
        if cls.kind is not WorkKind.SERVICE or not cls.is_ours:
            return Counter()
        return Counter(self._row_of[pod.key] for pod in cls.pods if pod.key in self._row_of)

    def _held(self, asked: Sequence[tuple[PodClass, Counter[int]]], most: dict[int, int]) -> list[Held]:
        """Who still fits the machine promised; of each class those on machines that are there first, then by age."""
        held: list[Held] = []
        for cls, wanted in asked:
            for row in sorted(wanted, key=lambda row: (self._coming.get(row, 0.0), row)):
                count = fill(self._sim, cls, min(wanted[row], most[id(cls)]), slice(row, row + 1), BestFit())
                most[id(cls)] -= count
                held.append((cls, row, count))
        return held

    def _on_what_is_there(self, there: Sequence[Held], coming: Sequence[Held]) -> list[Held]:
        """Those whose machine has come, where they fit best if all find room so; else each on its own. Then, beside all
        that is held, those whose machine has not come, the oldest first."""
        sim = self._sim
        for cls, row, count in coming:
            sim.place(cls, row, count)
        mark = len(sim.log)
        with sim.fork() as branch:
            if all(self._place(*each) == each[2] for each in there):
                branch.commit()
        if len(sim.log) == mark:
            for cls, row, count in there:
                sim.place(cls, row, count)
        for each in sorted(coming, key=lambda each: each[0].pods[0].created_at):
            self._place(*each)
        return list(sim.assignments(mark))

    def _place(self, cls: PodClass, row: int, count: int) -> int:
        """How many of those that a row is for found room on what is there and comes before it or with it."""
        pools = [pool for pool in self._pools if not pool.is_coming and pool.rows.start <= row]
        return Placer(self._policy, pools).place(self._sim, cls, count)


def _ready_at(claim: NodeClaim) -> float:
    return claim.ready_at if claim.ready_at is not None else claim.since
