"""A remote store that is in fact a file beside, and a line to it that fails as lines do."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.adapters.write_behind.shipping import ShippingTiming
from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.record import CycleRecord, cycle_number
from htas.ports import PermanentError, StorePort, TransientError

PATIENT = ShippingTiming(call_s=30.0, first_pause_s=0.01, longest_pause_s=0.05, close_s=0.5)


class FarStore(SqliteStore):
    """A store that several daemons write to: its cycles are numbered by their time."""

    def add_cycle(self, record: CycleRecord) -> int:
        number = cycle_number(record.at)
        body = zlib.compress(msgspec.json.encode(record))
        with self._database.transaction(durable=False) as connection:
            connection.execute("INSERT OR REPLACE INTO cycles VALUES (?, ?, ?)", (number, record.at, body))
        return number


def far_store(folder: Path) -> FarStore:
    return FarStore(str(folder / "far.db"))


@dataclass
class Line:
    """Stands between a daemon and its remote store, call by call; `opened` is what the daemon opens it with."""

    store: StorePort
    is_away: bool = False
    loses_answers: bool = False
    """Calls arrive, their answers do not."""
    refuses: Callable[[str, tuple[Any, ...]], bool] = lambda name, values: False
    """Calls that the store refuses for good."""
    error: type[PermanentError] = PermanentError
    flows: Event = field(default_factory=Event)
    """Cleared, every call hangs until it is set."""
    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    """Those that arrived."""
    missed: set[str] = field(default_factory=set)
    """Names of those that did not."""

    def __post_init__(self) -> None:
        self.flows.set()

    def opened(self) -> StorePort:
        if self.is_away:
            raise TransientError("nobody answers")
        return self  # type: ignore[return-value] # it answers to every name of the port

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self.store, name)

        def passed(*values: Any) -> Any:
            assert self.flows.wait(30)
            if self.is_away:
                self.missed.add(name)
                raise TransientError("nobody answers")
            if self.refuses(name, values):
                raise self.error("it will never be written")
            self.calls.append((name, values))
            result = call(*values)
            if self.loses_answers:
                raise TransientError("the answer was lost")
            return result

        return passed

    def close(self) -> None:
        """The line ends; what it led to is there for others."""

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def opened_behind(folder: Path) -> WriteBehindStore:
    """A daemon's store with the first buffer that no other process uses; the remote store is everybody's."""
    for number in count():
        store = WriteBehindStore(str(folder / f"buffer-{number}.db"), lambda: far_store(folder), timing=PATIENT)
        try:
            assert store.catch_up(30.0)
        except PermanentError:
            store.close()
        else:
            return store
    raise AssertionError
