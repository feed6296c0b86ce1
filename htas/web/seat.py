"""What the API and the pages are told from: the newest cycle, the policy, the store, and what has happened since."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Protocol

import msgspec

from htas.documents.books import Reading
from htas.documents.figures import KnownFigures
from htas.documents.nodes import pods_by_node
from htas.documents.what_if import Changes, Simulated, simulated
from htas.model.approvals import ApprovalState, Asked, without
from htas.model.outcomes import Outcome
from htas.model.plan import KeptNode, Plan, UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.model.savings import Savings
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from htas.ports import TransientError
from htas.web.chronicle import Chronicle, Courses

RECOMMEND, DUMP = "recommend", "dump"
"""Modes that touch nothing: what is planned would be done."""
RENEW_S = 1.0
"""Pages see a new picture no more often: a busy daemon runs ten cycles a second, each picture is worked out anew."""


class ApprovalDesk(Protocol):
    """Takes what people say of proposals that wait for a word."""

    def asked(self) -> list[Asked]: ...

    def say(self, ids: Iterable[str], who: str, *, is_approved: bool, currency: str) -> list[Asked]: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """One cycle: what it saw, decided and did. `number` is that of its record, where one was kept."""

    snapshot: ClusterSnapshot
    plan: Plan
    outcomes: tuple[Outcome, ...] = ()
    stages: frozenset[Stage] = ALL_STAGES
    number: int | None = None
    savings: Savings | None = None
    """Of a daemon that only recommends."""


@dataclass(frozen=True, eq=False)
class Picture:
    """The cluster as the newest cycle left it. Of what that cycle did not look at, `plan` has what an earlier one said:
    a scheduling cycle judges no nodes, and each is still kept for the reason of the last cleaning cycle.
    """

    version: int
    snapshot: ClusterSnapshot
    plan: Plan
    policy: Policy
    figures: KnownFigures = field(default_factory=KnownFigures)
    """Of its nodes, and of those of pictures before it: they all have the same."""
    savings: Savings | None = None
    outcomes: tuple[Outcome, ...] = ()
    """Of the newest cycle; of a daemon that only recommends, what it would do."""
    asked: tuple[Asked, ...] = ()
    """What waits for a word, and what was said."""
    acts: bool = True
    """Whether what is planned is carried out."""
    judged_at: float = 0.0
    """When nodes were judged last."""

    @cached_property
    def allowed(self) -> Plan:
        """The plan without what waits for a word, or was rejected."""
        states = {state: {each.question.id for each in self.asked if each.state is state} for state in ApprovalState}
        return without(self.plan, states[ApprovalState.WAITING], states[ApprovalState.REJECTED], self.snapshot)

    @property
    def at(self) -> float:
        return self.snapshot.taken_at

    @cached_property
    def on(self) -> Mapping[str, Sequence[Pod]]:
        """The pods of each node: every page needs them, and of 50,000 they take 10 ms."""
        return pods_by_node(self.snapshot.cluster)

    @cached_property
    def as_it_is(self) -> Simulated:
        """What a change of prices or rules is compared with."""
        return simulated(self.snapshot.cluster, self.policy, self.at, Changes())

    @cached_property
    def as_it_will_be(self) -> Simulated:
        """The same with the machines that waiting pods are bought."""
        return simulated(self.snapshot.cluster, self.policy, self.at, Changes(), counts_bought=True)


@dataclass(slots=True)
class Seat:
    """Told of cycles by one thread and asked by others.

    `mode` is live, recommend, demo or dump, `is_entered_once` whether a link is the log-in: who logs out is locked out;
    `reading` None: there is no past. `present` tells the wall's time, or None
    where the newest record is the present. `upcoming` tells when each kind of cycle is due next.
    """

    mode: str
    policy: Callable[[], Policy]
    reading: Reading | None = None
    present: Callable[[], float | None] = time.time
    upcoming: Callable[[], Mapping[Stage, float]] = dict
    budget_nanos: Callable[[], int | None] = lambda: None
    is_entered_once: bool = False
    chronicle: Chronicle = field(default_factory=Chronicle)
    courses: Courses = field(default_factory=Courses)
    approvals: ApprovalDesk | None = None
    """Where a word is said about what waits for one; None: this daemon does not lead."""
    _lock: Lock = field(default_factory=Lock)
    _last: Seen | None = None
    _kept: tuple[KeptNode, ...] = ()
    _judged_at: float = 0.0
    _unplaced: Mapping[str, UnplacedPod] = field(default_factory=dict)
    _version: int = 0
    _picture: Picture | None = None
    _figures: KnownFigures = field(default_factory=KnownFigures)
    _pictured_at: float = 0.0

    def observe(self, seen: Seen) -> None:
        """A cycle has ended. Costs little: what pages show is worked out when somebody looks."""
        with self._lock:
            self._last = seen
            self._version += 1
            if Stage.CLEANING in seen.stages:
                self._kept, self._judged_at = seen.plan.kept, seen.snapshot.taken_at
            if Stage.AUTOSCALING in seen.stages:
                self._unplaced = {item.pod: item for item in seen.plan.unplaced}
        if seen.savings is not None:
            self.courses.observe(seen.savings)
        if self.mode != RECOMMEND:  # then the chronicle is that of the course with HTAS
            self.chronicle.observe(seen.snapshot, seen.plan, seen.outcomes, seen.number)

    def renew(self) -> None:
        """What is shown has changed without a cycle: somebody has answered."""
        with self._lock:
            self._version += 1
            self._picture = None

    @property
    def version(self) -> int:
        """Of the picture that would be shown now."""
        with self._lock:
            is_due = self._picture is None or time.monotonic() - self._pictured_at >= RENEW_S
            return self._version if is_due or self._picture is None else self._picture.version

    def picture(self) -> Picture:
        """Raises TransientError before the first cycle."""
        with self._lock:
            shown, now = self._picture, time.monotonic()
            if shown is not None and (shown.version == self._version or now - self._pictured_at < RENEW_S):
                return shown
            if self._last is None:
                raise TransientError("no cycle has been run yet: it starts, or another daemon leads")
            made = Picture(
                self._version,
                self._last.snapshot,
                self._merged(self._last),
                self.policy(),
                self._figures,
                self._last.savings,
                self._last.outcomes,
                tuple(self.approvals.asked()) if self.approvals is not None else (),
                self.mode not in (RECOMMEND, DUMP),
                self._judged_at,
            )
            self._picture, self._pictured_at = made, now
            return made

    def store(self) -> Reading:
        """Raises TransientError where there is no past."""
        if self.reading is None:
            raise TransientError("a dump has no past: nothing was recorded")
        return self.reading

    def _merged(self, seen: Seen) -> Plan:
        plan = seen.plan
        if Stage.CLEANING not in seen.stages:
            plan = msgspec.structs.replace(plan, kept=self._kept)
        known = self._unplaced
        if Stage.AUTOSCALING not in seen.stages:
            told = (
                known.get(item.pod, item) if item.reason is Unplaced.AUTOSCALING_NOT_DUE else item
                for item in plan.unplaced
            )
            plan = msgspec.structs.replace(plan, unplaced=tuple(told))
        return plan
