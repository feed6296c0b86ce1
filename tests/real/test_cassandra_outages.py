"""Cassandra is killed in the middle of things, and a daemon starts anew where no file is left but what Cassandra has."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from htas.adapters.cassandra.settings import CassandraSettings
from htas.adapters.cassandra.store import CassandraStore
from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.claims import ClaimState, NodeClaim
from htas.model.record import CycleRecord, ProfileEvent, ProfileRow
from tests.real.conftest import Tell
from tests.real.harness import Htas, configuration, eventually
from tools.testenv.cassandra import DATACENTER, Cassandra
from tools.testenv.daemon import HTAS

pytestmark = pytest.mark.timeout(400)

DOWN_S = 60.0
RATE = 20
LOGGED = ("launch", "drain", "delete", "delete-node")
"""Verbs that a daemon logs one by one: an account of its own beside what it recorded."""
Config = Callable[..., Path]


@pytest.fixture
def config(keyspace: CassandraSettings, tmp_path: Path) -> Config:
    """Makes a configuration of a sandbox with its store in Cassandra."""

    def make(name: str, **changes: Any) -> Path:
        points = [f"{host}:{port}" for host, port in keyspace.contact_points]
        store = {
            "contactPoints": points,
            "localDatacenter": DATACENTER,
            "keyspace": keyspace.keyspace,
            "buffer": {"path": f"{name}.db"},
        }
        return configuration(tmp_path, tmp_path / "none", name, store={"cassandra": store}, **changes)

    return make


@pytest.fixture
def store(keyspace: CassandraSettings) -> Iterator[CassandraStore]:
    """What the daemon's cluster has in Cassandra."""
    opened = CassandraStore(msgspec.structs.replace(keyspace, cluster="trial"))
    yield opened
    opened.close()


class Writer(Thread):
    """Writes numbered rows at a rate, and a claim a second; remembers what was acknowledged, and the longest waits."""

    def __init__(self, store: WriteBehindStore) -> None:
        super().__init__(name="writer", daemon=True)
        self.store = store
        self.rows = self.claims = 0
        self.row_s = self.claim_s = 0.0
        self.done = Event()

    def run(self) -> None:
        begun = time.time()
        while not self.done.wait(max(0.0, begun + self.rows / RATE - time.time())):
            # When it was due: after a pause a thousand are written in 60 ms, and of a node's in one millisecond one is kept.
            now = begun + self.rows / RATE
            row = ProfileRow(now, ProfileEvent.DEPLOYMENT, f"node-{self.rows % 20}", "f", self.rows, 1, 1, 1, 1)
            self.row_s = max(self.row_s, timed(partial(self.store.add_profile, [row])))
            self.rows += 1
            if self.rows % RATE == 0:
                claim = NodeClaim(f"c{self.claims}", "g", "f", ClaimState.WANTED, now, now)
                self.claim_s = max(self.claim_s, timed(partial(self.store.put_claim, claim)))
                self.claims += 1


def timed(act: Callable[[], object]) -> float:
    begun = time.monotonic()
    act()
    return time.monotonic() - begun


