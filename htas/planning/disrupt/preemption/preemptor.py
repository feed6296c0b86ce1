"""The preemptor: for one pod after another, the node where the least has to leave, and who."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from zlib import crc32

import numpy as np

from htas.model.holds import HoldReason
from htas.model.pods import Pod
from htas.model.policy import Policy, Promises
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.feasibility import inter_pod_affinity
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.cluster.simulation import KeptRoom
from htas.planning.disrupt.preemption.candidates import (
    PreemptionCandidate,
    Resident,
    Residents,
    best,
    by_importance,
    rows_there,
)
from htas.planning.eligibility.budgets import ledger_of

_T = TypeVar("_T")

LEAST_CANDIDATES = 100
SHARE = 0.1
"""kube-scheduler looks for max(100, 10 %) nodes where preemption helps, one of which breaks no budget; here the most
promising are looked at first."""

MOST_LOOKS = 3000
"""So many looks at nodes are made for one plan, in all: on 5,000 full nodes each takes about 0.3 ms."""
LEAST_LOOKS = 10
"""A class is given so many at least. To order the nodes for a class counts as many."""
DYNAMIC_LOOKS = 5
"""A look for a class with spread or affinity counts as so many: it is judged over the whole cluster."""


@dataclass(slots=True)
class _Shortlist:
    """What was found for a class: candidates by row, and the rows that were looked at in their order."""

    rows: list[int]
    candidates: dict[int, PreemptionCandidate] = field(default_factory=dict)
    looked_at: int = 0
    is_used: bool = False
    """Whether a pod has been preempted for since it was begun."""

    @property
    def has_a_clean_one(self) -> bool:
        """Whether some candidate breaks no budget."""
        return any(not candidate.violations for candidate in self.candidates.values())


class Preemptor:
    """Chooses victims on an opening where no waiting pod of lower priority has been given room yet.

    What it decides stays in the simulation: the room kept for whom the victims leave.
    """

    def __init__(
        self,
        simulated: SimulatedCluster,
        snapshot: ClusterSnapshot,
        policy: Policy,
        now: float,
        below: float = math.inf,
    ) -> None:
        """`below`: only pods of lower priority than that are victims, and no nominated pod gives way."""
        self._below = below
        self._opening = simulated
        self._sim = simulated.sim
        self._now = now
        self._must_keep_budgets = policy.fallback.promises is Promises.KEEP
        self._ledger = ledger_of(snapshot)
        self._residents = Residents(simulated, snapshot, policy, now, self._ledger)
        self._turn = crc32(str(snapshot.generation).encode())
        self.looks_left = MOST_LOOKS
        self._is_there = rows_there(simulated, snapshot)
        self._shortlists: dict[int, _Shortlist] = {}
        self._gone: list[tuple[Resident, int]] = []
        self._may_look = 0
        """Looks left of the share of the class at hand."""
        self.displaced: list[KeptRoom] = []
        """Nominated pods whose room went to work of higher priority."""

    @property
    def has_much_left(self) -> bool:
        """Whether half of the looks are left: that half is for the most important work."""
        return 2 * self.looks_left > MOST_LOOKS

    def turned(self, rest: Sequence[_T]) -> list[_T]:
        """A sequence begun elsewhere in each plan: what work of one plan does not reach, that of another does."""
        start = self._turn % len(rest) if rest else 0
        return [*rest[start:], *rest[:start]]

    def preempt(self, pod: Pod, classes_left: int = 1) -> PreemptionCandidate | str:
        """Make room for a pod; or why there is no way, in kube-scheduler's words.

        `classes_left` share the looks that are left; what is found with a class's share has to do.
        """
        least = LEAST_CANDIDATES if self.has_much_left else LEAST_LOOKS
        self._may_look = min(self.looks_left, max(least, self.looks_left // max(1, classes_left)))
        if not pod.preempts:
            return "preemption: not eligible due to preemptionPolicy=Never."
        cls = self._opening.book.class_of(pod)
        chosen = self._best(cls)
        if chosen is None and cls.is_dynamic and self._shortlists.pop(id(cls)).is_used:
            chosen = self._best(cls)  # what was decided meanwhile may have opened nodes that were closed to it
        if chosen is None:
            return self._nowhere(cls)
        self._carry_out(pod, cls, chosen)
        return chosen

    def go_on_from(self, decided: Iterable[PreemptionCandidate]) -> None:
        """Count victims as leaving that were chosen before; the simulation keeps the room already."""
        for chosen in decided:
            self._leaving(chosen)
            self._spend(chosen.victims)

    def _bar(self, cls: PodClass) -> float:
        """Pods of lower priority than this may be victims."""
        return min(cls.priority, self._below)

    @contextmanager
    def victims_gone(self) -> Iterator[None]:
        """Victims are gone meanwhile, as whoever preempts sees it; else they are present, as they are until they have
        ended: nothing else takes their room."""
        for resident, row in self._gone:
            self._sim.unplace(resident.cls, row)
        try:
            yield
        finally:
            for resident, row in self._gone:
                self._sim.place_many(resident.cls, np.array([row]), np.array([1]), is_placement=False)

    # Looking.

    def _resolvable(self, cls: PodClass) -> Bools:
        """Rows whose refusal could end when pods leave: all but those of the node itself, its labels and its size.

        No affinity is fulfilled by removing pods (kube-scheduler calls these nodes UnschedulableAndUnresolvable).
        """
        sim, rows = self._sim, self._sim.all_rows
        ok = sim.could_hold(cls) & self._is_there
        if cls.constraints.affinity:
            for refusal in inter_pod_affinity.refuse(sim.filter_context, cls, rows):
                if refusal.reason == inter_pod_affinity.AFFINITY:
                    ok &= ~refusal.where
        return ok

    def _best(self, cls: PodClass) -> PreemptionCandidate | None:
        """The cheapest candidate. What was decided on other nodes changes those of dynamic classes: looked at again."""
        shortlist = self._shortlist(cls)
        while (chosen := best(shortlist.candidates.values(), self._now)) is not None:
            if not (cls.is_dynamic and shortlist.is_used):
                break
            self._look_at(cls, shortlist, chosen.row)
            if shortlist.candidates.get(chosen.row) == chosen:
                break
        return chosen

    def _shortlist(self, cls: PodClass) -> _Shortlist:
        """Candidates for a class. Those of the last pod of this class hold, but on rows that changed since."""
        known = self._shortlists.get(id(cls))
        if known is None:
            rows = self._residents.promising(cls, self._resolvable(cls), self._bar(cls))
            self.looks_left -= LEAST_LOOKS
            best_half = self._may_look // 2
            if len(rows) > self._may_look:
                rows = [*rows[:best_half], *self.turned(rows[best_half:])]
            known = self._shortlists[id(cls)] = _Shortlist(rows)
        # Spread and affinity are judged over the whole cluster each time: fewer nodes of 5,000, then.
        enough = LEAST_CANDIDATES if cls.is_dynamic else max(LEAST_CANDIDATES, int(SHARE * len(self._is_there)))
        while known.looked_at < len(known.rows) and self._may_look > 0:
            if len(known.candidates) >= enough and known.has_a_clean_one:
                break
            self._look_at(cls, known, known.rows[known.looked_at])
            known.looked_at += 1
        return known

    def _look_at(self, cls: PodClass, shortlist: _Shortlist, row: int) -> None:
        self._spend_looks(DYNAMIC_LOOKS if cls.is_dynamic else 1)
        candidate = self._candidate(cls, row)
        shortlist.candidates.pop(row, None)
        if candidate is not None:
            shortlist.candidates[row] = candidate

    def _spend_looks(self, count: int) -> None:
        self._may_look -= count
        self.looks_left -= count

    def _candidate(self, cls: PodClass, row: int) -> PreemptionCandidate | None:
        """Who must leave a row: all who could, less those who are let back since the pod fits beside them."""
        sim, potential = self._sim, self._residents.victims(row, self._bar(cls))
        with sim.fork():
            lesser = self._take_off_nominees(row, cls.priority)
            for resident in (*self._residents.ending(row), *potential):
                sim.unplace(resident.cls, row)
            if not self._sim.fits(cls, row):
                return None
            violating, others = self._by_violation(potential)
            broken = self._not_reprieved(violating, cls, row)
            victims = [*broken, *self._not_reprieved(others, cls, row)]
        pods = tuple(sorted((each.pod for each in victims), key=lambda pod: by_importance(pod, self._now)))
        node = sim.table.nodes[row].name
        if self._must_keep_budgets:
            return PreemptionCandidate(row, node, pods, promised=len(lesser)) if self._may_all_leave(pods) else None
        return PreemptionCandidate(row, node, pods, len(broken), len(lesser))

    def _not_reprieved(self, residents: Sequence[Resident], cls: PodClass, row: int) -> list[Resident]:
        """Let pods back one by one, the most important first; those beside whom the pod does not fit stay out."""
        victims = []
        for resident in residents:
            with self._sim.fork() as branch:
                self._sim.place_many(resident.cls, np.array([row]), np.array([1]), is_placement=False)
                if self._sim.fits(cls, row):
                    branch.commit()
                else:
                    victims.append(resident)
        return victims

    def _take_off_nominees(self, row: int, priority: int) -> list[KeptRoom]:
        """Promise a row no more to pods below a priority; returns them."""
        sim = self._sim
        nominees = sim.nominees if self._below == math.inf else ()
        lesser = [each for each in nominees if each.row == row and each.pod.priority < priority]
        sim.drop_room(*lesser)
        return lesser

    # Budgets.

    def _by_violation(self, residents: Sequence[Resident]) -> tuple[list[Resident], list[Resident]]:
        """Those whose leaving would break a budget if all before them left too, and the others.

        kube-scheduler counts each pod that a budget covers; the Eviction API, which HTAS asks, lets some go freely.
        """
        spent_by = self._ledger.charged if self._must_keep_budgets else self._ledger.covering
        spent: dict[int, int] = {}
        violating: list[Resident] = []
        others: list[Resident] = []
        for resident in residents:
            breaks = False
            for budget in spent_by(resident.pod):
                spent[budget] = spent.get(budget, 0) + 1
                breaks |= spent[budget] > self._ledger.left(budget)
            (violating if breaks else others).append(resident)
        return violating, others

    def _may_all_leave(self, pods: Sequence[Pod]) -> bool:
        refusal = self._ledger.try_spend(pods)
        if refusal is None:
            self._ledger.refund(pods)
        return refusal is None

    # Deciding.

    def _carry_out(self, pod: Pod, cls: PodClass, chosen: PreemptionCandidate) -> None:
        row = chosen.row
        for resident in self._leaving(chosen):
            self._sim.unplace(resident.cls, row)
        self._keep_room(KeptRoom(pod, cls, row, HoldReason.NOMINATED))
        touched = self._spend(chosen.victims)
        for known in self._shortlists.values():
            known.is_used = True
            self._look_again(known, row, touched)

    def _leaving(self, chosen: PreemptionCandidate) -> list[Resident]:
        """Note that a candidate's victims leave, and what ends beside them: nobody else can have their room."""
        leaving = self._residents.of(chosen.row, {victim.uid for victim in chosen.victims})
        leaving += self._residents.ending(chosen.row)
        self._gone += [(resident, chosen.row) for resident in leaving]
        self._residents.leave(leaving)
        return leaving

    def _keep_room(self, nominee: KeptRoom) -> None:
        """Promise a row's room to a pod; of what was promised there to lesser ones, what fits no more is not."""
        sim, row, priority = self._sim, nominee.row, nominee.pod.priority
        lesser = self._take_off_nominees(row, priority)
        sim.keep_room(nominee)
        for each in sorted(lesser, key=lambda each: -each.pod.priority):
            if sim.fits(each.cls, row):
                sim.keep_room(each)
            else:
                self.displaced.append(each)

    def _spend(self, victims: Sequence[Pod]) -> set[int]:
        """Spend the budgets of victims; returns which."""
        for victim in victims:
            self._ledger.spend(victim)
        return {budget for victim in victims for budget in self._ledger.covering(victim)}

    def _look_again(self, known: _Shortlist, row: int, budgets: set[int]) -> None:
        """Rows that changed, or whose pods a spent budget covers, are looked at anew for the next pod."""
        stale = [
            other
            for other in known.rows[: known.looked_at]
            if other == row or (budgets and self._residents.share_a_budget(other, budgets, self._ledger))
        ]
        if stale:
            gone = set(stale)
            known.rows = [other for other in known.rows if other not in gone] + stale
            known.looked_at -= len(stale)
            for other in stale:
                known.candidates.pop(other, None)

    def _nowhere(self, cls: PodClass) -> str:
        """kube-scheduler's sentence, and the first promise that stands in the way."""
        known = self._shortlists.get(id(cls))
        if known is not None and known.looked_at < len(known.rows):
            return f"preemption: {known.looked_at} of {len(known.rows)} nodes were looked at; others in a later plan."
        nodes = int((self._is_there & self._sim.table.is_open[self._sim.all_rows]).sum())
        helps = self._resolvable(cls)
        rows = np.flatnonzero(helps).tolist()
        reasons = [(nodes - len(rows), "Preemption is not helpful for scheduling")]
        reasons.append((len(rows), "No preemption victims found for incoming pod"))
        told = ", ".join(f"{count} {reason}" for count, reason in reasons if count > 0)
        why = self._residents.protected(rows[:LEAST_CANDIDATES], self._bar(cls))
        return f"preemption: 0/{nodes} nodes are available: {told}." + (f" For one: {why}." if why else "")


class HopelessClasses:
    """Classes there was no way for: nor is there for the next pod of them, nor for one that asks for more."""

    def __init__(self) -> None:
        self._known: dict[object, list[tuple[Ints, str]]] = {}

    def note(self, cls: PodClass, why: str) -> None:
        self._known.setdefault(self._kind(cls), []).append((cls.requests, why))

    def why(self, cls: PodClass) -> str | None:
        """Why there is no way for a class, as far as that is known."""
        known = self._known.get(self._kind(cls), ())
        return next((why for requests, why in known if (requests <= cls.requests).all()), None)

    @staticmethod
    def _kind(cls: PodClass) -> object:
        """Spread and affinity tell classes apart; without them what the node is asked for does."""
        return id(cls) if cls.is_dynamic else (cls.priority, cls.static_key)
