"""The local copy: a store of its own, in which what the remote one knows better can be put as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from htas.adapters.sqlite.database import Database
from htas.adapters.sqlite.store import SqliteStore
from htas.model.claims import ClaimState, NodeClaim
from htas.model.disruptions import Disruption
from htas.model.record import Bill


class LocalCopy(SqliteStore):
    """A SqliteStore whose journal may also be overwritten, versions and all, by the remote one's."""

    @property
    def database(self) -> Database:
        """The file, for what lies beside the copy in it."""
        return self._database

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written inside is written as a whole, and is on the disk afterwards."""
        with self._database.transaction():
            yield

    def claim(self, claim_id: str) -> NodeClaim | None:
        """A claim, unless it is Released."""
        return next((claim for claim in self.claims() if claim.id == claim_id), None)

    def adopt_claims(self, claims: Iterable[NodeClaim]) -> None:
        """Write claims as they are, over whatever was there."""
        values = [
            (claim.id, claim.version, int(claim.state is not ClaimState.RELEASED), msgspec.json.encode(claim))
            for claim in claims
        ]
        with self._database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", values)

    def adopt_bills(self, bills: Iterable[Bill]) -> None:
        """Write bills as they are, over whatever was there."""
        values = [(bill.id, bill.ended_at, msgspec.json.encode(bill)) for bill in bills]
        with self._database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO bills VALUES (?, ?, ?)", values)

    def close_claims(self, ids: Iterable[str]) -> None:
        """Claims that another daemon has released."""
        known = {claim.id: claim for claim in self.claims()}
        self.adopt_claims(
            msgspec.structs.replace(known[claim_id], state=ClaimState.RELEASED, version=known[claim_id].version + 1)
            for claim_id in ids
            if claim_id in known
        )

    def adopt_disruption(self, disruption_id: str, theirs: Disruption | None) -> None:
        """Write an entry of the queue as it is; None: there is none."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM disruptions WHERE id = ?", (disruption_id,))
            if theirs is not None:
                values = (theirs.id, theirs.version, msgspec.json.encode(theirs))
                connection.execute("INSERT INTO disruptions VALUES (?, ?, ?)", values)
