"""What was done when and why, cycle by cycle, and whether a recorded plan would be made again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from htas.documents.words import did_you_mean
from htas.model.money import price_text
from htas.model.outcomes import Action, OutcomeStatus
from htas.model.plan_document import calendar
from htas.model.policy import Policy
from htas.model.record import CycleRecord
from htas.model.stages import Stage
from htas.ports import GivenError, StorePort
from htas.profiler.compare import differences
from htas.profiler.history import Entry

MOST_CYCLES = 1_000
"""That a daemon tells of in one answer: each is read with its snapshot. A store keeps 20,000."""
MOST_ENTRIES = 100_000
"""In one answer: a cycle that binds 50,000 pods has as many."""


class CycleLine(msgspec.Struct, frozen=True):
    """One cycle of an export. Prices are an hour's, in the catalogue's currency; times are ISO 8601 in UTC."""

    cycle: int
    at: str
    stages: str
    planning_s: float
    nodes: int
    pods: int
    waiting: int
    bind: int
    launch: int
    migrate: int
    remove: int
    unplaced: int
    done: int
    dropped: int
    failed: int
    price_per_hour_before: str
    price_per_hour_after: str
    currency: str


class EntryLine(msgspec.Struct, frozen=True):
    """One thing that was done, in an export. `price_per_hour` is a launch's price or a drain's saving; else empty."""

    cycle: int
    at: str
    verb: str
    subject: str
    status: str
    why: str
    price_per_hour: str


class HistoryReport(msgspec.Struct, frozen=True):
    """`now` None: the newest entry is the present."""

    currency: str
    now: float | None
    entries: Sequence[Entry]


class Cycles(msgspec.Struct, frozen=True):
    """As `htas history --cycles` has them."""

    items: Sequence[CycleLine]


class Explained(msgspec.Struct, frozen=True):
    """The lines of `htas explain`."""

    lines: Sequence[str]


class Replayed(msgspec.Struct, frozen=True):
    """A recorded cycle planned again, by today's policy: what would be different, in words; nothing where it is not."""

    cycle: int
    differences: tuple[str, ...]


def known_verb(verb: str | None) -> str | None:
    """A verb to filter by, or None. Raises GivenError for one of which there can be nothing: an empty answer would say
    that nothing was done.
    """
    if verb and verb not in tuple(Action):
        raise GivenError(f"verb {verb[:50]!r}: there is none{did_you_mean(verb, sorted(Action))}")
    return verb or None


def entry_lines(found: Iterable[Entry]) -> list[EntryLine]:
    return [
        EntryLine(
            entry.cycle,
            _iso(entry.at),
            entry.verb,
            entry.subject,
            entry.status,
            entry.why,
            price_text(entry.nanos_per_hour) if entry.nanos_per_hour is not None else "",
        )
        for entry in found
    ]


def cycle_line(record: CycleRecord) -> CycleLine:
    made, view = record.plan, record.snapshot.cluster
    statuses = [outcome.status for outcome in record.outcomes]
    return CycleLine(
        cycle=record.id,
        at=_iso(record.at),
        stages=" ".join(record.stages),
        planning_s=round(record.planning_s, 4),
        nodes=len(view.nodes),
        pods=len(view.pods),
        waiting=sum(pod.node is None for pod in view.pods),
        bind=len(made.bind),
        launch=len(made.launches),
        migrate=len(made.migrate),
        remove=len(made.remove),
        unplaced=len(made.unplaced),
        done=statuses.count(OutcomeStatus.DONE),
        dropped=statuses.count(OutcomeStatus.DROPPED),
        failed=statuses.count(OutcomeStatus.FAILED),
        price_per_hour_before=price_text(made.cost.before_nanos),
        price_per_hour_after=price_text(made.cost.after_nanos),
        currency=made.cost.currency,
    )


def _iso(at: float) -> str:
    moment = calendar(at)
    return moment.isoformat(timespec="milliseconds") if moment is not None else f"{at:g}"


def replayed(store: StorePort, policy: Policy, number: int) -> Replayed:
    """Plan a recorded cycle again. Raises GivenError where there is none of that number."""
    record = store.cycle(number)
    if record is None:
        raise GivenError(f"cycle {number}: not in the store (it may have been too old); htas history lists them")
    from htas.planning.planner import plan  # numpy, which no other command on the store needs

    again = plan(record.snapshot, policy, record.at, frozenset(Stage(stage) for stage in record.stages))
    return Replayed(number, tuple(differences(record.plan, again)))
