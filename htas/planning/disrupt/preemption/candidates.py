"""Nodes as preemption sees them: who could leave, how much room that would be, and which node costs least."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.pods import Pod
from htas.model.policy import Policy, Promises
from htas.model.proposals import Proposal, Seat
from htas.model.reasons import ProposalReason
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.ending import ends_soon
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.cluster.whereabouts import moves_under_way
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionPolicy, DisruptionTerms

MOST_LEVELS = 32
"""So many priorities are told apart when nodes are ordered by how far up one would have to evict."""


OFFSET = 2**31
"""Added to each priority in their sum, so that three victims of priority -1 weigh more than two."""


@dataclass(slots=True, eq=False)
class Resident:
    """A pod on a row. Its class is asked for where it matters: of 40,000 pods a few thousand are looked at."""

    pod: Pod
    number: int
    _book: ClassBook
    _cls: PodClass | None = None

    @property
    def cls(self) -> PodClass:
        if self._cls is None:
            self._cls = self._book.class_of(self.pod)
        return self._cls


class Residents:
    """The pods on each row that could go: the most important first, and those that end by themselves."""

    def __init__(
        self, simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy, now: float, ledger: BudgetLedger
    ) -> None:
        self._sim = simulated.sim
        self._now = now
        self._ledger = ledger
        self._must_keep_budgets = policy.fallback.promises is Promises.KEEP
        self._disturbing = DisruptionPolicy(snapshot.cluster, policy, now)
        self._terms: dict[int, DisruptionTerms] = {}
        self._covered: dict[int, tuple[int, ...]] = {}
        self._rows: dict[int, list[Resident]] = {}
        self._ending: dict[int, list[Resident]] = {}
        moving = {move.pod for move in moves_under_way(snapshot)}
        found: list[tuple[int, Resident]] = []
        for row, pods in simulated.running.items():
            for pod in pods:
                if pod.node is None or not pod.is_work or pod.key in moving:
                    continue
                is_ending = ends_soon(pod, now)
                if is_ending or not pod.is_terminating:
                    resident = Resident(pod, len(found), simulated.book)
                    (self._ending if is_ending else self._rows).setdefault(row, []).append(resident)
                    found.append((row, resident))
        self._all = [resident for _, resident in found]
        self._can_leave: Bools | None = None
        self._row_of: NDArray[np.int64] = np.array([row for row, _ in found], dtype=np.int64)
        self._needs = np.array([simulated.book.vector(each.pod.requests) for _, each in found], dtype=np.int64)
        self._needs = self._needs.reshape(len(found), len(self._sim.table.axis))
        # What ends anyway is no obstacle to any priority.
        self._priority = np.array([_bar(each.pod, now) for _, each in found], dtype=np.float64)
        self._is_there = np.ones(len(found), dtype=np.bool_)

    def ending(self, row: int) -> Iterator[Resident]:
        """Pods on their way out."""
        return (each for each in self._ending.get(row, ()) if self._is_there[each.number])

    def of(self, row: int, uids: Set[str]) -> list[Resident]:
        """Some pods of a row."""
        return [each for each in self._rows.get(row, ()) if each.pod.uid in uids]

    def victims(self, row: int, priority: float) -> list[Resident]:
        """Pods of a row that may be preempted for work of a priority, the most important first."""
        lower = [e for e in self._rows.get(row, ()) if e.pod.priority < priority and self._is_there[e.number]]
        may_leave = [each for each in lower if self.terms(each).allow(each.pod, priority)]
        return sorted(may_leave, key=lambda each: by_importance(each.pod, self._now))

    def protected(self, rows: Iterable[int], priority: float) -> str | None:
        """Why the first pod of lower priority that may not be preempted may not."""
        for row in rows:
            for each in sorted(self._rows.get(row, ()), key=lambda each: each.pod.key):
                terms = self.terms(each)
                if each.pod.priority < priority and not terms.allow(each.pod, priority):
                    return terms.why
        return None

    def terms(self, resident: Resident) -> DisruptionTerms:
        """A pod's terms; judged once."""
        terms = self._terms.get(resident.number)
        if terms is None:
            terms = self._terms[resident.number] = self._disturbing.terms_of_victim(resident.pod)
        return terms

    def share_a_budget(self, row: int, budgets: Set[int], ledger: BudgetLedger) -> bool:
        """Whether one of these budgets covers a pod of a row."""
        return any(not budgets.isdisjoint(self._covering(each, ledger)) for each in self._rows.get(row, ()))

    def _covering(self, resident: Resident, ledger: BudgetLedger) -> tuple[int, ...]:
        covering = self._covered.get(resident.number)
        if covering is None:
            covering = self._covered[resident.number] = tuple(ledger.covering(resident.pod))
        return covering

    def leave(self, residents: Iterable[Resident]) -> None:
        """These have been chosen: they are nobody's victims any more."""
        for resident in residents:
            self._is_there[resident.number] = False

    def _could_leave(self) -> Bools:
        """Who could be anybody's victim: pods that are promised their place never leave. Judged once."""
        if self._can_leave is None:
            self._can_leave = np.array([self._is_no_obstacle(each) for each in self._all], dtype=np.bool_)
        return self._can_leave

    def _is_no_obstacle(self, resident: Resident) -> bool:
        if ends_soon(resident.pod, self._now):
            return True
        if self._must_keep_budgets and self._ledger.refusal(resident.pod) is not None:
            return False
        return self.terms(resident).allowed_for is not AllowedFor.NOBODY

    def promising(self, cls: PodClass, open_rows: Bools, priority: float) -> list[int]:
        """Rows that could hold a pod, by arithmetic, if all pods of a lower `priority` left that may leave at all.

        In the order of the priority up to which one would have to evict: there are the fewest and least important
        victims, so that a few hundred nodes need a closer look where there are thousands.
        """
        lower = self._is_there & self._could_leave() & (self._priority < priority)
        room = self._sim.table.free[:, : len(self._sim.table)].T.copy()
        for nominee in self._sim.nominees:
            if nominee.pod.priority < cls.priority:
                room[nominee.row] += nominee.cls.requests
        enough = open_rows & fits(room.T, cls)
        left, order = open_rows & ~enough, np.flatnonzero(enough).tolist()
        for level in _levels(self._priority[lower]):
            step = lower & (self._priority <= level)
            lower = lower & ~step
            np.add.at(room, self._row_of[step], self._needs[step])
            enough = left & fits(room.T, cls)
            left &= ~enough
            order += np.flatnonzero(enough).tolist()
        return order


