"""Where the course with HTAS is written: its journal in memory, its cycles into everybody's history."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.model.outcomes import Outcome, OutcomeStatus
from htas.model.record import CycleRecord, Retention
from htas.model.savings import Savings
from htas.ports import StorePort

HOUR_S = 3600.0
JOURNAL = Retention(HOUR_S, HOUR_S, HOUR_S, HOUR_S, HOUR_S)
"""What it keeps itself of what is over."""


def recommended(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """What was done in the sandbox is only recommended; what failed there has failed there."""
    return tuple(
        msgspec.structs.replace(each, status=OutcomeStatus.RECOMMENDED) if each.status is OutcomeStatus.DONE else each
        for each in outcomes
    )


class RecordedCourse(SqliteStore):
    """Implements StorePort. What was done in the sandbox is recorded as recommended, with the savings up to then."""

    def __init__(self, history: StorePort, savings: Callable[[], Savings]) -> None:
        super().__init__(":memory:", retention=JOURNAL)
        self._history = history
        self._savings = savings

    def add_cycle(self, record: CycleRecord) -> int:
        outcomes = recommended(record.outcomes)
        return self._history.add_cycle(msgspec.structs.replace(record, outcomes=outcomes, savings=self._savings()))
