"""What a store on Cassandra promises beyond the contract: replays, lost answers, outages, ends of keeping."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from threading import Thread

import msgspec
import pytest

from htas.adapters.cassandra.errors import NotDoneError
from htas.adapters.cassandra.history import RUN_SHARDS
from htas.adapters.cassandra.rows import date_of, day_of, shard_of
from htas.adapters.cassandra.settings import CassandraSettings
from htas.adapters.cassandra.store import CassandraStore
from htas.model.claims import ClaimState, NodeClaim
from htas.model.disruptions import Drain, drains_of
from htas.model.record import DAY_S, Bill, ProfileEvent, Retention
from htas.ports import ConflictError, PermanentError, StorePort, TransientError
from tests.builders import NOW
from tests.contracts.test_store_port import claim, cycle, opened, row, run
from tests.real.cutting import AnswerCutter
from tests.real.harness import eventually
from tools.testenv.cassandra import Cassandra

pytestmark = pytest.mark.timeout(180)
MIDNIGHT = NOW - NOW % DAY_S


@pytest.fixture
def store(keyspace: CassandraSettings) -> Iterator[CassandraStore]:
    with opened(lambda: CassandraStore(keyspace)) as made:
        assert isinstance(made, CassandraStore)
        yield made


def test_rows_written_twice_are_one_and_late_ones_never_win(store: CassandraStore, keyspace: CassandraSettings) -> None:
    rows = [row(f"n{i % 7}", MIDNIGHT + i * 600 + i / 1000) for i in range(300)]
    gone = row("n6", rows[-1].event_time + 1, ProfileEvent.DEPROVISIONING)
    store.add_profile([*rows, gone])
    newest = list(store.latest())
    assert [found.instance_name for found in newest] == [f"n{i}" for i in range(6)]
    with opened(lambda: CassandraStore(keyspace)) as another:  # a daemon that catches up with what was written
        another.add_profile(reversed(rows))
        another.add_profile(rows[:100])
    assert list(store.profile()) == [*rows, gone]
    assert list(store.latest()) == newest


def test_a_day_of_an_instance_is_read_alone_and_across_midnight(store: CassandraStore) -> None:
    rows = [row("n1", MIDNIGHT + i * DAY_S / 4) for i in range(12)]
    store.add_profile([*rows, *(row("n2", each.event_time) for each in rows)])
    assert list(store.profile("n1", MIDNIGHT + DAY_S)) == rows[4:]
    assert list(store.profile("n1", MIDNIGHT + 1.75 * DAY_S)) == rows[7:]
    assert list(store.profile("n3")) == []


def test_a_cycle_larger_than_one_write_comes_back(store: CassandraStore) -> None:
    noise = random.Random(1).randbytes(2_000_000).hex()  # does not compress to less than it was: 2 MB, four writes
    record = msgspec.structs.replace(cycle(NOW), stages=(noise,))
    number = store.add_cycle(record)
    assert store.add_cycle(record) == number
    assert [found.stages for found in store.cycles()] == [(noise,)]


def test_of_a_cycle_whose_writer_was_ended_half_way_nothing_is_read(
    store: CassandraStore, keyspace: CassandraSettings, cassandra: Cassandra
) -> None:
    noise = random.Random(1).randbytes(700_000).hex()
    number = store.add_cycle(msgspec.structs.replace(cycle(NOW), stages=(noise,)))
    cassandra.admin.execute(
        f"DELETE FROM {keyspace.keyspace}.cycle_bodies WHERE cluster = 'test' AND id = %s AND chunk = 1", [number]
    )
    assert store.cycle(number) is None
    assert list(store.cycles()) == []


def test_a_run_that_ended_otherwise_is_read_once(store: CassandraStore) -> None:
    store.add_runs([run("a", NOW), run("b", NOW + 1)])
    store.add_runs([run("a", NOW + 2 * DAY_S)])
    assert [(found.uid, found.ended_at) for found in store.runs()] == [("b", NOW + 1), ("a", NOW + 2 * DAY_S)]


@pytest.mark.parametrize("others", [0, 1, 40])
def test_a_run_that_cannot_be_read_does_not_lose_the_others(
    others: int, store: CassandraStore, keyspace: CassandraSettings, cassandra: Cassandra
) -> None:
    """It may be the only one of its day. Where there is no other, what is wrong is told."""
    store.add_runs([run(f"r{i}", NOW + i) for i in range(others)])
    store.add_runs([run("damaged", NOW + 2 * DAY_S)])
    for shard in range(RUN_SHARDS):
        found = cassandra.admin.execute(
            f"SELECT day, shard, ended_at, uid, node FROM {keyspace.keyspace}.runs"
            " WHERE cluster = 'test' AND day = %s AND shard = %s",
            [date_of(day_of(NOW + 2 * DAY_S)), shard],
        )
        for key in found:
            cassandra.admin.execute(
                f"UPDATE {keyspace.keyspace}.runs SET body = '[[' WHERE cluster = 'test' AND day = %s AND shard = %s"
                " AND ended_at = %s AND uid = %s AND node = %s",
                list(key),
            )
    if not others:
        with pytest.raises(PermanentError, match="a stored Run cannot be read"):
            store.runs()
    else:
        assert [found.uid for found in store.runs()] == [f"r{i}" for i in range(others)]


def test_a_bill_closed_by_one_who_died_before_the_open_one_was_removed_is_closed(
    store: CassandraStore, keyspace: CassandraSettings, cassandra: Cassandra
) -> None:
    bill = Bill("c1", "g", "f", 5, NOW)
    closed = msgspec.structs.replace(bill, ended_at=NOW + 60)
    store.put_bill(closed)
    store.put_bill(bill)  # what a close leaves that ended half-way: both
    assert list(store.bills()) == [closed]
    assert list(store.bills(since=NOW + 61)) == []


def test_clusters_that_share_a_keyspace_do_not_see_each_other(
    store: CassandraStore, keyspace: CassandraSettings
) -> None:
    store.put_claim(claim())
    store.put_disruption(Drain("n1", "c1", "Empty", NOW))
    store.add_profile([row("n1", NOW)])
    store.add_cycle(cycle(NOW))
    store.add_runs([run("u", NOW)])
    store.put_bill(Bill("c1", "g", "f", 5, NOW, NOW + 1))
    with opened(lambda: CassandraStore(msgspec.structs.replace(keyspace, cluster="other"))) as other:
        found = (
            other.claims(),
            drains_of(other.disruptions()),
            other.profile(),
            other.latest(),
            list(other.cycles()),
            other.runs(),
        )
        assert [len(each) for each in (*found, other.bills())] == [0] * 7
        assert other.put_claim(claim()).version == 1


def test_a_keyspace_of_another_schema_is_refused(keyspace: CassandraSettings, cassandra: Cassandra) -> None:
    stamp = f"UPDATE {keyspace.keyspace}.schema_version SET version = %s WHERE name = 'htas'"
    cassandra.admin.execute(stamp, (3,))
    try:
        with pytest.raises(PermanentError, match="is of schema 3, this htas reads 1"):
            CassandraStore(keyspace)
    finally:
        cassandra.admin.execute(stamp, (1,))


def test_a_released_claim_is_forgotten_as_a_whole(keyspace: CassandraSettings, cassandra: Cassandra) -> None:
    briefly = msgspec.structs.replace(keyspace, retention=Retention(released_s=3))
    with opened(lambda: CassandraStore(briefly)) as store:
        first = store.put_claim(claim())
        store.put_claim(msgspec.structs.replace(first, state=ClaimState.RELEASED))
        with pytest.raises(ConflictError):
            store.put_claim(claim())
        rows = f"SELECT * FROM {keyspace.keyspace}.claims"
        eventually(lambda: not cassandra.admin.execute(rows).all(), 20, "no trace of it is left")
        assert store.put_claim(claim()).version == 1


def test_a_write_whose_answer_was_lost_is_never_taken_for_another_writers(
    keyspace: CassandraSettings, cassandra: Cassandra
) -> None:
    """One writer behind a network that loses answers: every write is told as done, and was done once."""
    cutter = AnswerCutter(cassandra.contact_points[0])
    through = msgspec.structs.replace(keyspace, contact_points=(("127.0.0.1", cutter.port),))
    with opened(lambda: CassandraStore(through)) as store, opened(lambda: CassandraStore(keyspace)) as other:
        known = store.put_claim(claim())
        for number in range(2, 32):
            if number % 3 == 0:
                cutter.lose_next()
            known = store.put_claim(msgspec.structs.replace(known, message=str(number)))
            assert (known.version, list(other.claims())) == (number, [known])
        cutter.lose_next()
        drain = store.put_disruption(Drain("n1", "c1", "Empty", NOW))
        cutter.lose_next()
        store.delete_disruption(drain.id, drain.version)
        assert list(drains_of(other.disruptions())) == []
        other.put_claim(msgspec.structs.replace(known, message="another"))
        cutter.lose_next()
        with pytest.raises(ConflictError):
            store.put_claim(msgspec.structs.replace(known, message="too late"))
    cutter.stop()
    assert cutter.lost == 13


@pytest.mark.timeout(240)
def test_a_store_outlives_its_server(store: CassandraStore, cassandra: Cassandra) -> None:
    first = store.put_claim(claim())
    cassandra.kill()
    wanted = msgspec.structs.replace(first, state=ClaimState.REQUESTED)
    with pytest.raises(TransientError, match=r"Cassandra at 127\.0\.0\.1"):
        store.put_claim(wanted)
    begun = time.monotonic()
    with pytest.raises(NotDoneError):
        store.put_claim(wanted)
    assert time.monotonic() - begun < 1  # once nobody can be reached, that is told at once
    with pytest.raises(TransientError):
        store.add_profile([row("n1", NOW)])
    cassandra.start()

    def is_back() -> bool:
        try:
            return list(store.claims()) == [first]
        except TransientError:
            return False

    begun = time.monotonic()
    eventually(is_back, 15, "the same store works again")
    assert time.monotonic() - begun < 5
    second = store.put_claim(wanted)
    assert list(store.claims()) == [second]


def test_a_server_that_hangs_is_given_up_in_time(keyspace: CassandraSettings, cassandra: Cassandra) -> None:
    with opened(lambda: CassandraStore(msgspec.structs.replace(keyspace, timeout_s=2.0))) as store:
        first = store.put_claim(claim())
        cassandra.freeze()
        try:
            begun = time.monotonic()
            with pytest.raises(TransientError):
                store.put_claim(msgspec.structs.replace(first, state=ClaimState.REQUESTED))
            assert time.monotonic() - begun < 10
        finally:
            cassandra.thaw()
        # What was on its way may be done now: it stands as a whole, or not at all.
        (found,) = eventually(lambda: _claims(store), 20, "it answers again")
        assert found.state in (ClaimState.WANTED, ClaimState.REQUESTED)
        assert found.version == (1 if found.state is ClaimState.WANTED else 2)


def _claims(store: StorePort) -> list[NodeClaim]:
    try:
        return list(store.claims())
    except TransientError:
        return []


def test_many_threads_share_a_store(store: CassandraStore) -> None:
    def write(number: int) -> None:
        for i in range(20):
            store.put_claim(claim(f"c{number}-{i}"))
            store.add_profile([row(f"n{number}", NOW + i)])

    threads = [Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.claims()) == 120
    assert [found.event_time for found in store.latest()] == [NOW + 19] * 6


def test_the_newest_runs_are_found_where_one_shard_has_most_of_them(store: StorePort) -> None:
    """A shard is asked for its part of them first: here nearly all of the newest are in one."""
    alike = [f"u{i}" for i in range(20_000) if shard_of(f"u{i}", RUN_SHARDS) == 7][:300]
    others = [f"u{i}" for i in range(20_000) if shard_of(f"u{i}", RUN_SHARDS) != 7][:300]
    store.add_runs([run(uid, NOW + i) for i, uid in enumerate(others)])
    store.add_runs([run(uid, NOW + 1000 + i) for i, uid in enumerate(alike)])
    assert [found.uid for found in store.runs(limit=250)] == alike[50:]
    assert [found.uid for found in store.runs(limit=310)] == others[-10:] + alike
