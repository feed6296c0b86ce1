"""A remote store, the line to it, and daemons' stores in front of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from htas.adapters.write_behind.shipping import ShippingTiming
from htas.adapters.write_behind.store import WriteBehindStore
from tests.builders import NOW
from tests.far_store import FarStore, Line, far_store
from tests.waiting import until

QUICK = ShippingTiming(call_s=10.0, first_pause_s=0.01, longest_pause_s=0.02, close_s=0.2)

Start = Callable[..., WriteBehindStore]


def caught_up(store: WriteBehindStore) -> None:
    """Wait until nothing waits, nor is owed."""

    def has() -> bool:
        state = store.state()
        return not (state.is_away or state.is_behind or state.waiting_entries)

    until(has)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[FarStore]:
    store = far_store(tmp_path)
    yield store
    store.close()


@pytest.fixture
def line(far: FarStore, tmp_path: Path) -> Line:
    return Line(far_store(tmp_path))


@pytest.fixture
def start(line: Line, tmp_path: Path) -> Iterator[Start]:
    """Starts a daemon's store, on a buffer of that name, on the `line` or another; ended with the test."""
    started: list[WriteBehindStore] = []

    def start_it(name: str = "mine", by: Line | None = None, leads: bool = True, **options: Any) -> WriteBehindStore:
        options = {"timing": QUICK, "clock": lambda: NOW + 100} | options
        store = WriteBehindStore(str(tmp_path / f"{name}.db"), (by or line).opened, **options)
        started.append(store)
        if leads:
            store.catch_up(10.0)
        return store

    yield start_it
    line.flows.set()
    for store in started:
        store.close()
    line.store.close()
