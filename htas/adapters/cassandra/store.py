"""StorePort on Cassandra: every call is done when it returns, at the configured consistency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from htas.adapters.cassandra.cycles import Cycles
from htas.adapters.cassandra.history import Runs, StoredBills
from htas.adapters.cassandra.journal import Journal
from htas.adapters.cassandra.profile import Profile
from htas.adapters.cassandra.schema import require_current
from htas.adapters.cassandra.session import Session
from htas.adapters.cassandra.settings import CassandraSettings
from htas.model.claims import NodeClaim
from htas.model.disruptions import Disruption
from htas.model.flavours import Learned
from htas.model.record import Bill, CycleRecord, ProfileRow, Run
from htas.ports import Queued


class CassandraStore:
    """Implements StorePort. Safe from several threads; other processes may read and write beside it.

    Opening it changes nothing: raises PermanentError where the schema is missing or of another version, saying which
    command helps, RefusedError where a credential or right is missing, TransientError where nobody answers.
    """

    def __init__(self, settings: CassandraSettings) -> None:
        session = Session(settings)
        try:
            require_current(session)
        except BaseException:
            session.close()
            raise
        self._session = session
        self._journal = Journal(session, settings.cluster)
        self._profile = Profile(session)
        self._cycles = Cycles(session)
        self._bills = StoredBills(session)
        self._runs = Runs(session)

    # The journal.

    def claims(self) -> Sequence[NodeClaim]:
        return self._journal.claims()

    def claims_made_since(self, since: float) -> Sequence[NodeClaim]:
        return self._journal.claims_made_since(since)

    def put_claim(self, claim: NodeClaim) -> NodeClaim:
        return self._journal.put_claim(claim)

    def put_claims(self, claims: Sequence[NodeClaim]) -> list[NodeClaim]:
        return [self.put_claim(claim) for claim in claims]

    def disruptions(self) -> Sequence[Disruption]:
        return self._journal.disruptions()

    def put_disruption(self, disruption: Queued) -> Queued:
        return self._journal.put_disruption(disruption)

    def delete_disruption(self, disruption_id: str, version: int) -> None:
        self._journal.delete_disruption(disruption_id, version)

    def probe(self) -> None:
        self._journal.disruptions()  # as far as can be told without writing; daemons write to a buffer before it anyway

    # What was learned and what is owed.

    def learned(self) -> dict[str, Learned]:
        return self._journal.learned()

    def put_learned(self, flavour: str, allocatable: Learned) -> None:
        self._journal.put_learned(flavour, allocatable)

    def put_bill(self, bill: Bill) -> None:
        self._bills.put(bill)

    def bills(self, since: float = 0.0) -> Sequence[Bill]:
        return self._bills.since(since)

    # History.

    def add_profile(self, rows: Iterable[ProfileRow]) -> None:
        self._profile.add(rows)

    def profile(self, instance: str | None = None, since: float = 0.0) -> Sequence[ProfileRow]:
        return self._profile.rows(instance, since)

    def latest(self) -> Sequence[ProfileRow]:
        return self._profile.latest()

    def add_runs(self, runs: Iterable[Run]) -> None:
        self._runs.add(runs)

    def runs(self, since: float = 0.0, limit: int | None = None) -> Sequence[Run]:
        return self._runs.since(since, limit)

    def add_cycle(self, record: CycleRecord) -> int:
        return self._cycles.add(record)

    def cycle(self, cycle_id: int) -> CycleRecord | None:
        return self._cycles.one(cycle_id)

    def cycles(self, since: float = 0.0, limit: int = 100) -> Iterator[CycleRecord]:
        return self._cycles.newest(since, limit)

    def close(self) -> None:
        self._session.close()
