"""The journal: claims, drains and the rearrangement, written by lightweight transactions, and what was learned.

Every write of a claim is `UPDATE … IF version = ?`, the first one with null: unlike INSERT it leaves no row marker, so
that a released claim is gone as a whole when its columns expire. Lightweight and plain writes of one row must not be
mixed (their clocks differ), so drains and rearrangements are deleted by `IF EXISTS`.
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
from htas.model.rearrangement import OpenRearrangement
from htas.model.resources import Resources
from htas.model.snapshot import Drain
from htas.ports import ConflictError, TransientError

CLAIM_SHARDS = 32
"""Paxos runs by partition: two claims of one shard wait for each other."""
DRAIN_SHARDS = 8
AGAIN_S, SETTLING_S = 0.2, 5.0
"""A write whose answer was lost is tried again so often, for so long; a connection is made anew within a second."""

_CLAIMS = "SELECT open, body FROM KEYSPACE.claims WHERE cluster = ? AND shard = ?"
_CLAIM = "SELECT version, writer FROM KEYSPACE.claims WHERE cluster = ? AND shard = ? AND id = ?"
_PUT_CLAIM = (
    "UPDATE KEYSPACE.claims USING TTL ? SET version = ?, open = ?, writer = ?, body = ?"
    " WHERE cluster = ? AND shard = ? AND id = ? IF version = ?"
)
_DRAINS = "SELECT body FROM KEYSPACE.drains WHERE cluster = ? AND shard = ?"
_DRAIN = "SELECT version, writer FROM KEYSPACE.drains WHERE cluster = ? AND shard = ? AND node = ?"
_PUT_DRAIN = (
    "UPDATE KEYSPACE.drains SET version = ?, writer = ?, body = ?"
    " WHERE cluster = ? AND shard = ? AND node = ? IF version = ?"
)
_DELETE_DRAIN = "DELETE FROM KEYSPACE.drains WHERE cluster = ? AND shard = ? AND node = ? IF EXISTS"
_REARRANGEMENT = "SELECT version, writer, body FROM KEYSPACE.rearrangements WHERE cluster = ?"
_PUT_REARRANGEMENT = (
    "UPDATE KEYSPACE.rearrangements SET version = ?, writer = ?, body = ? WHERE cluster = ? IF version = ?"
)
_DELETE_REARRANGEMENT = "DELETE FROM KEYSPACE.rearrangements WHERE cluster = ? IF version = ?"
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

    def drains(self) -> Sequence[Drain]:
        found = self._listed("reading drains", _DRAINS, DRAIN_SHARDS)
        return sorted((decoded(body, Drain) for (body,) in found), key=lambda drain: drain.node)

    def put_drain(self, drain: Drain) -> Drain:
        written = msgspec.structs.replace(drain, version=drain.version + 1)
        key = self._drain_key(drain.node)
        subject = f"drain of {drain.node}"

        def write(writer: UUID) -> bool:
            values = (written.version, writer, body_of(written), *key, drain.version or None)
            return self._session.compare_and_set(f"writing {subject}", _PUT_DRAIN, values)

        self._compare_and_set(subject, drain.version, write, _DRAIN, key)
        return written

    def delete_drain(self, node: str) -> None:
        def delete() -> bool:
            self._session.compare_and_set(f"deleting drain of {node}", _DELETE_DRAIN, self._drain_key(node))
            return True

        self._until_known(delete)

    def rearrangement(self) -> OpenRearrangement | None:
        found = self._session.rows("reading the rearrangement", _REARRANGEMENT, (self._name,), serial=True)
        return decoded(found[0][2], OpenRearrangement) if found else None

    def put_rearrangement(self, rearrangement: OpenRearrangement) -> OpenRearrangement:
        written = msgspec.structs.replace(rearrangement, version=rearrangement.version + 1)

        def write(writer: UUID) -> bool:
            values = (written.version, writer, body_of(written), self._name, rearrangement.version or None)
            return self._session.compare_and_set("writing the rearrangement", _PUT_REARRANGEMENT, values)

        self._compare_and_set("rearrangement", rearrangement.version, write, _REARRANGEMENT, (self._name,))
        return written

    def delete_rearrangement(self, version: int) -> None:
        def delete() -> bool:
            if self._session.compare_and_set(
                "deleting the rearrangement", _DELETE_REARRANGEMENT, (self._name, version)
            ):
                return True
            found = self._session.rows("reading the rearrangement", _REARRANGEMENT, (self._name,), serial=True)
            if found and found[0][0] != version:
                raise ConflictError(f"rearrangement: another writer was first (version {version} is stale)")
            return not found  # gone: by an earlier try, or by somebody else

        self._until_known(delete)

    def learned(self) -> dict[str, Resources]:
        found = self._session.rows("reading what was learned", _LEARNED, (self._name,))
        return {flavour: decoded(body, Resources) for flavour, body in found}

    def put_learned(self, flavour: str, allocatable: Resources) -> None:
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

        self._until_known(attempt)

    def _until_known(self, attempt: Callable[[], bool]) -> None:
        """Repeat what may be done twice until it is done, or fails for certain.

        What fails at once is raised at once. Where an answer was lost, time is given for a node to come back.
        """
        deadline: float | None = None  # None: nothing is left open so far
        while True:
            try:
                if attempt():
                    return
            except TransientError as error:
                if deadline is None and not isinstance(error, NotDoneError):
                    deadline = monotonic() + SETTLING_S
                if deadline is None:
                    raise
                if monotonic() > deadline:
                    raise TransientError(f"{error}; an earlier try may have been done") from error
            sleep(AGAIN_S)

    def _drain_key(self, node: str) -> tuple[str, int, str]:
        return self._name, shard_of(node, DRAIN_SHARDS), node
