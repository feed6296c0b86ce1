"""What was decided since the daemon began, and what the cluster cost meanwhile: small, in memory, for the pages.

The store has all of it, with the snapshot of each cycle (2 MB for 50,000 pods); here a decision takes 300 bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from threading import Lock

import msgspec

from htas.documents.recommendation import CoursePoint
from htas.model.money import NANOS
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import NodeRemoval, Plan
from htas.model.plan_document import instant_text
from htas.model.proposals import Launch
from htas.model.record import CycleRecord
from htas.model.savings import Savings
from htas.model.snapshot import ClusterSnapshot

KEPT_DECISIONS = 20_000
KEPT_POINTS = 4_000
APART_S = 60.0
"""Between two points: 4,000 of them are the last three days."""
KINDS = {
    Action.LAUNCH: "launch",
    Action.DRAIN: "drain",
    Action.UNDO_DRAIN: "undo",
    Action.DELETE: "delete",
    Action.MOVED: "move",
    Action.PREEMPT: "preempt",
    Action.REARRANGE: "rearrange",
    Action.REARRANGED: "rearrange",
    Action.CANCEL_REARRANGEMENT: "undo",
    Action.EVICT: "evict",
    Action.ADOPT: "adopt",
}
"""What is told of outcomes; binds are most of all, and in `htas history --binds`."""


class Decision(msgspec.Struct, frozen=True):
    """One thing that was decided, and what came of it. `nanos_per_hour` is the price of what was bought, or what
    emptying a node saves; None: it states none.
    """

    cycle: int | None
    at: float
    kind: str
    subject: str
    status: str
    why: str
    group: str = ""
    flavour: str = ""
    pods: int = 0
    nanos_per_hour: int | None = None
    claim: str = ""


class Point(msgspec.Struct, frozen=True):
    """The cluster at an instant; prices in billionths an hour."""

    at: float
    nanos_per_hour: int
    nodes: int
    pods: int
    waiting: int


class Chronicle:
    """Told by the thread that runs cycles, read by others."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._decisions: deque[Decision] = deque(maxlen=KEPT_DECISIONS)
        self._points: deque[Point] = deque(maxlen=KEPT_POINTS)
        self._launches: dict[str, Launch] = {}
        """The cloud answers after the cycle that asked it."""
        self._removals: dict[str, NodeRemoval] = {}
        self._released: set[str] = set()
        """Claims of which the return is told: a cloud may be asked twice before the machine is seen to go."""
        self.has_looked_back = False
        """Whether what earlier processes recorded was read."""
        self.begins: float | None = None
        """The instant of the first cycle that it was told of."""

    def observe(
        self, snapshot: ClusterSnapshot, plan: Plan, outcomes: Iterable[Outcome], number: int | None = None
    ) -> None:
        """Take in a cycle."""
        at = snapshot.taken_at
        self._launches |= {item.claim: item for item in plan.launches}
        self._removals |= {item.node: item for item in plan.remove}
        found = list(self._decided(at, number, outcomes))
        claims = {claim.id for claim in snapshot.claims} | {item.claim for item in plan.launches}
        self._launches = {key: item for key, item in self._launches.items() if key in claims}
        self._released &= claims
        nodes = {node.name for node in snapshot.cluster.nodes}
        self._removals = {key: item for key, item in self._removals.items() if key in nodes}
        with self._lock:
            self._decisions.extend(found)
            if self.begins is None:
                self.begins = at
            if not self._points or at - self._points[-1].at >= APART_S:
                self._points.append(_point(snapshot, plan))

    def remember(self, records: Iterable[CycleRecord]) -> None:
        """What an earlier process recorded, oldest first: before the first cycle."""
        older = Chronicle()
        for record in records:
            older.observe(record.snapshot, record.plan, record.outcomes, record.id)
            del record  # or it were held while the next one is read, of 18 MB maybe
        with self._lock:
            begins = self.begins if self.begins is not None else float("inf")
            for decision in reversed([each for each in older._decisions if each.at < begins]):
                self._decisions.appendleft(decision)

    def decisions(self) -> list[Decision]:
        """Oldest first."""
        with self._lock:
            return list(self._decisions)

    def points(self) -> list[Point]:
        """Oldest first."""
        with self._lock:
            return list(self._points)

    def _decided(self, at: float, number: int | None, outcomes: Iterable[Outcome]) -> Iterator[Decision]:
        for outcome in outcomes:
            kind = KINDS.get(outcome.action)
            if kind is None:
                continue
            is_done = outcome.status.is_well
            if outcome.action is Action.DELETE and is_done:
                if outcome.subject in self._released:
                    continue
                self._released.add(outcome.subject)
            launch = self._launches.get(outcome.subject) if outcome.action is Action.LAUNCH else None
            removing = self._removals.get(outcome.subject) if outcome.action is Action.DRAIN else None
            decision = Decision(number, at, kind, outcome.subject, outcome.status, outcome.message)
            if launch is not None:
                decision = msgspec.structs.replace(
                    decision,
                    why=(launch.purpose or "for work that is expected") if is_done else outcome.message,
                    group=launch.group,
                    flavour=launch.flavour,
                    pods=len(launch.pods),
                    nanos_per_hour=launch.nanos_per_hour if is_done else None,
                    claim=launch.claim,
                )
            elif removing is not None:
                decision = msgspec.structs.replace(
                    decision,
                    why=removing.why if is_done else outcome.message,
                    nanos_per_hour=removing.savings_nanos_per_hour if is_done else None,
                    claim=removing.claim,
                )
            elif outcome.action is Action.DELETE:
                decision = msgspec.structs.replace(decision, claim=outcome.subject)
            yield decision