def test_a_minute_without_cassandra(
    cassandra: Cassandra, keyspace: CassandraSettings, config: Config, store: CassandraStore, tmp_path: Path, tell: Tell
) -> None:
    settings = msgspec.structs.replace(keyspace, cluster="writer")
    behind = WriteBehindStore(str(tmp_path / "writer.db"), partial(CassandraStore, settings))
    assert behind.catch_up(20)
    writer = Writer(behind)
    with Htas(config("htas", provider={"sandbox": {"workload": "day", "speed": 10}}), tmp_path / "log") as daemon:
        eventually(lambda: daemon.metric("htas_actions_total", verb="launch", status="done") > 3, 60, "work begins")
        writer.start()
        time.sleep(10)
        cassandra.kill()
        cycles = [daemon.metric("htas_cycles_total", result="success")]
        for _ in range(int(DOWN_S)):
            time.sleep(1.0)
            assert daemon.get("/healthz")[0] == 200
            cycles.append(daemon.metric("htas_cycles_total", result="success"))
        assert "store away since" in daemon.get("/healthz")[1]
        waiting = int(daemon.metric("htas_store_outbox_entries"))
        cassandra.start()
        up = time.monotonic()
        eventually(lambda: daemon.metric("htas_store_outbox_entries") < 5, 200, "the buffer is shipped")
        drained_s = time.monotonic() - up
        assert daemon.metric("htas_store_away") == 0
        assert daemon.metric("htas_store_dropped_total") == 0
        writer.done.set()
        writer.join(30)
        assert daemon.stop(40) == 0
    assert behind.flush(60)
    behind.close()

    # Nothing that was acknowledged is missing.
    reader = CassandraStore(settings)
    assert sorted(row.runtime for row in reader.profile()) == list(range(writer.rows))
    assert {claim.id for claim in reader.claims()} == {f"c{i}" for i in range(writer.claims)}
    reader.close()
    records = list(store.cycles(limit=10**6))
    assert recorded(records) == logged(daemon)

    # Nobody waited for it, and it was shipped in order.
    assert writer.row_s < 2.0, "rows go to the disk alone"
    assert writer.claim_s < 6.0, "a claim waits for 2 s, and on a busy machine a little more"
    pause_s = longest_rest(cycles)
    assert pause_s <= 5, cycles
    written = cassandra.admin.execute(f"SELECT id, WRITETIME(body) AS at, chunk FROM {keyspace.keyspace}.cycle_bodies")
    first_chunks = sorted((row.id, row.at) for row in written if row.chunk == 0)
    assert [at for _, at in first_chunks] == sorted(at for _, at in first_chunks)
    tell(
        f"Cassandra killed for {DOWN_S:g} s: {writer.rows} rows at {RATE}/s, {writer.claims} claims and {len(records)} "
        f"cycles, none missing; {waiting} entries waited, shipped {drained_s:.1f} s after its return; longest wait for a "
        f"row {writer.row_s * 1000:.0f} ms, for a claim {writer.claim_s:.1f} s; {cycles[-1] - cycles[0]:g} cycles "
        f"meanwhile, seconds without one: {pause_s} at most"
    )


Account = Counter[tuple[str, str, str]]


def recorded(records: list[CycleRecord]) -> Account:
    outcomes = (outcome for record in records for outcome in record.outcomes)
    return Counter((each.action, each.subject, each.status.value) for each in outcomes if each.action in LOGGED)


def logged(daemon: Htas) -> Account:
    lines = (line for line in daemon.lines if line.get("event") in LOGGED)
    return Counter((line["event"], line["subject"], line["status"]) for line in lines)


def longest_rest(counts: list[float]) -> int:
    """The most samples, taken every second, without a cycle between them."""
    longest = rest = 0
    for before, now in pairwise(counts):
        rest = rest + 1 if now == before else 0
        longest = max(longest, rest)
    return longest


@contextmanager
def world_at(socket: Path, config: Path) -> Iterator[None]:
    """A sandbox in a process of its own."""
    with subprocess.Popen(
        [HTAS, "sandbox", "--config", config, "--socket", socket], stderr=subprocess.DEVNULL
    ) as world:
        eventually(socket.exists, 20, "the world listens")
        try:
            yield
        finally:
            world.terminate()


def test_a_daemon_starts_on_another_machine_from_what_cassandra_has(
    config: Config, store: CassandraStore, tmp_path: Path
) -> None:
    socket = tmp_path / "world.sock"
    world = {"provider": {"sandbox": {"workload": "day", "speed": 120, "address": str(socket)}}}
    with world_at(socket, config("world", **world)):
        with Htas(config("first", **world), tmp_path / "first.log") as daemon:
            spent = eventually(lambda: daemon.metric("htas_cost_total"), 60, "something was bought")
            eventually(lambda: len(store.runs()) > 5, 60, "work has ended")
            eventually(lambda: daemon.metric("htas_store_outbox_entries") == 0, 30, "all is shipped")
            daemon.kill()
        claims = {claim.id: claim for claim in store.claims()}
        bills = {bill.claim: bill for bill in store.bills()}
        assert claims
        with Htas(config("second", **world), tmp_path / "second.log") as daemon:
            daemon.says("the journal is as the store has it")
            eventually(lambda: daemon.metric("htas_cycles_total", result="success") > 3, 60, "it goes on")
            assert daemon.metric("htas_cost_total") >= spent
            assert not daemon.said("adopt"), "it knew every machine"
            for kept in store.bills():
                if kept.claim in bills:
                    assert kept.started_at == bills[kept.claim].started_at
            for claim in store.claims():
                if claim.id in claims:
                    assert (claim.created_at, claim.instance) == (
                        claims[claim.id].created_at,
                        claims[claim.id].instance,
                    )
                    assert claim.version >= claims[claim.id].version
            assert set(claims) <= {bill.claim for bill in store.bills()} | {claim.id for claim in store.claims()}
            assert daemon.stop(40) == 0
