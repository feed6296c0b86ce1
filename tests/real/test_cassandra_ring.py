"""A ring of three with three replicas: one node may be away at LOCAL_QUORUM, two may not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event, Thread

import msgspec
import pytest

from htas.adapters.cassandra import schema
from htas.adapters.cassandra.session import Session
from htas.adapters.cassandra.settings import CassandraSettings
from htas.adapters.cassandra.store import CassandraStore
from htas.model.disruptions import Drain, drains_of
from htas.ports import TransientError
from tests.builders import NOW
from tests.contracts.test_store_port import claim, cycle, opened, row
from tests.real.harness import eventually
from tools.testenv.cassandra import DATACENTER, Cassandra

pytestmark = pytest.mark.timeout(400)
Tell = Callable[[str], None]


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cassandra]:
    servers = Cassandra(tmp_path_factory.mktemp("ring"), nodes=3, port=23_810)
    yield servers
    servers.purge()


@pytest.fixture(scope="module")
def settings(ring: Cassandra) -> CassandraSettings:
    found = CassandraSettings(ring.contact_points, DATACENTER, "test")
    session = Session(found)
    schema.init(session, {DATACENTER: 3})
    session.close()
    return found


class Writer:
    """Journals and records without a pause, as a busy daemon; notes what was told as done and what was not."""

    def __init__(self, store: CassandraStore) -> None:
        self._store = store
        self._stopping = Event()
        self.done: list[int] = []
        self.failed: list[str] = []
        self.longest_s = 0.0
        self._thread = Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            begun = time.monotonic()
            try:
                self._store.put_claim(claim(f"c{number:05}"))
                drain = self._store.put_disruption(Drain(f"n{number}", f"c{number}", "Empty", NOW))
                self._store.delete_disruption(drain.id, drain.version)
                self._store.add_profile([row(f"n{number % 9}", NOW + number)])
                self._store.add_cycle(cycle(NOW + number))
                self.done.append(number)
            except TransientError as error:
                self.failed.append(str(error))
            self.longest_s = max(self.longest_s, time.monotonic() - begun)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(60)


def test_with_one_node_killed_reads_and_writes_go_on(ring: Cassandra, settings: CassandraSettings, tell: Tell) -> None:
    with opened(lambda: CassandraStore(settings)) as store, opened(lambda: CassandraStore(settings)) as reader:
        assert isinstance(store, CassandraStore)
        writer = Writer(store)
        eventually(lambda: len(writer.done) >= 20, 60, "work is going on")
        ring.kill(2)
        before = len(writer.done)
        eventually(lambda: len(writer.done) >= before + 150, 120, "work goes on with two of three")
        assert len(reader.claims()) >= before + 150
        writer.stop()
        assert writer.failed == []
        wanted = set(writer.done)
        assert wanted <= {int(found.id[1:]) for found in reader.claims()}
        assert wanted <= {int(found.at - NOW) for found in reader.cycles(limit=10**6)}
        assert wanted <= {int(found.event_time - NOW) for found in reader.profile()}
        assert list(drains_of(reader.disruptions())) == []
        assert max(found.event_time for found in reader.latest()) == NOW + writer.done[-1]
        tell(
            f"one of three killed: {len(wanted)} rounds of work, none failed, the longest took {writer.longest_s:.1f} s"
        )
    ring.start(2)


def test_with_two_nodes_gone_it_says_so_at_once_and_works_again_with_one_back(
    ring: Cassandra, settings: CassandraSettings
) -> None:
    ring.start()
    with opened(lambda: CassandraStore(settings)) as store:
        known = store.put_claim(claim("before"))
        ring.stop(2)
        ring.stop(3)
        begun = time.monotonic()
        with pytest.raises(TransientError, match=r"[Cc]annot achieve consistency"):
            store.put_claim(msgspec.structs.replace(known, message="too few"))
        with pytest.raises(TransientError):
            store.claims()
        assert time.monotonic() - begun < 5
        ring.start(2)

        def is_back() -> bool:
            try:
                return known in store.claims()
            except TransientError:
                return False

        eventually(is_back, 30, "two of three are enough")
        assert store.put_claim(msgspec.structs.replace(known, message="enough")).version == 2
