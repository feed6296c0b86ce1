"""A store that cannot be written: work is placed, nothing is begun that must be written down, and all goes on after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from htas.adapters.sqlite.database import Database
from htas.adapters.sqlite.store import SqliteStore
from htas.adapters.write_behind.shipping import ShippingTiming
from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.claims import ClaimState
from htas.model.policy import CleaningRules
from htas.model.reasons import Kept, Unplaced
from htas.model.stages import ALL_STAGES
from htas.ports import TransientError
from tests.builders import batch_group, make_policy
from tests.far_store import Line, far_store
from tests.stories.play import Story, job
from tests.waiting import until

LONG_S = 3000.0
Opened = Callable[[Path], Any]


def behind(folder: Path) -> WriteBehindStore:
    timing = ShippingTiming(first_pause_s=0.01, longest_pause_s=0.02)
    store = WriteBehindStore(str(folder / "buffer.db"), Line(far_store(folder)).opened, timing=timing)
    assert store.catch_up(10.0)
    return store


@pytest.fixture(params=[lambda folder: SqliteStore(str(folder / "htas.db")), behind], ids=["a file", "write behind"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made = request.param(tmp_path)
    yield made
    made.close()


def file_of(store: Any) -> Database:
    copy = store if isinstance(store, SqliteStore) else store._copy
    found: Database = copy._database
    return found


def fill(store: Any) -> None:
    """Not a page more than there are, and no room in them for a claim: SQLITE_FULL."""
    database = file_of(store)
    database.rows("PRAGMA max_page_count = 1")  # SQLite takes it for as many as there are
    for length in (1000, 100, 1):
        with suppress(TransientError):
            for number in range(10_000):
                with database.transaction() as connection:
                    name = f"filler {length} {number} ".ljust(length, "x")
                    connection.execute("INSERT INTO claims VALUES (?, 1, 0, '{}')", (name,))


def make_room(store: Any) -> None:
    database = file_of(store)
    database.rows("PRAGMA max_page_count = 1000000")
    with database.transaction() as connection:
        connection.execute("DELETE FROM claims WHERE id LIKE 'filler%'")


def forbid(store: Any) -> None:
    file_of(store).rows("PRAGMA query_only = ON")


def allow(store: Any) -> None:
    file_of(store).rows("PRAGMA query_only = OFF")


def story_on(store: Any, *arrivals: Any, empty_for_s: float = 0.0) -> Story:
    story = Story(make_policy([batch_group(cleaning=CleaningRules(empty_for_s=empty_for_s))]), *arrivals)
    story.store.close()
    story.store = store
    story.crash()
    return story


TROUBLES = [
    pytest.param(fill, make_room, "full", id="the disk is full"),
    pytest.param(forbid, allow, "readonly", id="the file may not be written"),
]


Trouble = Callable[[Any], None]


@pytest.mark.parametrize(("break_it", "mend_it", "why"), TROUBLES)
def test_what_has_room_is_placed_and_what_needs_a_machine_waits_and_says_so(
    store: Any, break_it: Trouble, mend_it: Trouble, why: str
) -> None:
    fits = job("fits", 200.0, LONG_S, 100, 0.25)
    large = job("large", 200.0, LONG_S, 1000, 1.0)
    story = story_on(store, job("first", runs_s=LONG_S, gib=0.5), fits, large)
    story.play(150)
    nodes = story.nodes
    break_it(store)
    with capture_logs() as logs:
        story.play(600)
    placed = {pod.name.split("-")[0]: pod.node for pod in story.world.cluster.observe().pods}
    assert (placed["fits"] in nodes, placed["large"]) == (True, None)
    last = story.seen[-1]
    assert why in last.snapshot.store_problem
    assert why in story.daemon.store_problem
    assert {item.reason for item in last.plan.unplaced} == {Unplaced.STORE_UNWRITABLE}
    assert why in last.plan.unplaced[0].message
    assert len(logs) < 8, "told at its beginning, and now and then"
    assert story.nodes == nodes
    mend_it(store)
    story.play(700)
    assert not story.daemon.store_problem
    story.play(4 * LONG_S).assert_over(3)
    bought = [
        o.subject for result in story.seen for o in result.outcomes if (o.action, o.status.value) == ("launch", "done")
    ]
    assert len(bought) == len(set(bought))
    if isinstance(store, WriteBehindStore):  # whose threads could not ship meanwhile
        until(lambda: store.flush(0.1))
    assert sorted(run.pod for run in store.runs()) == ["first-1", "fits-1", "large-1"]


def test_an_idle_node_is_kept_while_its_end_cannot_be_written_down(store: Any) -> None:
    story = story_on(store, job("one", runs_s=60.0), job("two", 2000.0, 60.0), empty_for_s=60.0).play(130)
    nodes = story.nodes
    forbid(store)
    story.play(1900)
    assert story.nodes == nodes
    assert {item.reason for item in story.daemon.run_cycle(ALL_STAGES).plan.kept} == {Kept.STORE_UNWRITABLE}
    assert story.play(2020).world.ledger.finished == 1
    assert [pod.node for pod in story.world.cluster.observe().pods] == nodes, "placed as ever"
    allow(store)
    story.play(3 * 3600).assert_over(2)


@pytest.mark.parametrize(("break_it", "mend_it", "why"), TROUBLES)
def test_machines_on_their_way_are_used_though_nothing_of_them_can_be_written_down(
    store: Any, break_it: Trouble, mend_it: Trouble, why: str
) -> None:
    story = story_on(store, job("one", runs_s=LONG_S, gib=0.5)).play(30)
    assert [claim.state for claim in store.claims()] == [ClaimState.REQUESTED]
    break_it(store)
    story.play(600)
    assert [pod.node for pod in story.world.cluster.observe().pods] == story.nodes != []
    story.play(LONG_S + 1000)
    assert story.world.ledger.finished == 1
    mend_it(store)
    story.play(4 * LONG_S).assert_over(1)


def test_a_damaged_file_stops_no_placing(store: Any) -> None:
    """Not even in a daemon that has never read it."""
    story = story_on(store, job("first", runs_s=LONG_S, gib=0.5), job("fits", 200.0, LONG_S, 100, 0.25)).play(150)
    nodes = story.nodes
    database = file_of(store)
    with database.transaction() as connection:
        connection.execute("UPDATE claims SET body = x'00'")
    story.crash()
    story.play(600)
    assert {pod.node for pod in story.world.cluster.observe().pods} == set(nodes)
    assert "cannot be read" in story.seen[-1].snapshot.store_problem
    assert story.nodes == nodes