def rows_there(simulated: SimulatedCluster, snapshot: ClusterSnapshot) -> Bools:
    """Rows with a node that is there: machines on their way, or not bought yet, hold nobody who could leave."""
    names = {node.name for node in snapshot.cluster.nodes} - simulated.coming
    return np.array([node.name in names for node in simulated.sim.table.nodes], dtype=np.bool_)


class EmptiedNodes:
    """Nodes as they were if all work were gone from them: what even such a node does not hold cannot be helped."""

    def __init__(self, simulated: SimulatedCluster, snapshot: ClusterSnapshot) -> None:
        self._opening = simulated
        self.is_there = rows_there(simulated, snapshot)
        self._known: dict[int, bool] = {}

    def hold(self, pod: Pod) -> bool:
        """Whether some node would hold a pod, and whoever it must be near is or may come to be there."""
        cls = self._opening.book.class_of(pod)
        found = self._known.get(id(cls))
        if found is None:
            found = self._known[id(cls)] = bool(self.rows(cls).any()) and self._has_friends(cls)
        return found

    def rows(self, cls: PodClass) -> Bools:
        """Rows of nodes that would hold a class beside what belongs to them."""
        rows = self._opening.sim.could_hold(cls)[: len(self.is_there)] & self.is_there
        return rows & fits(self._beside_daemons[:, : len(rows)], cls)

    def _has_friends(self, cls: PodClass) -> bool:
        """Whether there is, or may come, a pod that its required affinity asks for; its like count, too."""
        terms = cls.constraints.affinity
        if not terms:
            return True
        counts = self._opening.sim.filter_context.counts
        watch = counts.watches[counts.affinity_watch(cls.namespace, terms)]
        if watch in cls.watches or counts.watched[watch].any():
            return True
        return any(watch in each.watches for each in self._classes_to_come)

    @cached_property
    def _classes_to_come(self) -> list[PodClass]:
        opening = self._opening
        pods = (*opening.waiting, *opening.gated, *opening.nominated, *opening.withheld)
        return list({id(cls := opening.book.class_of(pod)): cls for pod in pods}.values())

    @cached_property
    def _beside_daemons(self) -> Ints:
        """What rows offer beside the pods that belong to their nodes."""
        table = self._opening.sim.table
        room = table.allocatable[:, : len(table)].copy()
        for row, pods in self._opening.running.items():
            for pod in pods:
                if not pod.is_work:
                    room[:, row] -= self._opening.book.class_of(pod).requests
        return room


