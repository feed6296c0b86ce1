"""Leader election: of several daemons one acts (the rules of client-go's leaderelection).

A candidate trusts its own clock alone: it takes a lease that it has not seen change for the lease's duration. A leader
renews every retry period, and leads no longer than the renew deadline after its last success; that is shorter than
the lease, so the two never overlap. The official Python client's election is not used: its loop cannot be ended, does
not release the lease, and dies with the first lost connection.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import uniform
from threading import Event, Thread
from time import monotonic, sleep, time

import msgspec
import structlog

from htas.ports import ConflictError, HTASError, LeasePort, LeaseRecord, TransientError

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds: lease > renew > retry."""

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0


class Leadership:
    """One candidate. `identity` is this process's alone; `attempt` is one look at the lease, `start` makes them.

    One that `insists` asks whoever leads to make way for it: a command that must act in the daemon's place.
    """

    def __init__(
        self,
        lease: LeasePort,
        identity: str,
        timing: LeaseTiming,
        *,
        clock: Callable[[], float] = monotonic,
        wall: Callable[[], float] = time,
        insists: bool = False,
    ) -> None:
        self.identity = identity
        self._insists = insists
        self.previous_term = 0
        self.term = 0
        """How often the lease had changed hands before we took it, and since: between two of our own terms that follow
        each other nobody else has led."""
        self._lease = lease
        self._timing = timing
        self._clock = clock
        self._wall = wall
        self._record: LeaseRecord | None = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None
        self._stopping = Event()
        self._leading = Event()
        self._thread: Thread | None = None
        self.error = ""
        """Why the last attempt could not be made; empty: it could."""
        self.checked_at: float | None = None
        """When (by the clock) the lease was last read or written with success."""

    @property
    def is_leader(self) -> bool:
        """True only while nobody else can lead. A process that was frozen sees at once that its time is over."""
        return self._renewed_at is not None and self._clock() < self._renewed_at + self._timing.renew_s

    @property
    def holder(self) -> str:
        """Who leads, as last seen."""
        return self._record.holder if self._record is not None else ""

    @property
    def successor(self) -> str:
        """Who has asked us to make way, as last seen; empty: nobody."""
        return self._record.successor if self._record is not None and self._record.holder == self.identity else ""

    def start(self) -> None:
        """Try for the lease, and keep it, in a thread of its own."""
        self._thread = Thread(target=self._run, name="leadership", daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Whether we lead, as soon as we do, or after so long."""
        return self._leading.wait(timeout_s) and self.is_leader

    def stop(self) -> None:
        """End; a lease that is held is given up, so that another daemon acts at once."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(self._timing.renew_s)
        if self.is_leader and self._record is not None:
            try:
                self._write("", 1.0, self._record)
            except HTASError as error:
                log.warning("lease not released, it runs out by itself", error=str(error))
        self._renewed_at = None

    def retire(self, hold_s: float, pause: Callable[[float], object] = sleep) -> None:
        """End, and remove the lease; whoever stands by has seen it held for `hold_s`, and takes it no sooner.

        Raises what the lease's port raises, and TransientError where we do not lead.
        """
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(self._timing.renew_s)
        if not self.is_leader or self._record is None:
            raise TransientError("the lease was lost before it could be removed")
        self._write(self.identity, hold_s, self._record)
        pause(2 * self._timing.retry_s)  # a retry comes up to 1.2 times that later
        self._renewed_at = None
        self._lease.delete(self._record)

    def attempt(self) -> bool:
        """Renew the lease, or take it if that is allowed. Raises what the lease's port raises."""
        begun = self._clock()
        record = self._lease.read()
        self.checked_at = self._clock()
        if record is None:
            if self._may_still_lead(self.checked_at):
                return False
            record = LeaseRecord("", 0.0, 0.0, 0.0)
        elif self._record is None or _content(record) != _content(self._record):
            self._seen_at = self.checked_at
        self._record = record
        is_ours = record.holder == self.identity
        if not is_ours and self.checked_at < self._seen_at + self._is_promised_for_s(record):
            self._ask_for(record)
            return False
        try:
            self._write(self.identity, self._timing.lease_s, record)
        except ConflictError:
            return False
        if not is_ours:
            self.previous_term, self.term = record.transitions, self._record.transitions
        self._renewed_at = begun  # not when the answer came: others count from no later than the write
        self._leading.set()
        return True

    def _is_promised_for_s(self, record: LeaseRecord) -> float:
        """How long a lease that does not change is somebody else's: its holder's, or whom the holder made way for."""
        for_another = record.successor not in ("", self.identity)
        waits_s = self._timing.lease_s if for_another else 0.0
        return max(record.duration_s, waits_s) if record.holder else waits_s

    def _ask_for(self, record: LeaseRecord) -> None:
        """Ask who leads to make way, if we insist and have not asked yet. What it is writing meanwhile goes first."""
        if not self._insists or not record.holder or record.successor == self.identity:
            return
        with suppress(ConflictError):
            self._record = self._lease.write(msgspec.structs.replace(record, successor=self.identity))
            self._seen_at = self._clock()

    def _may_still_lead(self, now: float) -> bool:
        """Whether the holder of a lease that somebody deleted may not have noticed yet."""
        last = self._record
        return last is not None and last.holder not in ("", self.identity) and now < self._seen_at + last.duration_s

    def _write(self, holder: str, duration_s: float, over: LeaseRecord) -> None:
        now = self._wall()
        is_new = holder != over.holder
        is_taken = is_new and bool(holder)
        written = LeaseRecord(
            holder,
            duration_s,
            now if is_new else over.acquired_at,
            now,
            over.transitions + is_taken,
            over.version,
            "" if is_taken else over.successor,
        )
        self._record = self._lease.write(written)
        self._seen_at = self._clock()

    def _run(self) -> None:
        while not self._stopping.is_set():
            was_leader = self._renewed_at is not None
            try:
                self.attempt()
                self.error = ""
            except HTASError as error:
                if str(error) != self.error:  # the same is not told at every attempt of an outage
                    self.error = str(error)
                    log.warning("lease cannot be renewed" if was_leader else "lease cannot be had", error=self.error)
            except Exception:
                log.exception("leader election failed on a defect of htas")
            if was_leader and not self.is_leader:
                log.error("leadership lost", holder=self.holder)
                return
            self._stopping.wait(self._timing.retry_s * uniform(1.0, 1.2))


def _content(record: LeaseRecord) -> tuple[str, float, str]:
    return record.holder, record.renewed_at, record.version