MOST_PAST = 20
"""So many of the newest decisions are told of a name."""


def past_of(kind: str, name: str, decisions: Iterable[Decision]) -> list[str]:
    """What was decided about a node or a pod that is not there any more, oldest first; nothing: nothing is on record.

    A node's machine has the name of its claim in what was launched and deleted. A pod may be named without namespace.
    """
    decided = list(decisions)
    if kind == "node":
        names = {name, *(each.claim for each in decided if each.subject == name and each.claim)}
        about = [each for each in decided if each.subject in names]
    else:
        pods = (each for each in decided if "/" in each.subject)
        about = [each for each in pods if name in (each.subject, each.subject.partition("/")[2])]
    if not about:
        return []
    return [f"{kind} {name}: there is none now; what was decided about it:", *map(_told, about[-MOST_PAST:])]


def _told(each: Decision) -> str:
    subject = f" {each.subject}" if "/" in each.subject else ""
    status = "" if OutcomeStatus(each.status).is_well else f" ({each.status})"
    return f"{instant_text(each.at)} {each.kind}{subject}{status}: {each.why}".removesuffix(": ")


def _point(snapshot: ClusterSnapshot, plan: Plan) -> Point:
    view = snapshot.cluster
    on_nodes = [pod for pod in view.pods if pod.node is not None]
    return Point(
        snapshot.taken_at,
        plan.cost.before_nanos,
        len(view.nodes),
        len(on_nodes),
        len(view.pods) - len(on_nodes),
    )


# Both courses over time, as pages draw them: what machines cost an hour, really and with HTAS.

MOST_OF_COURSES = 288
"""Points of both courses at most; then every second one is left out, and the next come half as often."""
FIRST_APART_S = 60.0


class Courses:
    """Told of each cycle by the thread that runs them, read by others."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._points: list[CoursePoint] = []
        self._apart_s = FIRST_APART_S

    def observe(self, savings: Savings) -> None:
        with self._lock:
            points = self._points
            if points and savings.at - points[-1].at < self._apart_s:
                return
            if len(points) >= MOST_OF_COURSES:
                del points[1::2]
                self._apart_s *= 2
            points.append(
                CoursePoint(savings.at, savings.real.nanos_per_hour / NANOS, savings.with_htas.nanos_per_hour / NANOS)
            )

    def points(self) -> list[CoursePoint]:
        """Oldest first."""
        with self._lock:
            return list(self._points)
