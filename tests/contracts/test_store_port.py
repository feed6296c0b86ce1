"""What every store keeps. A store that processes can share is one line of `opening`; conftest's `store` has all kinds."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.model.claims import ClaimState, NodeClaim
from htas.model.disruptions import Drain, drains_of, rearrangement_of
from htas.model.moves import MigrationMethod
from htas.model.plan import Plan
from htas.model.pods import WorkKind
from htas.model.rearrangement import OpenRearrangement, Slot
from htas.model.record import Bill, CycleRecord, ProfileEvent, ProfileRow, Run
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.ports import ConflictError, StorePort
from tests.builders import NOW, learned, make_job, make_pod, running
from tests.far_store import far_store, opened_behind
from tests.waiting import until

Opening = Callable[[], StorePort]
"""Opens the same store each time, in any process."""


@pytest.fixture(params=["sqlite", "write behind"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Opening:
    """Each store that processes can share; the next one is another line here."""
    kinds: dict[str, Opening] = {
        "sqlite": partial(SqliteStore, str(tmp_path / "htas.db")),
        "write behind": partial(opened_behind, tmp_path),
    }
    return kinds[request.param]


@pytest.fixture
def reading(opening: Opening, tmp_path: Path) -> Opening:
    """How other processes read beside the daemon: past what belongs to the daemon alone."""
    is_behind = isinstance(opening, partial) and opening.func is opened_behind
    return partial(far_store, tmp_path) if is_behind else opening


@contextmanager
def opened(opening: Opening) -> Iterator[StorePort]:
    store = opening()
    try:
        yield store
    finally:
        store.close()


def claim(name: str = "c1", state: ClaimState = ClaimState.WANTED, version: int = 0) -> NodeClaim:
    return NodeClaim(name, "g", "f", state, NOW, NOW, version=version)


def cycle(at: float) -> CycleRecord:
    return CycleRecord(0, at, ("scheduling",), ClusterSnapshot(at, ClusterView()), Plan(at))


def test_claims_are_compared_and_set(store: StorePort) -> None:
    first = store.put_claim(claim())
    assert (first.version, list(store.claims())) == (1, [first])
    second = store.put_claim(msgspec.structs.replace(first, state=ClaimState.REQUESTED))
    with pytest.raises(ConflictError):
        store.put_claim(msgspec.structs.replace(first, state=ClaimState.FAILED))
    with pytest.raises(ConflictError):
        store.put_claim(claim())
    assert list(store.claims()) == [second]


def test_released_claims_are_history(store: StorePort) -> None:
    first = store.put_claim(claim())
    store.put_claim(msgspec.structs.replace(first, state=ClaimState.RELEASED))
    assert list(store.claims()) == []
    with pytest.raises(ConflictError):
        store.put_claim(claim())


def test_claims_of_late_are_known_whether_they_are_released_or_not(store: StorePort) -> None:
    made_at = {"c1": NOW - 60, "c2": NOW, "c3": NOW + 60}
    claims = {name: msgspec.structs.replace(claim(name), created_at=at) for name, at in made_at.items()}
    written = {name: store.put_claim(each) for name, each in claims.items()}
    gone = msgspec.structs.replace(written["c2"], state=ClaimState.RELEASED, launched_for=("o",), since=NOW + 90)
    released = store.put_claim(gone)
    assert list(store.claims_made_since(NOW)) == [released, written["c3"]]
    assert list(store.claims_made_since(NOW - 60)) == [written["c1"], released, written["c3"]]


def test_of_two_writers_exactly_one_wins(store: StorePort) -> None:
    won: list[str] = []

    def write(name: str) -> None:
        try:
            store.put_claim(msgspec.structs.replace(claim(), message=name))
            won.append(name)
        except ConflictError:
            return

    threads = [Thread(target=write, args=(f"writer-{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found.message for found in store.claims()] == won


def test_drains_come_and_go(store: StorePort) -> None:
    drain = store.put_disruption(Drain("n1", "c1", "Empty", NOW))
    assert list(drains_of(store.disruptions())) == [drain]
    with pytest.raises(ConflictError):
        store.put_disruption(Drain("n1", "c1", "Empty", NOW))
    rest = store.put_disruption(rearrangement())
    assert list(store.disruptions()) == [drain, rest]
    with pytest.raises(ConflictError, match="drain/n1: another writer was first"):
        store.delete_disruption(drain.id, drain.version + 1)
    store.delete_disruption(drain.id, drain.version)
    store.delete_disruption(drain.id, drain.version)
    assert list(store.disruptions()) == [rest]


def rearrangement(**fields: Any) -> OpenRearrangement:
    slot = Slot(running(make_job("moves"), "n1"), "n2", "n1", MigrationMethod.EVICT)
    return OpenRearrangement(
        NOW, 100, (slot, Slot(make_pod("waits"), "n1")), (running(make_pod("low"), "n2"),), **fields
    )


def test_the_rearrangement_comes_and_goes(store: StorePort) -> None:
    assert rearrangement_of(store.disruptions()) is None
    first = store.put_disruption(rearrangement(settled=("u1",)))
    assert (first.version, rearrangement_of(store.disruptions())) == (1, first)
    second = store.put_disruption(msgspec.structs.replace(first, victims=(), evicted=1))
    assert rearrangement_of(store.disruptions()) == second
    store.delete_disruption(first.id, second.version)
    store.delete_disruption(first.id, second.version)
    assert rearrangement_of(store.disruptions()) is None
    assert store.put_disruption(rearrangement()).version == 1


def test_there_is_one_rearrangement_and_its_second_writer_is_told(store: StorePort) -> None:
    first = store.put_disruption(rearrangement())
    second = store.put_disruption(msgspec.structs.replace(first, moved=1))
    for stale in (rearrangement(), first):
        with pytest.raises(ConflictError, match="rearrangement: another writer was first"):
            store.put_disruption(stale)
    with pytest.raises(ConflictError, match="rearrangement: another writer was first"):
        store.delete_disruption(first.id, first.version)
    assert rearrangement_of(store.disruptions()) == second


def test_what_was_learned_is_kept(store: StorePort) -> None:
    store.put_learned("f", learned("1", "1Gi"))
    store.put_learned("f", learned("2", "2Gi"))
    assert store.learned() == {"f": learned("2", "2Gi")}


def test_bills_are_opened_and_closed(store: StorePort) -> None:
    bill = Bill("c1", "g", "f", 5, NOW)
    store.put_bill(bill)
    store.put_bill(msgspec.structs.replace(bill, ended_at=NOW + 60))
    store.put_bill(Bill("c2", "g", "f", 5, NOW))
    assert [(b.claim, b.ended_at) for b in store.bills()] == [("c1", NOW + 60), ("c2", None)]
    assert [b.claim for b in store.bills(since=NOW + 61)] == ["c2"]


def test_profile_rows_come_back_in_order(store: StorePort) -> None:
    rows = [
        ProfileRow(NOW + i, event, f"n{i % 2}", "f", i, 2**34, 8000, 2**33, 4000)
        for i, event in enumerate(ProfileEvent)
    ]
    store.add_profile(rows)
    assert list(store.profile()) == rows
    assert list(store.profile("n1", NOW + 2)) == [rows[3]]


def row(instance: str, at: float, event: ProfileEvent = ProfileEvent.DEPLOYMENT) -> ProfileRow:
    return ProfileRow(at, event, instance, "f", 0, 2**34, 8000, 2**33, 4000)


def test_the_latest_row_of_each_instance_is_known_whatever_order_they_came_in(store: StorePort) -> None:
    store.add_profile([row("b", NOW), row("a", NOW + 2), row("gone", NOW)])
    store.add_profile([row("a", NOW + 1), row("gone", NOW + 1, ProfileEvent.DEPROVISIONING), row("b", NOW + 3)])
    assert list(store.latest()) == [row("a", NOW + 2), row("b", NOW + 3)]


def run(uid: str, ended_at: float, node: str = "n1") -> Run:
    return Run(
        "ns", "p-" + uid, uid, node, WorkKind.BATCH, "Job/p-#", "img", 500, 2**30, 250_000, NOW - 60, NOW - 60, ended_at
    )


def test_runs_come_back_in_order_of_their_end(store: StorePort) -> None:
    store.add_runs([run("b", NOW + 2), run("a", NOW + 1)])
    store.add_runs([run("c", NOW + 86_400 * 3), run("c", NOW + 4, "n2")])
    store.add_runs([msgspec.structs.replace(run("b", NOW + 2), succeeded=True)])
    assert [found.uid for found in store.runs()] == ["a", "b", "c", "c"]
    assert store.runs()[1].succeeded
    assert [(found.uid, found.node) for found in store.runs(NOW + 2, limit=2)] == [("c", "n2"), ("c", "n1")]
    assert list(store.runs(NOW + 86_400 * 4)) == []


def test_cycles_come_back_as_they_were(store: StorePort) -> None:
    numbers = [store.add_cycle(cycle(NOW + i)) for i in range(5)]
    assert store.cycle(numbers[2]) == msgspec.structs.replace(cycle(NOW + 2), id=numbers[2])
    assert [found.id for found in store.cycles(limit=2)] == numbers[-2:]
    assert [found.id for found in store.cycles(since=NOW + 4)] == numbers[-1:]
    assert store.cycle(999) is None


def test_cycles_are_read_as_they_are_asked_for_while_others_write(store: StorePort) -> None:
    numbers = [store.add_cycle(cycle(NOW + i)) for i in range(3)]
    found = store.cycles()
    assert next(found).id == numbers[0]
    with ThreadPoolExecutor(1) as other:
        other.submit(store.add_cycle, cycle(NOW + 3)).result(10)
        rest = other.submit(list, found).result(10)
    assert [record.id for record in rest] == numbers[1:]


RIVALS = 2
CLAIMS = [f"c{i}" for i in range(20)]
STEPS = 20


def contend(opening: Opening, name: str, start: Barrier, told: Connection) -> None:
    """A daemon's part in a race: new claims first, then one claim taken further again and again."""
    with opened(opening) as store:
        start.wait(30)
        won = []
        for found in CLAIMS:
            try:
                store.put_claim(msgspec.structs.replace(claim(found), message=name))
                won.append(found)
            except ConflictError:
                continue
        done = 0
        while done < STEPS:
            counter = next(c for c in store.claims() if c.id == "counter")
            try:
                store.put_claim(msgspec.structs.replace(counter, message=str(int(counter.message) + 1)))
                done += 1
            except ConflictError:
                continue
        told.send(won)


