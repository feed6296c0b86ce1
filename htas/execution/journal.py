"""The journal as a daemon uses it: its store, whether that can be written, and what it last held.

Nothing is bought, emptied or rearranged that is not written down first. A store that cannot be written (a full disk,
say) therefore stops just that, and nothing else: what has room is placed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

import msgspec
import structlog

from htas.model.claims import NodeClaim
from htas.model.disruptions import Disruption
from htas.model.flavours import Learned
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.record import Bill, CycleRecord, ProfileRow, Run
from htas.ports import Clock, ConflictError, HTASError, Queued, StorePort

log = structlog.get_logger()

_T = TypeVar("_T")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0
"""Between attempts while it cannot be written; doubling. One takes ten seconds where another process has the file."""
TELL_AGAIN_S = 300.0
"""Between two lines in the log about the same trouble."""


@dataclass(frozen=True, slots=True)
class OpenBusiness:
    """What the journal holds: all that a plan has to know of it."""

    claims: tuple[NodeClaim, ...] = ()
    disruptions: tuple[Disruption, ...] = ()
    learned: Mapping[str, Learned] = field(default_factory=dict)


class Journal:
    """StorePort in front of a store, which notes what fails. Safe from several threads.

    A call that fails raises what it raised, and from then on `problem` tells why, until `works` has found that the
    store can be written again. History is passed on as it is: whether it is kept stops nothing.
    """

    def __init__(self, store: StorePort, clock: Clock) -> None:
        self.problem = ""
        """Why the journal cannot be read or written; empty: it can."""
        self._store = store
        self._clock = clock
        self._lock = Lock()
        self._pause_s = FIRST_PAUSE_S
        self._try_at = 0.0
        self._told_at: float | None = None
        self._is_told = False
        self.last = OpenBusiness()
        """What it held when it was read last."""

    def works(self) -> bool:
        """Whether the journal can be written, as far as is known; where it could not, that is tried again at times."""
        if not self.problem:
            return True
        if self._clock.now() < self._try_at:
            return False
        try:
            self._store.probe()
            self.last = _read(self._store)
        except HTASError as error:
            self._failed(error)
            return False
        self._recovered()
        return True

    def business(self) -> OpenBusiness:
        """What it holds; where it cannot be read, what it held when it was read last, and `problem` says so."""
        with suppress(HTASError):  # noted
            self.last = _read(self)
        return self.last

    # The journal.

    def claims(self) -> Sequence[NodeClaim]:
        return self._tried(self._store.claims)

    def claims_made_since(self, since: float) -> Sequence[NodeClaim]:
        return self._tried(lambda: self._store.claims_made_since(since))

    def put_claim(self, claim: NodeClaim) -> NodeClaim:
        return self._tried(lambda: self._store.put_claim(claim))

    def put_claims(self, claims: Sequence[NodeClaim]) -> list[NodeClaim]:
        return self._tried(lambda: self._store.put_claims(claims))

    def disruptions(self) -> Sequence[Disruption]:
        return self._tried(self._store.disruptions)

    def put_disruption(self, disruption: Queued) -> Queued:
        return self._tried(lambda: self._store.put_disruption(disruption))

    def delete_disruption(self, disruption_id: str, version: int) -> None:
        self._tried(lambda: self._store.delete_disruption(disruption_id, version))

    def learned(self) -> dict[str, Learned]:
        return self._tried(self._store.learned)

    def put_learned(self, flavour: str, allocatable: Learned) -> None:
        self._tried(lambda: self._store.put_learned(flavour, allocatable))

    def put_bill(self, bill: Bill) -> None:
        self._tried(lambda: self._store.put_bill(bill))

    def bills(self, since: float = 0.0) -> Sequence[Bill]:
        return self._tried(lambda: self._store.bills(since))

    def probe(self) -> None:
        self._tried(self._store.probe)

    # History.

    def add_profile(self, rows: Iterable[ProfileRow]) -> None:
        self._store.add_profile(rows)

    def profile(self, instance: str | None = None, since: float = 0.0) -> Sequence[ProfileRow]:
        return self._store.profile(instance, since)

    def latest(self) -> Sequence[ProfileRow]:
        return self._store.latest()

    def add_runs(self, runs: Iterable[Run]) -> None:
        self._store.add_runs(runs)

    def runs(self, since: float = 0.0, limit: int | None = None) -> Sequence[Run]:
        return self._store.runs(since, limit)

    def add_cycle(self, record: CycleRecord) -> int:
        return self._store.add_cycle(record)

    def cycle(self, cycle_id: int) -> CycleRecord | None:
        return self._store.cycle(cycle_id)

    def cycles(self, since: float = 0.0, limit: int = 100) -> Iterator[CycleRecord]:
        return self._store.cycles(since, limit)

    def close(self) -> None:
        self._store.close()

    # Inside.

    def _tried(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except ConflictError:
            raise  # the store works: another writer was first
        except HTASError as error:
            self._failed(error)
            raise

    def _failed(self, error: HTASError) -> None:
        now = self._clock.now()
        with self._lock:
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if self.problem else FIRST_PAUSE_S
            self.problem = str(error) or type(error).__name__
            self._try_at = now + self._pause_s
            is_news = self._told_at is None or now - self._told_at >= TELL_AGAIN_S
            if is_news:
                self._told_at, self._is_told = now, True
        if is_news:
            what = "the journal cannot be written: HTAS schedules pods, but launches, drains and deletes nothing"
            log.warning(what, error=self.problem)

    def _recovered(self) -> None:
        with self._lock:
            self.problem = ""
            was_told, self._is_told = self._is_told, False
        if was_told:
            log.info("the journal can be written again")


def _read(store: StorePort) -> OpenBusiness:
    return OpenBusiness(tuple(store.claims()), tuple(store.disruptions()), store.learned())


# Several claims at once, where another writer may be first with some.


def put_together(store: StorePort, claims: Sequence[NodeClaim]) -> dict[str, NodeClaim]:
    """Claims as they are written, by id, without those that another writer was first with.

    A store may have written some before it met the other writer's (`StorePort.put_claims`). Those are read again and
    known by their words: written once more they would be refused, as if somebody else had them. Raises as `put_claims`
    does, but for ConflictError.
    """
    try:
        return {claim.id: claim for claim in store.put_claims(claims)}
    except ConflictError:
        known = {claim.id: claim for claim in store.claims()}
    ours = (msgspec.structs.replace(claim, version=claim.version + 1) for claim in claims)
    return {claim.id: claim for claim in ours if known.get(claim.id) == claim}


def put_singly(store: StorePort, wanted: Sequence[NodeClaim]) -> tuple[list[NodeClaim], list[Outcome]]:
    """New claims of which another writer has some: those that are ours now, and what to tell of the others."""
    written, outcomes = [], []
    for claim in wanted:
        try:
            written.append(store.put_claim(claim))
        except HTASError as error:
            is_taken = isinstance(error, ConflictError)
            status = OutcomeStatus.DROPPED if is_taken else OutcomeStatus.FAILED
            what = "another writer has this claim already" if is_taken else f"it cannot be journalled: {error}"
            outcomes.append(Outcome(Action.LAUNCH, claim.id, status, what))
    return written, outcomes
