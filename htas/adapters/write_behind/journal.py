"""Shipping the journal: entry after entry, each compared and set. Where another daemon was first, its word counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Lock
from time import monotonic

import msgspec
import structlog

from htas.adapters.write_behind.entries import JournalEntry, Kind, body_of, write_journal
from htas.adapters.write_behind.local import LocalCopy
from htas.adapters.write_behind.outbox import Outbox
from htas.adapters.write_behind.remote import Remote
from htas.adapters.write_behind.shipping import Shipper, ShippingTiming
from htas.adapters.write_behind.state import Availability, Lane
from htas.model.claims import ClaimState, NodeClaim
from htas.model.disruptions import ANY_DISRUPTION, Disruption
from htas.model.record import DAY_S, Bill
from htas.ports import ConflictError, StorePort

log = structlog.get_logger()

BATCH, BATCH_BYTES = 100, 1 << 20
RECENT_S = 3600.0
"""Claims made within it are taken over though they are Released: launches of the last hour count."""
WHOLES = ((Kind.CLAIM,), (Kind.DISRUPTION, Kind.DISRUPTION_END))
"""Kinds of entries that are about the same thing."""
Kept = NodeClaim | Disruption
"""What is compared and set."""
Fate = tuple[int, "Future[None]"]
"""An entry's number, and what the store will have said of it."""