def test_of_two_daemons_exactly_one_wins_each_claim_and_no_write_is_lost(opening: Opening, reading: Opening) -> None:
    context = multiprocessing.get_context("spawn")
    start, (told, tell) = context.Barrier(RIVALS), context.Pipe(duplex=False)
    with opened(opening) as store, opened(reading) as reader:
        store.put_claim(msgspec.structs.replace(claim("counter"), message="0"))
        rivals = [context.Process(target=contend, args=(opening, f"d{i}", start, tell)) for i in range(RIVALS)]
        for rival in rivals:
            rival.start()
        for rival in rivals:
            rival.join(60)
        assert [rival.exitcode for rival in rivals] == [0] * RIVALS
        won = [told.recv() for _ in rivals]
        assert sorted(won[0] + won[1]) == sorted(CLAIMS)
        kept = {found.id: found for found in reader.claims()}
        assert (kept["counter"].message, kept["counter"].version) == (str(RIVALS * STEPS), RIVALS * STEPS + 1)
        assert {len({kept[name].message for name in names}) for names in won} <= {0, 1}


def write_for_ever(opening: Opening, told: Connection) -> None:
    """Tell of each claim and drain once its write has returned."""
    store = opening()
    number = 0
    while True:
        number += 1
        store.put_claim(claim(f"c{number}"))
        store.put_disruption(Drain(f"n{number}", f"c{number}", "Empty", NOW))
        store.add_cycle(cycle(NOW + number))
        told.send(number)


