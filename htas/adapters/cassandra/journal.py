"""The journal: claims and the queue of disruptions, written by lightweight transactions, and what was learned.

Every write of a claim is `UPDATE … IF version = ?`, the first one with null: unlike INSERT it leaves no row marker, so
that a released claim is gone as a whole when its columns expire. Lightweight and plain writes of one row must not be
mixed (their clocks differ), so disruptions are deleted by `IF version = ?`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, sleep
from typing import Any
from uuid import UUID, uuid4

import msgspec

from htas.adapters.cassandra.errors import NotDoneError
from htas.adapters.cassandra.rows import body_of, decoded, shard_of
from htas.adapters.cassandra.session import Session
from htas.model.claims import ClaimState, NodeClaim
from htas.model.disruptions import ANY_DISRUPTION, Disruption
from htas.model.flavours import Learned
from htas.ports import ConflictError, Queued, TransientError

CLAIM_SHARDS = 32
"""Paxos runs by partition: two claims of one shard wait for each other."""
DISRUPTION_SHARDS = 8
AGAIN_S, SETTLING_S = 0.2, 5.0
"""A write whose answer was lost is tried again so often, for so long; a connection is made anew within a second."""

_CLAIMS = "SELECT open, body FROM KEYSPACE.claims WHERE cluster = ? AND shard = ?"
_CLAIM = "SELECT version, writer FROM KEYSPACE.claims WHERE cluster = ? AND shard = ? AND id = ?"
_PUT_CLAIM = (
    "UPDATE KEYSPACE.claims USING TTL ? SET version = ?, open = ?, writer = ?, body = ?"
    " WHERE cluster = ? AND shard = ? AND id = ? IF version = ?"
)
_DISRUPTIONS = "SELECT body FROM KEYSPACE.disruptions WHERE cluster = ? AND shard = ?"
_DISRUPTION = "SELECT version, writer FROM KEYSPACE.disruptions WHERE cluster = ? AND shard = ? AND id = ?"
_PUT_DISRUPTION = (
    "UPDATE KEYSPACE.disruptions SET version = ?, writer = ?, body = ?"
    " WHERE cluster = ? AND shard = ? AND id = ? IF version = ?"
)
_DELETE_DISRUPTION = "DELETE FROM KEYSPACE.disruptions WHERE cluster = ? AND shard = ? AND id = ? IF version = ?"
_LEARNED = "SELECT flavour, body FROM KEYSPACE.learned WHERE cluster = ?"
_PUT_LEARNED = "INSERT INTO KEYSPACE.learned (cluster, flavour, body) VALUES (?, ?, ?)"


class Journal:
    """The part of StorePort that is waited for, of the cluster `name`."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name

    def claims(self) -> Sequence[NodeClaim]:
        found = self._listed("reading claims", _CLAIMS, CLAIM_SHARDS)
        return sorted((decoded(body, NodeClaim) for is_open, body in found if is_open), key=lambda claim: claim.id)

    def claims_made_since(self, since: float) -> Sequence[NodeClaim]:
        found = self._listed("reading claims", _CLAIMS, CLAIM_SHARDS)  # a Released one is there until it expires
        claims = (decoded(body, NodeClaim) for _, body in found)
        return sorted((claim for claim in claims if claim.created_at >= since), key=lambda claim: claim.id)

    def put_claim(self, claim: NodeClaim) -> NodeClaim:
        written = msgspec.structs.replace(claim, version=claim.version + 1)
        is_open = claim.state is not ClaimState.RELEASED
        ttl = 0 if is_open else int(self._session.settings.retention.released_s)
        key = (self._name, shard_of(claim.id, CLAIM_SHARDS), claim.id)
        subject = f"claim {claim.id}"

        def write(writer: UUID) -> bool:
            values = (ttl, written.version, is_open, writer, body_of(written), *key, claim.version or None)
            return self._session.compare_and_set(f"writing {subject}", _PUT_CLAIM, values)

        self._compare_and_set(subject, claim.version, write, _CLAIM, key)
        return written

    def disruptions(self) -> Sequence[Disruption]:
        found = self._listed("reading disruptions", _DISRUPTIONS, DISRUPTION_SHARDS)
        return sorted((decoded(body, ANY_DISRUPTION) for (body,) in found), key=lambda each: each.id)

    def put_disruption(self, disruption: Queued) -> Queued:
        written = msgspec.structs.replace(disruption, version=disruption.version + 1)
        key = self._disruption_key(disruption.id)

        def write(writer: UUID) -> bool:
            values = (written.version, writer, body_of(written), *key, disruption.version or None)
            return self._session.compare_and_set(f"writing {disruption.id}", _PUT_DISRUPTION, values)

        self._compare_and_set(disruption.id, disruption.version, write, _DISRUPTION, key)
        return written

    def take_up(self, disruption: Disruption) -> None:
        """Write an entry as it is, with its version (1 or more), unless the queue has it already."""
        values = (disruption.version, uuid4(), body_of(disruption), *self._disruption_key(disruption.id), None)
        self._session.compare_and_set(f"taking {disruption.id} up", _PUT_DISRUPTION, values)

    def delete_disruption(self, disruption_id: str, version: int) -> None:
        key = self._disruption_key(disruption_id)

        def delete() -> bool:
            if self._session.compare_and_set(f"deleting {disruption_id}", _DELETE_DISRUPTION, (*key, version)):
                return True
            found = self._session.rows(f"reading {disruption_id}", _DISRUPTION, key, serial=True)
            if found and found[0][0] != version:
                raise ConflictError(f"{disruption_id}: another writer was first (version {version} is stale)")
            return not found  # gone: by an earlier try, or by somebody else

        self._until_known(disruption_id, delete)

    def learned(self) -> dict[str, Learned]:
        found = self._session.rows("reading what was learned", _LEARNED, (self._name,))
        return {flavour: decoded(body, Learned) for flavour, body in found}

    def put_learned(self, flavour: str, allocatable: Learned) -> None:
        self._session.write("writing what was learned", _PUT_LEARNED, (self._name, flavour, body_of(allocatable)))

    # Inside.

    def _listed(self, what: str, query: str, shards: int) -> list[tuple[Any, ...]]:
        """All rows, serially: a write that timed out and yet was accepted is finished first, and seen."""
        partitions = [(self._name, shard) for shard in range(shards)]
        return [row for rows in self._session.rows_of(what, query, partitions, serial=True) for row in rows]

    def _compare_and_set(
        self, subject: str, version: int, write: Callable[[UUID], bool], query: str, key: Sequence[Any]
    ) -> None:
        """Write over `version`, or raise ConflictError.

        A lightweight transaction whose answer was lost may have been done. It is tried again, and refused then; so
        each call has a token of its own, and a serial read tells: ours stands there, what we saw before, or another's.
        Raises TransientError where that could not be told in time.
        """
        writer = uuid4()

        def attempt() -> bool:
            if write(writer):
                return True
            found = self._session.rows(f"reading {subject}", query, key, serial=True)
            stands, by = found[0][:2] if found else (0, None)
            if by != writer and (stands or 0) != version:
                raise ConflictError(f"{subject}: another writer was first (version {version} is stale)")
            return bool(by == writer)  # else refused, and yet unchanged: what refused us has expired meanwhile

        self._until_known(subject, attempt)

    def _until_known(self, subject: str, attempt: Callable[[], bool]) -> None:
        """Repeat what may be done twice until it is done, or fails for certain.

        What fails at once is raised at once. Where an answer was lost, time is given for a node to come back; where it
        was refused by what expires meanwhile, for that.
        """
        deadline: float | None = None  # None: nothing is left open so far
        while True:
            failed: TransientError | None = None
            try:
                if attempt():
                    return
            except TransientError as error:
                if deadline is None and isinstance(error, NotDoneError):
                    raise
                failed = error
            deadline = deadline or monotonic() + SETTLING_S
            if monotonic() > deadline:
                # Without an error a row is not as we write them: it is refused for ever, though nobody changes it.
                why = f"{failed}; an earlier try may have been done" if failed else f"{subject}: refused, and unchanged"
                raise TransientError(why) from failed
            sleep(AGAIN_S)

    def _disruption_key(self, disruption_id: str) -> tuple[str, int, str]:
        return self._name, shard_of(disruption_id, DISRUPTION_SHARDS), disruption_id