class JournalShipper(Shipper):
    """Ships the journal, and takes the remote one over (`look`) when asked to.

    An entry that the store refuses for another reason than a conflict is not dropped, as history is: the store counts
    as away until it takes it. A claim that the remote journal lacks would be a machine that nobody remembers.
    """

    def __init__(
        self,
        copy: LocalCopy,
        outbox: Outbox,
        remote: Remote,
        availability: Availability,
        timing: ShippingTiming,
        on_call: Callable[[float], None],
        on_late: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        super().__init__(Lane.JOURNAL, outbox, remote, availability, timing, on_call)
        self._copy = copy
        self._fates: dict[int, Future[None]] = {}
        self._uncertain = 0
        """Entries up to this number may have reached the store though their acknowledgement did not reach us: what an
        earlier process left, and calls without an answer."""
        self._owes_look = False
        self._queued = 0
        self._on_late = on_late
        self._clock = clock
        self.is_late = False
        """Whether the daemon acts already, on its own copy, without having seen the remote journal."""
        self._patience = Lock()
        self._patience_s = timing.call_s
        self._patient_at = monotonic()

    @property
    def is_idle(self) -> bool:
        return super().is_idle and not self._owes_look

    def look(self) -> None:
        """Take the remote journal over, as soon as all that waits has been shipped."""
        self._owes_look = True
        self.wake()

    def start(self) -> None:
        self._uncertain = self._outbox.newest()
        super().start()

    # What the writers do.

    def queue(self, kind: Kind, key: str, content: object, *, is_waited_for: bool) -> Fate | None:
        """Queue an entry, within the transaction that writes the local copy; returns what to wait for, if anything."""
        number = self._outbox.add(kind, key, body_of(kind, content), durable=True)
        self._queued += 1
        if is_waited_for and not self._owes_look and not self._availability.is_behind(Lane.JOURNAL):
            fate = self._fates[number] = Future()
            return number, fate
        return None

    def acknowledged(self, fate: Fate) -> None:
        """Wait for the store's answer to an entry, no longer than `call_s`, and not at all while the store is away.

        A store that answers slowly is waited for `call_s` in ten seconds, however many entries there are: 20 launches
        of 0.4 s each would hold up a cycle for 8 s. Raises ConflictError where another daemon was first: the local
        copy has its word by then.
        """
        number, answer = fate
        allowed_s = self._allowed_s()
        began = monotonic()
        try:
            answer.result(allowed_s)
        except TimeoutError:
            if allowed_s > 0.9 * self._timing.call_s:
                self.gave_up(self._timing.call_s)
        finally:
            with self._patience:
                self._patience_s = max(0.0, self._patience_s - (monotonic() - began))
            self._fates.pop(number, None)

    def _allowed_s(self) -> float:
        """How long may be waited now: a tenth of the time since, up to the whole, comes back."""
        whole_s = self._timing.call_s
        with self._patience:
            now = monotonic()
            self._patience_s = min(whole_s, self._patience_s + (now - self._patient_at) * whole_s / 10)
            self._patient_at = now
            return self._patience_s

    def gave_up(self, after_s: float) -> None:
        """Somebody has waited so long for an answer, in vain."""
        self._failed(f"no answer within {after_s:g} s")

    def _failed(self, reason: str) -> None:
        super()._failed(reason)
        self._settle(tuple(self._fates))

    def _settle(self, numbers: Iterable[int], error: ConflictError | None = None) -> bool:
        """Let those go on who wait for these entries; returns whether anybody did."""
        fates = [fate for number in numbers if (fate := self._fates.pop(number, None)) is not None]
        for fate in fates:
            if error is None:
                fate.set_result(None)
            else:
                fate.set_exception(error)
        return bool(fates)

    # What the thread does.

    def _ship(self) -> None:
        queued = self._queued  # before what waits is read: an entry that comes in between is not overlooked
        entries = self._outbox.oldest(Lane.JOURNAL, BATCH, BATCH_BYTES)
        for entry in entries:
            try:
                self._call(partial(self._write, entry=entry))
            except ConflictError as error:
                self._conflict(entry, error)
                return  # what follows in this batch may have gone with it
            except BaseException:
                self._uncertain = max(self._uncertain, entry.number)
                raise
            self._shipped([entry])
            self._settle([entry.number])
        if not entries:
            self._look(queued)

    def _write(self, store: StorePort, entry: JournalEntry) -> None:
        """Make an entry's call. A bill that waited is not opened again where another daemon has closed it since."""
        has_waited = entry.number <= self._uncertain or self._availability.is_behind(Lane.JOURNAL)
        if not (has_waited and entry.kind is Kind.BILL and _is_closed(store, entry.holds(Bill))):
            write_journal(store, entry)

    def _conflict(self, entry: JournalEntry, error: ConflictError) -> None:
        """The store holds something else than this entry builds on: what we wrote after all, or what another did."""
        kinds = next(kinds for kinds in WHOLES if entry.kind in kinds)
        theirs = self._call(partial(_found, entry=entry))
        known = self._arrived(self._outbox.about(kinds, entry.key), theirs)
        if known:
            self._shipped(known)
            self._settle(each.number for each in known)
            return
        if theirs is None and entry.kind is Kind.CLAIM:
            mine = self._copy.claim(entry.key)
            theirs = self._restored(mine) if mine is not None else None
        with self._copy.together():
            self._adopt(kinds[0], entry.key, theirs)
            gone = self._outbox.about(kinds, entry.key)
            self._outbox.remove(each.number for each in gone)
        self._availability.worked(Lane.JOURNAL, len(gone))
        if not self._settle((each.number for each in gone), error):
            log.warning(
                "another daemon wrote to the journal while the store was away; its word counts",
                **{kinds[0].value: entry.key, "entries": len(gone)},
            )

    def _adopt(self, kind: Kind, key: str, theirs: Kept | None) -> None:
        """Have the local copy say what the store says of one thing."""
        if kind is Kind.DISRUPTION:
            self._copy.adopt_disruption(key, theirs if isinstance(theirs, Disruption) else None)
        elif isinstance(theirs, NodeClaim):
            self._copy.adopt_claims([theirs])
        else:
            self._copy.close_claims([key])

    def _arrived(self, ours: Sequence[JournalEntry], theirs: Kept | None) -> Sequence[JournalEntry]:
        """Which of our entries the store has known all along: those up to the one that it shows."""
        for index in reversed(range(len(ours))):
            entry = ours[index]
            if entry.number <= self._uncertain and _shows(entry, theirs):
                return ours[: index + 1]
        return ()

    def _restored(self, claim: NodeClaim) -> NodeClaim | None:
        """An open claim of ours that the store does not show: None if it was released there.

        Else the store has lost it, and it is written anew: taken for released, its machine would be deleted.
        """
        try:
            return self._call(lambda store: store.put_claim(msgspec.structs.replace(claim, version=0)))
        except ConflictError:
            return None

    def _look(self, queued: int) -> None:
        """Have the local copy say what the remote store says. More written than `queued` entries: it looks again."""
        own = self._copy.claims()
        claims = {claim.id: claim for claim in self._call(lambda store: store.claims())}
        recent = self._call(lambda store: store.claims_made_since(self._clock() - RECENT_S))
        disruptions = {each.id: each for each in self._call(lambda store: store.disruptions())}
        learned = self._call(lambda store: store.learned())
        # Bills of the last day, every open one, and those that another leader may have closed of ours.
        open_since = min((bill.started_at for bill in self._copy.bills() if bill.ended_at is None), default=math.inf)
        bills = self._call(lambda store: store.bills(min(self._clock() - DAY_S, open_since)))
        if queued != self._queued:
            return  # what was written meanwhile may be what seems to be missing
        released = []
        for claim in own:
            restored = claims.get(claim.id) or self._restored(claim)
            if restored is None:
                released.append(claim.id)
            else:
                claims[claim.id] = restored
        with self._copy.together():
            if queued != self._queued:
                return
            self._copy.adopt_claims(claims.values())
            self._copy.close_claims(released)
            self._copy.adopt_claims(claim for claim in recent if claim.id not in claims)
            for key in {each.id for each in self._copy.disruptions()} | set(disruptions):
                self._copy.adopt_disruption(key, disruptions.get(key))
            for flavour, allocatable in learned.items():
                self._copy.put_learned(flavour, allocatable)
            self._copy.adopt_bills(bills)
            self._owes_look = False
            is_late, self.is_late = self.is_late, False
        if is_late:
            self._on_late()
        self._availability.worked(Lane.JOURNAL, 0)
        log.info(
            "the journal is as the store has it", claims=len(claims), disruptions=len(disruptions), bills=len(bills)
        )


def _is_closed(store: StorePort, bill: Bill) -> bool:
    """Whether an open bill of ours is closed in the store."""
    if bill.ended_at is not None:
        return False
    return any(known.id == bill.id and known.ended_at is not None for known in store.bills(bill.started_at))


def _found(store: StorePort, entry: JournalEntry) -> Kept | None:
    """What the store shows where an entry was to be written."""
    if entry.kind is Kind.CLAIM:
        return next((claim for claim in store.claims() if claim.id == entry.key), None)
    return next((each for each in store.disruptions() if each.id == entry.key), None)


def _shows(entry: JournalEntry, theirs: Kept | None) -> bool:
    """Whether the store looks as this entry has left it."""
    if entry.kind is Kind.DISRUPTION_END:
        return False
    mine: Kept = entry.holds(NodeClaim) if entry.kind is Kind.CLAIM else entry.holds(ANY_DISRUPTION)
    if isinstance(mine, NodeClaim) and mine.state is ClaimState.RELEASED:
        return theirs is None
    return bool(theirs == msgspec.structs.replace(mine, version=mine.version + 1))
