"""Searching: when the optimiser is asked, what becomes of its answers, and what people are told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from threading import Lock

import msgspec

from htas.daemon.loops.optimizer import Optimizer, SearchResult
from htas.execution.ports import Ports
from htas.execution.rearrangement import RearrangementExecutor
from htas.model.moves import Move
from htas.model.outcomes import CLUSTER, Action, Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.proposals import Seat
from htas.model.rearrangement import PriorityTier, Rearrangement, RearrangementStatus
from htas.model.snapshot import ClusterSnapshot, OptimizerState
from htas.planning.cluster.whereabouts import is_pending
from htas.planning.disrupt.search_request import circumstances
from htas.ports import ConflictError


class SearchState(StrEnum):
    """How far a search has come."""

    ASKED = "asked"
    SEARCHING = "searching"
    REARRANGING = "rearranging"
    """What it found is being carried out."""
    DONE = "done"
    """It found nothing better, or what it found has been carried out."""
    DROPPED = "dropped"
    """What it found was not valid any more, or was cancelled on the way."""
    FAILED = "failed"
    """It gave no answer."""


class SearchReport(msgspec.Struct, frozen=True):
    """The last search, as people are told of it."""

    id: int
    state: SearchState
    asked_at: float
    asked_by: str
    took_s: float = 0.0
    status: RearrangementStatus | None = None
    message: str = ""
    tiers: tuple[PriorityTier, ...] = ()
    moves: tuple[Move, ...] = ()
    seats: tuple[Seat, ...] = ()


class Searching:
    """One search at a time, and the carrying out of what it found counts as part of it.

    `request` and `report` may be called from any thread; the rest belongs to the thread that runs the cycles.
    """

    def __init__(self, ports: Ports, policy: Policy, optimizer: Optimizer, rearranging: RearrangementExecutor) -> None:
        self.policy = policy
        self._ports = ports
        self._optimizer = optimizer
        self._rearranging = rearranging
        self.on_answer: Callable[[SearchResult], None] = lambda answer: None
        self._lock = Lock()
        self._report: SearchReport | None = None
        self._is_requested = False
        self._fact = OptimizerState()
        self.on_request: Callable[[], None] = lambda: None
        self.requests = 0
        """How many searches were asked for: news that a cycle should come early for."""
        self._asked_of: Mapping[str, int] = {}
        """Priority of each pod (uid) that waited when the search began."""
        self._circumstances = ""

    @property
    def has_answer(self) -> bool:
        return self._optimizer.has_answer

    def on_news(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, for each request and each answer."""
        self.on_request = wake
        self._optimizer.on_answer(wake)

    @property
    def report(self) -> SearchReport | None:
        with self._lock:
            return self._report

    def request(self) -> SearchReport:
        """Ask for a search with the next cycle; raises ConflictError while one, or its rearrangement, is under way."""
        with self._lock:
            last = self._report
            if last is not None and last.state in (
                SearchState.ASKED,
                SearchState.SEARCHING,
                SearchState.REARRANGING,
            ):
                raise ConflictError(f"search {last.id} is under way ({last.state})")
            self._is_requested = True
            self.requests += 1
            self._report = SearchReport(
                (last.id if last is not None else 0) + 1, SearchState.ASKED, self._ports.clock.now(), "request"
            )
            report = self._report
        self.on_request()
        return report

    def fact(self, snapshot: ClusterSnapshot) -> ClusterSnapshot:
        """The snapshot with what is known of the optimiser."""
        is_open = snapshot.rearrangement is not None
        busy = is_open or self._optimizer.is_busy
        return msgspec.structs.replace(snapshot, search=msgspec.structs.replace(self._fact, is_under_way=busy))

    def settle(self, snapshot: ClusterSnapshot) -> tuple[ClusterSnapshot, list[Outcome]]:
        """Take an answer that is there: its rearrangement is begun, if it is still valid and better."""
        last = self.report
        if last is not None and last.state is SearchState.REARRANGING and snapshot.rearrangement is None:
            self._tell(state=SearchState.DROPPED, message="another daemon has led meanwhile")
        answer = self._optimizer.answer() if snapshot.rearrangement is None else None
        if answer is None:
            return self.fact(snapshot), []
        outcomes = [_outcome_of(answer)]
        self.on_answer(answer)
        self._note(answer, snapshot.taken_at)
        if answer.found is not None and answer.found.is_better:
            opened, outcome = self._rearranging.begin(answer.found.proposal, snapshot)
            outcomes.append(outcome)
            if opened is None:
                self._dropped(snapshot)
                self._tell(state=SearchState.DROPPED, message=outcome.message)
            else:
                snapshot = msgspec.structs.replace(snapshot, rearrangement=opened)
                self._tell(state=SearchState.REARRANGING, message=outcome.message)
        return self.fact(snapshot), outcomes

    def ask(self, plan: Plan, snapshot: ClusterSnapshot) -> list[Outcome]:
        """Begin a search where the plan wants one, or somebody has asked for one."""
        with self._lock:
            is_requested, self._is_requested = self._is_requested, False
        if not (plan.optimize or is_requested):
            return []
        if self._optimizer.is_busy or snapshot.rearrangement is not None:
            if is_requested:
                self._tell(state=SearchState.DROPPED, message="another one was under way")
            return []
        self._begin(snapshot, is_requested)
        pods = "1 pod is pending" if len(plan.optimize) == 1 else f"{len(plan.optimize)} pods are pending"
        who = "requested" if is_requested else f"{pods} and HTAS cannot launch"
        return [Outcome(Action.SEARCH, CLUSTER, OutcomeStatus.DONE, who)]

    def ended(self, outcomes: Iterable[Outcome], snapshot: ClusterSnapshot) -> None:
        """Note what became of the rearrangement under way, by a cycle's outcomes, if a search has found it."""
        if snapshot.rearrangement is not None and snapshot.rearrangement.why:
            return
        for outcome in outcomes:
            if outcome.status is OutcomeStatus.DONE and outcome.action is Action.REARRANGED:
                self._tell(state=SearchState.DONE, message=outcome.message)
            elif outcome.status is OutcomeStatus.DONE and outcome.action is Action.CANCEL_REARRANGEMENT:
                self._dropped(snapshot)
                self._tell(state=SearchState.DROPPED, message=outcome.message)

    def close(self) -> None:
        self._optimizer.close()

    # Inside.

    def _begin(self, snapshot: ClusterSnapshot, is_requested: bool) -> None:
        self._circumstances = circumstances(snapshot, self.policy)
        self._asked_of = {pod.uid: pod.priority for pod in snapshot.cluster.pods if is_pending(pod, pod.node)}
        with self._lock:
            last = self._report
            if not is_requested or last is None:
                number = (last.id if last is not None else 0) + 1
                last = SearchReport(number, SearchState.ASKED, snapshot.taken_at, "plan")
            self._report = msgspec.structs.replace(last, state=SearchState.SEARCHING)
        self._optimizer.begin(snapshot, self.policy)

    def _dropped(self, snapshot: ClusterSnapshot) -> None:
        """Of those who were to have room nothing is proven, and the world has changed: a new search may be made.

        Until then they are preempted for. With batch work that ends every few seconds most of what is found may be
        dropped, and a pod that only waited for the next search would wait for ever.
        """
        current = snapshot.rearrangement
        seats = [slot.pod.uid for slot in current.slots if slot.source is None] if current is not None else []
        left = dict.fromkeys((*self._asked_of, *seats), False)
        self._fact = OptimizerState(ended_at=snapshot.taken_at, left=left)

    def _note(self, answer: SearchResult, now: float) -> None:
        """What the search left, for the planner and for people."""
        found = answer.found
        seated = {seat.uid for seat in found.seats} if found is not None else set()
        proven = _proven(found)
        left = {uid: priority in proven for uid, priority in self._asked_of.items() if uid not in seated}
        self._fact = OptimizerState(ended_at=now, circumstances=self._circumstances, left=left)
        if found is None:
            self._tell(state=SearchState.FAILED, took_s=answer.took_s, message=answer.problem)
        else:
            self._tell(
                state=SearchState.DONE,
                took_s=answer.took_s,
                status=found.status,
                message=found.message,
                tiers=found.tiers,
                moves=found.moves,
                seats=found.seats,
            )

    def _tell(self, **changes: object) -> None:
        with self._lock:
            if self._report is not None:
                self._report = msgspec.structs.replace(self._report, **changes)


def _proven(found: Rearrangement | None) -> set[int]:
    """Priorities of which it is proven that no placement holds more."""
    return {tier.priority for tier in found.tiers if tier.is_placing_proven} if found is not None else set()


def _outcome_of(answer: SearchResult) -> Outcome:
    if answer.found is None:
        return Outcome(Action.SEARCH, CLUSTER, OutcomeStatus.FAILED, answer.problem)
    found = answer.found
    what = f"{found.status} after {answer.took_s:.1f} s"
    return Outcome(Action.SEARCH, CLUSTER, OutcomeStatus.DONE, f"{what}; {found.message}" if found.message else what)