def test_what_was_acknowledged_survives_a_kill(opening: Opening) -> None:
    context = multiprocessing.get_context("spawn")
    told, tell = context.Pipe(duplex=False)
    writer = context.Process(target=write_for_ever, args=(opening, tell))
    writer.start()
    tell.close()
    acknowledged = 0
    while acknowledged < 30:
        acknowledged = told.recv()
    writer.kill()
    writer.join(30)
    try:
        while True:
            acknowledged = told.recv()
    except (EOFError, OSError):  # the end, or a number that the kill cut in two
        told.close()
    wanted = set(range(1, acknowledged + 1))
    with opened(opening) as store:
        assert wanted <= {int(found.id[1:]) for found in store.claims()}
        assert wanted <= {int(found.node[1:]) for found in drains_of(store.disruptions())}
        assert wanted <= {int(found.at - NOW) for found in store.cycles(limit=10**6)}
        store.put_claim(claim("after"))


def test_a_reader_beside_the_daemon_sees_the_journal_at_once_and_history_soon(
    opening: Opening, reading: Opening
) -> None:
    with opened(opening) as daemon, opened(reading) as reader:
        first = daemon.put_claim(claim())
        number = daemon.add_cycle(cycle(NOW))
        assert list(reader.claims()) == [first]
        until(lambda: [found.id for found in reader.cycles()] == [number])
        second = daemon.put_claim(msgspec.structs.replace(first, state=ClaimState.READY))
        assert list(reader.claims()) == [second]