def _bar(pod: Pod, now: float) -> float:
    return -np.inf if ends_soon(pod, now) else float(pod.priority)


def _levels(priorities: NDArray[np.float64]) -> list[float]:
    """The different priorities in ascending order, at most MOST_LEVELS of them: the last is always the highest."""
    levels: list[float] = np.unique(priorities).tolist()
    if len(levels) <= MOST_LEVELS:
        return levels
    picked = np.linspace(0, len(levels) - 1, MOST_LEVELS).round().astype(np.int64)
    return [levels[i] for i in picked.tolist()]


@dataclass(frozen=True, slots=True)
class PreemptionCandidate:
    """A node by row and name, and who must leave it: nobody, where what ends anyway is enough.

    `victims` are the most important first; `violations` break a disruption budget.
    """

    row: int
    node: str
    victims: tuple[Pod, ...]
    violations: int = 0
    promised: int = 0
    """Pods of lower priority that are nominated to it: others have left for them already."""

    def proposal_for(self, pod: Pod) -> Proposal:
        how = MigrationMethod.EVICT, MoveReason.PREEMPTED, pod.key
        moves = tuple(Move(victim.key, victim.uid, self.node, None, *how) for victim in self.victims)
        return Proposal(ProposalReason.PREEMPTED, moves, seats=(Seat(pod.key, pod.uid, self.node),))

    def who(self) -> str:
        """Who leaves, by name where they are few."""
        if not self.victims:
            return "it waits for pods that end there"
        names = [victim.key for victim in self.victims[:3]]
        more = len(self.victims) - len(names)
        return f"{', '.join(names)}{f' and {more} more' if more else ''} of lower priority leave for it"


def best(candidates: Iterable[PreemptionCandidate], now: float) -> PreemptionCandidate | None:
    """The candidate that costs least; the first of those that cost the same, None where there is none."""
    return min(candidates, key=lambda candidate: cost(candidate, now), default=None)


def cost(candidate: PreemptionCandidate, now: float) -> tuple[float, ...]:
    """By the rules in their order (pickOneNodeForPreemption).

    Fewest budgets broken; the lowest of the highest victims' priorities; the lowest sum of priorities; the fewest
    victims; the latest start among the earliest-started victims of the highest priority. Where what ends anyway is
    enough, nobody has to leave, and nothing costs less. Of equals, the one that is promised to the fewest.
    """
    victims, promised = candidate.victims, candidate.promised
    if not victims:
        return (0, -math.inf, 0, 0, -math.inf, promised)
    highest = max(pod.priority for pod in victims)
    began = min(start_of(pod, now) for pod in victims if pod.priority == highest)
    weight = sum(pod.priority + OFFSET for pod in victims)
    return candidate.violations, highest, weight, len(victims), -began, promised


def by_importance(pod: Pod, now: float) -> tuple[object, ...]:
    """A sorting key, the most important first: higher priority, then the earlier start, then the name."""
    return -pod.priority, start_of(pod, now), pod.key


def start_of(pod: Pod, now: float) -> float:
    """When a pod began to run; one that has not yet begins now."""
    return now if pod.started_at is None else pod.started_at
