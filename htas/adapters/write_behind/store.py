"""StorePort in front of a remote store that may be slow or away: its writes are safe on the local disk first.

The journal is written locally, then the remote store is waited for, a little; history is queued and shipped later.
All that the daemon reads while it plans is answered by the local copy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic, time
from typing import TypeVar

import msgspec
import structlog

from htas.adapters.owning import owned
from htas.adapters.write_behind.entries import Kind, body_of
from htas.adapters.write_behind.history import HistoryShipper
from htas.adapters.write_behind.journal import JournalShipper
from htas.adapters.write_behind.local import LocalCopy
from htas.adapters.write_behind.outbox import Outbox
from htas.adapters.write_behind.remote import Remote
from htas.adapters.write_behind.shipping import ShippingTiming
from htas.adapters.write_behind.state import Availability, Lane, StoreState
from htas.model.claims import NodeClaim
from htas.model.disruptions import Disruption
from htas.model.flavours import Learned
from htas.model.record import Bill, CycleRecord, ProfileRow, Run, cycle_number
from htas.ports import ConflictError, HTASError, Queued, StorePort, TransientError

log = structlog.get_logger()

_T = TypeVar("_T")

MAX_BYTES = 1 << 30


class WriteBehindStore:
    """Implements StorePort on a local file and what `open_remote` opens; that must number cycles by `cycle_number`.

    A write whose answer was lost is made again, so that what is written to the remote store twice must be there once.
    Nothing is shipped before `catch_up`: a stand-by writes nothing. At most `max_bytes` of entries wait on the disk;
    beyond that the oldest cycles are dropped, then the oldest profile rows. `on_call` is told how many seconds each
    call of the remote store took. Safe from several threads; one process may have the file at a time. Raises
    PermanentError where the file cannot be used.
    """

    def __init__(
        self,
        path: str,
        open_remote: Callable[[], StorePort],
        *,
        max_bytes: int = MAX_BYTES,
        timing: ShippingTiming | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self.on_call: Callable[[float], None] = lambda seconds: None
        self.on_late_take_over: Callable[[], None] = lambda: None
        self._path = path
        self._max_bytes = max_bytes
        self._timing = timing or ShippingTiming()
        self._clock = clock
        self._remote = Remote(open_remote)
        self._availability = Availability()
        self._copy = LocalCopy(path)
        self._outbox = Outbox(self._copy.database, max_bytes)
        self._journal, self._history = self._shippers()
        self._lock: int | None = None

    def _shippers(self) -> tuple[JournalShipper, HistoryShipper]:
        outbox, remote, told, timing = self._outbox, self._remote, self._availability, self._timing

        def on_call(seconds: float) -> None:
            self.on_call(seconds)

        return (
            JournalShipper(self._copy, outbox, remote, told, timing, on_call, self._overtaken, self._clock),
            HistoryShipper(Lane.HISTORY, outbox, remote, told, timing, on_call),
        )

    def _overtaken(self) -> None:
        self.on_late_take_over()

    def catch_up(self, within_s: float) -> bool:
        """Begin to ship; what an earlier process left goes first, then the remote journal is taken over.

        To be called before the daemon acts on the journal, each time it takes the lead. True: the local copy is as the
        remote store has it. False: that did not come about in so many seconds; the local copy is used as it is, and
        the remote journal is taken over once it answers. Raises PermanentError where another process has the file.
        """
        if self._lock is None:
            self._lock = owned(self._path, self._timing.close_s, "end it, or name another store.cassandra.buffer.path")
            self._outbox.count_anew()
            self._journal.start()
            self._history.start()
        self._journal.look()
        is_done = self._journal.wait(within_s)
        if not is_done:
            self._journal.is_late = True
            if not self._availability.is_away():
                self._journal.gave_up(within_s)
            log.warning(
                "the journal could not be read from the store: the local copy counts until it answers",
                reason=self.state().reason,
                claims=len(self._copy.claims()),
            )
        return is_done

    def state(self) -> StoreState:
        """How the remote store fares, and what waits for it."""
        outbox = self._outbox
        return self._availability.state(outbox.entries, outbox.waiting_bytes, outbox.dropped)

    def flush(self, within_s: float) -> bool:
        """Whether all has been shipped, as soon as that is so; False after so long, or when the store is away."""
        deadline = monotonic() + within_s
        shippers = (self._journal, self._history)
        return all(shipper.wait(max(0.0, deadline - monotonic())) for shipper in shippers)

    # The journal.

    def claims(self) -> Sequence[NodeClaim]:
        return self._copy.claims()

    def claims_made_since(self, since: float) -> Sequence[NodeClaim]:
        return self._copy.claims_made_since(since)

    def put_claim(self, claim: NodeClaim) -> NodeClaim:
        return self._journalled(Kind.CLAIM, claim.id, claim, lambda: self._copy.put_claim(claim))

    def put_claims(self, claims: Sequence[NodeClaim]) -> list[NodeClaim]:
        return [self.put_claim(claim) for claim in claims]

    def disruptions(self) -> Sequence[Disruption]:
        return self._copy.disruptions()

    def put_disruption(self, disruption: Queued) -> Queued:
        return self._journalled(
            Kind.DISRUPTION, disruption.id, disruption, lambda: self._copy.put_disruption(disruption)
        )

    def delete_disruption(self, disruption_id: str, version: int) -> None:
        write = partial(self._copy.delete_disruption, disruption_id, version)
        self._journalled(Kind.DISRUPTION_END, disruption_id, version, write)

    def probe(self) -> None:
        self._copy.probe()  # the remote store may be away, and nobody waits for it

    # What was learned and what is owed.

    def learned(self) -> dict[str, Learned]:
        return self._copy.learned()

    def put_learned(self, flavour: str, allocatable: Learned) -> None:
        write = partial(self._copy.put_learned, flavour, allocatable)
        self._journalled(Kind.LEARNED, flavour, allocatable, write, is_waited_for=False)

    def put_bill(self, bill: Bill) -> None:
        self._journalled(Kind.BILL, bill.id, bill, lambda: self._copy.put_bill(bill), is_waited_for=False)

    def bills(self, since: float = 0.0) -> Sequence[Bill]:
        return self._copy.bills(since)

    # History.

    def add_profile(self, rows: Iterable[ProfileRow]) -> None:
        self._queue(Kind.PROFILE, list(rows))

    def profile(self, instance: str | None = None, since: float = 0.0) -> Sequence[ProfileRow]:
        return self._read(lambda store: store.profile(instance, since))

    def latest(self) -> Sequence[ProfileRow]:
        return self._read(lambda store: store.latest())

    def add_runs(self, runs: Iterable[Run]) -> None:
        self._queue(Kind.RUNS, list(runs))

    def runs(self, since: float = 0.0, limit: int | None = None) -> Sequence[Run]:
        return self._read(lambda store: store.runs(since, limit))

    def add_cycle(self, record: CycleRecord) -> int:
        number = cycle_number(record.at)
        self._copy.sweep(record.at)
        self._queue(Kind.CYCLE, msgspec.structs.replace(record, id=number))
        return number

    def cycle(self, cycle_id: int) -> CycleRecord | None:
        return self._read(lambda store: store.cycle(cycle_id))

    def cycles(self, since: float = 0.0, limit: int = 100) -> Iterator[CycleRecord]:
        return self._read(lambda store: store.cycles(since, limit))

    def close(self) -> None:
        """End, after shipping what waits for as long as `close_s`; what is left is shipped by the next process."""
        try:
            if self._lock is None or self._stop_shipping():  # a call that hangs would hang the remote's end, too
                self._remote.close()
        finally:
            self._copy.close()
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    # Inside.

    def _journalled(
        self, kind: Kind, key: str, content: object, write: Callable[[], _T], *, is_waited_for: bool = True
    ) -> _T:
        """Write to the local copy and queue the same for the remote one, as a whole; then wait for its answer."""
        with self._counted(), self._copy.together():
            written = write()
            fate = self._journal.queue(kind, key, content, is_waited_for=is_waited_for and self._lock is not None)
        self._journal.wake()
        if fate is not None:
            self._journal.acknowledged(fate)
        return written

    def _queue(self, kind: Kind, content: object) -> None:
        if content:
            with self._counted():
                self._outbox.add(kind, "", body_of(kind, content), durable=False)
            self._history.wake()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """What a transaction that came to nothing has added to the outbox's count is taken out of it again."""
        try:
            yield
        except ConflictError:
            raise  # by the local copy, before anything was queued
        except HTASError:
            with suppress(HTASError):
                self._outbox.count_anew()
            raise

    def _stop_shipping(self) -> bool:
        """Ship for a last few seconds; returns whether the threads have ended."""
        deadline = monotonic() + self._timing.close_s
        shippers = (self._journal, self._history)
        for shipper in shippers:
            shipper.hurry()
        for shipper in shippers:
            shipper.wait(max(0.0, deadline - monotonic()), for_an_answer=False)
            shipper.end()
        has_ended = [shipper.join(max(0.1, deadline - monotonic())) for shipper in shippers]
        left = self.state()
        if left.waiting_entries:
            log.warning(
                "not all was shipped to the store; the rest is queued on the disk", entries=left.waiting_entries
            )
        return all(has_ended)

    def _read(self, use: Callable[[StorePort], _T]) -> _T:
        """Read from the remote store, what was written just now included if that takes no longer than a moment.

        Raises TransientError at once where the store is known to be away: nobody waits for it to be found away again.
        """
        if self._availability.is_away() and not self._history.stuck:
            raise TransientError(f"the store is away: {self.state().reason}")
        if self._lock is not None:
            self._history.wait(self._timing.call_s)
        return use(self._remote.get())