def test_everything_is_there_again_after_closing(opening: Opening) -> None:
    provisioned = ProfileRow(NOW, ProfileEvent.PROVISIONING, "n", "f", 0, 2**34, 8000, 2**34, 8000)
    with opened(opening) as store:
        written = store.put_claim(claim()), store.put_disruption(Drain("n", "c1", "Empty", NOW))
        store.put_learned("f", learned("1", "1Gi"))
        store.put_bill(Bill("c1", "g", "f", 5, NOW))
        store.add_profile([provisioned])
        store.add_runs([run("u", NOW)])
        number = store.add_cycle(cycle(NOW))
    with opened(opening) as store:
        assert (*store.claims(), *drains_of(store.disruptions())) == written
        assert store.learned() == {"f": learned("1", "1Gi")}
        assert list(store.bills()) == [Bill("c1", "g", "f", 5, NOW)]
        assert list(store.profile()) == [provisioned]
        assert list(store.runs()) == [run("u", NOW)]
        assert store.cycle(number) == msgspec.structs.replace(cycle(NOW), id=number)


def test_trying_it_out_changes_nothing(opening: Opening) -> None:
    with opened(opening) as store:
        written = store.put_claim(claim())
        store.put_learned("f", learned("1", "1Gi"))
        for _ in range(3):
            store.probe()
        assert list(store.claims()) == [written]
        assert store.learned() == {"f": learned("1", "1Gi")}


def test_several_claims_are_written_as_one_is(opening: Opening) -> None:
    with opened(opening) as store:
        written = store.put_claims([claim("a"), claim("b")])
        assert [each.version for each in written] == [1, 1]
        assert list(store.claims()) == written
        with pytest.raises(ConflictError):
            store.put_claims([claim("c"), claim("b")])
        assert store.put_claims([]) == []
        assert [each for each in store.claims() if each.id != "c"] == written
