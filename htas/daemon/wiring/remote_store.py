"""A store that may be away: made, begun with, and told of. With any other store there is nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from time import time

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from htas.adapters.write_behind.state import StoreState
from htas.adapters.write_behind.store import WriteBehindStore
from htas.ports import StorePort

CATCH_UP_S = 10.0
"""How long a new leader waits for the remote journal before it goes on with its own copy."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class StoreMetrics(Collector):
    """How the remote store fares, asked for at each scrape through `state`; at rest where there is none."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.state: Callable[[], StoreState] = StoreState
        self.problem: Callable[[], str] = str
        """Why what is done cannot be written down; empty: it can."""
        self._call_s = Histogram(
            "htas_store_write_seconds", "Duration of writes to the remote store.", buckets=BUCKETS, registry=registry
        )
        registry.register(self)

    def called(self, seconds: float) -> None:
        """A call of the remote store has ended, one way or another."""
        self._call_s.observe(seconds)

    def describe(self) -> Iterable[Metric]:
        return []  # as with StateCollector

    def collect(self) -> Iterator[Metric]:
        state = self.state()
        for name, text, amount in (
            ("htas_store_unwritable", "1 while the journal cannot be written.", bool(self.problem())),
            ("htas_store_away", "1 while the remote store does not answer.", state.is_away),
            ("htas_store_outbox_entries", "Entries queued for the remote store.", state.waiting_entries),
            ("htas_store_outbox_bytes", "Bytes of those entries on the local disk.", state.waiting_bytes),
        ):
            yield GaugeMetricFamily(name, text, value=float(amount))
        yield CounterMetricFamily(
            "htas_store_dropped", "Entries dropped before they reached the remote store.", value=state.dropped
        )


def behind_buffer(
    open_remote: Callable[[], StorePort], buffer: str, max_bytes: int, clock: Callable[[], float] = time
) -> StorePort:
    """A remote store that is never in the way: behind a copy of its journal and a queue of so many bytes in one file.

    The remote store is opened when there is something to ship. Raises PermanentError where the file cannot be used.
    """
    return WriteBehindStore(buffer, open_remote, max_bytes=max_bytes, clock=clock)


def attend(store: StorePort, metrics: StoreMetrics) -> Callable[[], str]:
    """Have metrics tell how the store fares; returns what the probes are to say of it, empty while all is well."""
    if not isinstance(store, WriteBehindStore):
        return str
    metrics.state, store.on_call = store.state, metrics.called
    return lambda: remark(store.state())


def begin(store: StorePort) -> None:
    """To be called once we lead: ship what waits, and learn what other leaders have done.

    Raises PermanentError where another process uses the same buffer.
    """
    if isinstance(store, WriteBehindStore):
        store.catch_up(CATCH_UP_S)


def attend_overtaking(store: StorePort, tell: Callable[[], None]) -> None:
    """Have the daemon told when the remote journal is taken over while it leads already: it is old news by then."""
    if isinstance(store, WriteBehindStore):
        store.on_late_take_over = tell


def remark(state: StoreState) -> str:
    """The store in one line; empty: nothing is wrong with it."""
    if state.is_away:
        since = datetime.fromtimestamp(state.since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"store away since {since}, {state.waiting_entries} entries are queued: {state.reason}"
    return f"store catching up, {state.waiting_entries} entries are queued" if state.is_behind else ""
