"""What waits to be shipped: one entry is one call of a StorePort, written down."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from htas.adapters.stored import UNREADABLE, decoded, unpacked
from htas.adapters.write_behind.state import Lane
from htas.model.claims import NodeClaim
from htas.model.disruptions import ANY_DISRUPTION
from htas.model.flavours import Learned
from htas.model.record import Bill, CycleRecord, ProfileRow, Run
from htas.ports import PermanentError, StorePort

_T = TypeVar("_T")


class Kind(StrEnum):
    CLAIM = "claim"
    DISRUPTION = "disruption"
    DISRUPTION_END = "disruption-end"
    BILL = "bill"
    LEARNED = "learned"
    PROFILE = "profile"
    RUNS = "runs"
    CYCLE = "cycle"

    @property
    def lane(self) -> Lane:
        return Lane.HISTORY if self in (Kind.PROFILE, Kind.RUNS, Kind.CYCLE) else Lane.JOURNAL


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """`key` is what entries of the journal are about: a claim's or a disruption's id, a flavour. History has none."""

    number: int
    kind: Kind
    key: str
    body: bytes

    def holds(self, kind: type[_T]) -> _T:
        """What was written down; raises PermanentError where another version of htas wrote it."""
        try:
            body = unpacked(self.body) if self.kind is Kind.CYCLE else self.body
            return decoded(body, kind)
        except UNREADABLE as error:
            raise PermanentError(f"a {self.kind} that is queued for the store cannot be read: {error}") from error


def body_of(kind: Kind, content: Any) -> bytes:
    """Content as an entry holds it; cycles are large and compressed (a cycle of 50,000 pods: 2 MB)."""
    body = msgspec.json.encode(content)
    return zlib.compress(body, 1) if kind is Kind.CYCLE else body


def write_journal(store: StorePort, entry: JournalEntry) -> None:
    """Make the one call of a journal's entry; raises what the store raises."""
    match entry.kind:
        case Kind.CLAIM:
            store.put_claim(entry.holds(NodeClaim))
        case Kind.DISRUPTION:
            store.put_disruption(entry.holds(ANY_DISRUPTION))
        case Kind.DISRUPTION_END:
            store.delete_disruption(entry.key, entry.holds(int))
        case Kind.BILL:
            store.put_bill(entry.holds(Bill))
        case _:
            store.put_learned(entry.key, entry.holds(Learned))


def write_history(store: StorePort, kind: Kind, entries: Sequence[JournalEntry]) -> None:
    """Write entries of one kind: rows and runs in one call, cycles one by one; raises what the store raises."""
    if kind is Kind.PROFILE:
        store.add_profile([row for entry in entries for row in entry.holds(list[ProfileRow])])
    elif kind is Kind.RUNS:
        store.add_runs([run for entry in entries for run in entry.holds(list[Run])])
    else:
        for entry in entries:
            store.add_cycle(entry.holds(CycleRecord))


def in_calls(entries: Iterable[JournalEntry]) -> list[tuple[Kind, list[JournalEntry]]]:
    """Entries as they are shipped together: the rows of a batch, its runs, then each cycle by itself.

    A daemon writes rows and cycles in turn, so that neighbours alone would hardly ever be merged. Each kind keeps its
    order.
    """
    rows: list[JournalEntry] = []
    runs: list[JournalEntry] = []
    cycles: list[tuple[Kind, list[JournalEntry]]] = []
    for entry in entries:
        if entry.kind is Kind.PROFILE:
            rows.append(entry)
        elif entry.kind is Kind.RUNS:
            runs.append(entry)
        else:
            cycles.append((entry.kind, [entry]))
    merged = [(Kind.PROFILE, rows), (Kind.RUNS, runs)]
    return [(kind, found) for kind, found in merged if found] + cycles
