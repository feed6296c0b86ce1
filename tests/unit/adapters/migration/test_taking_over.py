"""The moment in which a twin takes its source's place: only a twin that lives does, and only once."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Semaphore

import pytest
from structlog.testing import capture_logs

from htas.adapters.migration.documents import COST_BEFORE, FIRST_TO_GO, journalled, record_in, settled
from htas.adapters.migration.method import Dump
from htas.model.deletion_costs import DELETION_COST
from htas.model.migrations import MIGRATION, Failure, MigrationRecord, MigrationState
from htas.model.moves import MigrationMethod
from htas.model.pods import MOVING, TWIN_OF
from htas.ports import ConflictError
from tests.builders import make_pod
from tests.unit.adapters.migration.cluster import Json, merge
from tests.unit.adapters.migration.moving import QUICK, Disks, World, is_owned, over
from tests.waiting import until

RESTORED, DONE, ROLLED_BACK = MigrationState.RESTORED, MigrationState.DONE, MigrationState.ROLLED_BACK


def crash(world: World) -> None:
    world.cluster.say(world.twin, {"terminated": {"exitCode": 139}}, phase="Failed")


def delete(world: World) -> None:
    world.cluster.lose_node("b")  # else it would be gone, not going
    world.twin["metadata"]["deletionTimestamp"] = "2026-11-22T00:00:00Z"


TWIN_IS_LOST = pytest.mark.parametrize(
    ("lose", "reason"),
    [
        pytest.param(crash, Failure.RESTORE_FAILED, id="it crashed"),
        pytest.param(delete, Failure.TARGET_LOST, id="somebody deletes it"),
        pytest.param(lambda world: world.cluster.lose_node("b"), Failure.TARGET_LOST, id="its node is not Ready"),
        pytest.param(
            lambda world: world.cluster.lose_node("b", with_object=True), Failure.TARGET_LOST, id="its node is gone"
        ),
    ],
)


@TWIN_IS_LOST
def test_a_source_stays_its_jobs_when_the_twin_was_lost_while_no_daemon_ran(
    lose: Callable[[World], None], reason: Failure
) -> None:
    world = World()
    world.left(RESTORED)
    lose(world)
    record = world.carried_on()
    assert (record.state, record.reason) == (ROLLED_BACK, reason)
    assert is_owned(world.source)
    assert not world.source["metadata"].get("deletionTimestamp")


@TWIN_IS_LOST
def test_a_half_done_switch_is_not_finished_for_a_lost_twin(lose: Callable[[World], None], reason: Failure) -> None:
    world = World()
    world.left(RESTORED)
    world.switch_half()
    lose(world)
    record = world.carried_on()
    assert (record.state, record.reason) == (ROLLED_BACK, reason)
    assert is_owned(world.source), "its Job has it back"


@TWIN_IS_LOST
def test_a_switch_is_undone_as_long_as_the_source_lives(lose: Callable[[World], None], reason: Failure) -> None:
    world = World()
    world.switch(world.left(RESTORED))
    lose(world)
    twin = world.twin
    record = world.carried_on()
    assert (record.state, record.reason) == (ROLLED_BACK, reason)
    assert is_owned(world.source)
    assert not is_owned(twin), "a Job never sees two"
    assert MOVING not in world.source["metadata"]["labels"]


def test_a_half_done_switch_is_finished_for_a_twin_that_runs() -> None:
    world = World()
    world.left(RESTORED)
    world.switch_half()
    assert world.carried_on().state is DONE
    assert world.names == ["train-m"]
    assert is_owned(world.twin)


def test_an_adoption_of_which_the_answer_was_lost_is_gone_on_with() -> None:
    """The deadline is over by then: the twin is not deleted all the same."""
    world = World()
    world.left(RESTORED, ago_s=600.0)

    def lose_answer(method: str, name: str, body: Json) -> bool:
        is_adoption = method == "PATCH" and name != "train" and bool(body["metadata"].get("ownerReferences"))
        if is_adoption:
            world.cluster.after = lambda *_: None
        return is_adoption

    world.cluster.after = lose_answer
    assert world.carried_on().state is DONE
    assert world.names == ["train-m"]
    assert is_owned(world.twin)


def test_deadlines_of_a_found_move_count_from_when_it_was_found() -> None:
    world = World()
    world.left(RESTORED, ago_s=3600.0)
    failures = [True, True]

    def be_away(method: str, name: str, body: Json) -> bool:
        return (
            method == "PATCH"
            and name == "train"
            and "ownerReferences" in body["metadata"]
            and bool(failures)
            and failures.pop()
        )

    world.cluster.after = be_away
    assert world.carried_on(deadlines=QUICK).state is DONE


def test_a_move_that_another_daemon_has_finished_is_done_here_too() -> None:
    """Two that found it at once, as after a partition: one of them carries it, and both know how it ended, or leave it."""
    world = World()
    world.left(MigrationState.TRANSFERRED)
    with world.engine() as slow, world.engine() as quick:
        slow.run()
        quick.run()
        until(lambda: any(record.is_over for record in (*slow.records(), *quick.records())))
        until(lambda: world.names == ["train-m"])
        states = {record.state for record in (*slow.records(), *quick.records()) if record.is_over}
        assert states == {DONE}
    assert is_owned(world.twin)


def test_a_twin_that_takes_over_while_it_is_taken_back_is_not_deleted() -> None:
    """The delete names the version that was seen: another daemon adopts the twin in between."""
    world = World()
    record = world.left(RESTORED)
    world.cluster.lose_node("a")  # so this daemon takes the move back
    adopted: list[str] = []

    def adopt(method: str, name: str, body: Json) -> None:
        if method == "DELETE" and name != "train" and not adopted:
            adopted.append(name)
            world.cluster.nodes["a"]["status"]["conditions"][0]["status"] = "True"
            world.switch(record)
            world.cluster.say(world.twin, world.twin["status"]["containerStatuses"][0]["state"], phase="Running")

    world.cluster.before = adopt
    assert world.carried_on().state is DONE
    assert adopted
    assert world.names == ["train-m"]


def test_a_replica_sets_pod_has_its_own_deletion_cost_back_after_a_failed_switch() -> None:
    world = World("ReplicaSet")
    world.source["metadata"]["annotations"][DELETION_COST] = "500"
    world.left(RESTORED)
    seen: list[str] = []

    def lose_twin(method: str, name: str, body: Json) -> None:
        cost = (body["metadata"].get("annotations") or {}).get(DELETION_COST) if method == "PATCH" else None
        if cost == FIRST_TO_GO:
            seen.append(cost)
            del world.cluster.pods["team", world.twin["metadata"]["name"]]

    world.cluster.before = lose_twin
    record = world.carried_on()
    assert (record.state, record.reason) == (ROLLED_BACK, Failure.SWITCH_FAILED)
    assert seen
    annotations = world.source["metadata"]["annotations"]
    assert annotations[DELETION_COST] == "500"
    assert COST_BEFORE not in annotations


def test_where_source_and_twin_are_both_gone_the_source_has_ended() -> None:
    world = World()
    world.left(RESTORED)
    del world.cluster.pods["team", world.twin["metadata"]["name"]]

    def end(method: str, name: str, body: Json) -> None:
        world.cluster.pods.clear()

    world.cluster.before = end
    record = world.carried_on()
    assert (record.state, record.reason) == (ROLLED_BACK, Failure.SOURCE_ENDED)


def test_the_source_is_gone_before_a_move_is_done() -> None:
    """Its kubelet has to say so: a deleted object alone does not end a process."""
    world = World()
    world.left(RESTORED)
    grace: list[int] = []

    def note(method: str, name: str, body: Json) -> None:
        if method == "DELETE":
            grace.append(body["gracePeriodSeconds"])

    world.cluster.before = note
    assert world.carried_on().state is DONE
    assert grace == [1]


def test_a_source_on_a_node_that_does_not_answer_is_not_taken_for_gone() -> None:
    """It may run on. The move stays Switched, says why, and is Done once the node is back."""
    world = World()
    world.switch(world.left(RESTORED))
    world.cluster.lose_node("a")
    with world.engine() as engine:
        engine.run()
        until(lambda: Failure.SOURCE_LOST.value in world.twin["metadata"]["annotations"][MIGRATION])
        assert not [record for record in engine.records() if record.is_over]
        assert world.names == ["train", "train-m"]
        world.cluster.nodes["a"]["status"]["conditions"][0]["status"] = "True"
        assert over(engine).state is DONE
    assert world.names == ["train-m"]


def test_nothing_is_switched_away_from_a_node_that_does_not_answer() -> None:
    world = World()
    world.left(RESTORED)
    world.cluster.lose_node("a")
    record = world.carried_on()
    assert (record.state, record.reason) == (ROLLED_BACK, Failure.SOURCE_LOST)
    assert world.names == ["train"], "the twin is gone, and the source its Job's"
    assert is_owned(world.source)


def test_no_other_attempt_is_begun_while_a_twin_may_run_on() -> None:
    world = World()
    world.left(RESTORED)
    world.cluster.lose_node("b")
    record = world.carried_on(attempts=3)
    assert (record.state, record.attempt, record.reason) == (ROLLED_BACK, 1, Failure.TARGET_LOST)
    assert world.twin["metadata"]["deletionTimestamp"], "its kubelet ends it when it is back"


@pytest.mark.parametrize("has_switched", [False, True])
def test_a_move_that_was_taken_back_is_not_found_again_by_a_twin_that_may_run_on(has_switched: bool) -> None:
    """Nor is its pod moved anew as long as that twin is there: two copies are more than enough."""
    world = World()
    record = world.left(RESTORED)
    if has_switched:
        world.switch(record)
    world.cluster.lose_node("b")
    record = world.carried_on()
    assert "may run until it answers" in record.detail
    assert MOVING not in world.twin["metadata"]["labels"]
    world.cluster.add_node("c")
    source = make_pod("train", namespace="team", uid="u-1")
    with world.engine() as engine:
        with pytest.raises(ConflictError, match="may run on node b"):
            engine.start(source, "c")
        world.cluster.lose_node("b", with_object=True)
        del world.cluster.pods["team", world.twin["metadata"]["name"]]
        engine.start(source, "c")
        until(lambda: any(each.target == "c" for each in engine.records()))


def test_a_twin_that_somebody_keeps_changing_is_settled_in_the_end() -> None:
    world = World()
    world.switch(world.left(RESTORED))
    changes = iter(range(12))

    def change(method: str, name: str, body: Json) -> None:
        if method == "PATCH" and name != "train" and next(changes, None) is not None:
            world.cluster.changed(world.twin)

    world.cluster.before = change
    with world.engine() as engine:
        engine.run()
        until(lambda: TWIN_OF not in world.twin["metadata"]["labels"])
        assert over(engine).state is DONE


def test_the_source_of_a_node_that_was_removed_is_gone() -> None:
    world = World()
    world.switch(world.left(RESTORED))
    world.cluster.lose_node("a", with_object=True)
    assert world.carried_on().state is DONE
    assert world.names == ["train-m"]


@pytest.mark.parametrize("has_object", [False, True], ids=["its node is gone", "its node does not answer"])
def test_a_pod_that_changes_while_it_is_deleted_is_deleted_all_the_same(has_object: bool) -> None:
    world = World()
    world.switch(world.left(RESTORED))
    world.cluster.lose_node("a", with_object=not has_object)
    asked: list[str] = []

    def change(method: str, name: str, body: Json) -> None:
        if method == "DELETE" and not asked:
            asked.append(name)
            world.cluster.changed(world.source)

    world.cluster.before = change
    with world.engine() as engine:
        engine.run()
        until(lambda: ("DELETE", "train") in world.cluster.writes)
        if not has_object:
            assert over(engine).state is DONE
            assert world.names == ["train-m"]
    assert asked


@pytest.mark.parametrize(
    "error", [FileNotFoundError("/no/such/ca.crt"), ValueError("no start line"), KeyError("Docker-Content-Digest")]
)
def test_what_nobody_foresaw_takes_a_move_back(error: Exception) -> None:
    world = World()
    world.left(MigrationState.PREPARED)
    world.disks.defect = error
    with capture_logs() as told:
        record = world.carried_on(attempts=2)
    assert len([each for each in told if each["log_level"] == "error"]) == 1, "with its traceback, once"
    assert (record.state, record.attempt, record.reason) == (ROLLED_BACK, 2, Failure.UNEXPECTED)
    assert record.detail.startswith(type(error).__name__)
    assert MOVING not in world.source["metadata"]["labels"], "it is not looked for again"


def test_a_source_whose_node_object_is_gone_is_not_waited_for() -> None:
    world = World()
    world.left(MigrationState.PREPARED)
    world.cluster.lose_node("a", with_object=True)
    began = time.monotonic()
    record = world.carried_on(attempts=3)
    assert (record.state, record.attempt, record.reason) == (ROLLED_BACK, 1, Failure.SOURCE_LOST)
    assert time.monotonic() - began < 10


def test_nodes_are_not_touched_by_a_daemon_that_leads_no_more() -> None:
    world = World()
    world.left(MigrationState.PREPARED)
    with world.engine() as engine:
        writes = list(world.cluster.writes)
        world.api.may_write = lambda: False
        engine.run()
        until(lambda: not engine.records())
        engine.close()
    assert world.disks.archives == {"a": set(), "b": set()}
    assert world.cluster.writes == writes


def test_methods_share_how_many_moves_are_under_way() -> None:
    """Disks and the network are the same, whichever method uses them."""
    at_once, began = Semaphore(1), {"first": Event(), "second": Event()}

    class Watched(Disks):
        def __init__(self, name: str, other: Event) -> None:
            super().__init__()
            self.began, self.other, self.saw_other = began[name], other, False

        def checkpoint(self, record: MigrationRecord, source: Json, within_s: float) -> Dump:
            self.began.set()
            self.saw_other = self.other.wait(0.3)
            return super().checkpoint(record, source, within_s)

    first, second = World(), World()
    first.disks = watched = Watched("first", began["second"])
    second.disks = Watched("second", began["first"])
    for world in (first, second):
        world.left(MigrationState.PREPARED)
    with first.engine(at_once=at_once) as one, second.engine(at_once=at_once) as other:
        one.run()
        until(began["first"].is_set)
        other.run()
        assert {over(one).state, over(other).state} == {DONE}
    assert not watched.saw_other, "the second began after the first was over"


@pytest.mark.parametrize("owner", ["ReplicaSet", ""])
def test_a_source_that_a_foreign_finalizer_holds_is_not_found_again(owner: str) -> None:
    world = World(owner)
    world.left(RESTORED)
    world.source["metadata"]["finalizers"] = ["example.com/wait"]
    assert world.carried_on().state is DONE
    told = record_in(world.source)
    assert told is not None
    assert told.state is DONE
    assert MOVING not in world.source["metadata"]["labels"]
    assert world.names == ["train", "train-m"]


@pytest.mark.parametrize("owner", ["Job", "ReplicaSet", ""])
def test_a_pod_that_was_a_twin_is_not_deleted_for_the_move_that_made_it(owner: str) -> None:
    """The source's object tells of Restored still; its twin was settled, and has a move of its own behind it."""
    world = World(owner)
    record = world.left(RESTORED)
    world.switch(record)
    merge(world.twin, settled(record.advanced(MigrationState.SWITCHED, 0.0).advanced(DONE, 0.0)))
    world.source["metadata"]["deletionTimestamp"] = "2026-11-22T00:00:00Z"
    world.source["metadata"]["finalizers"] = ["example.com/wait"]
    second = MigrationRecord(
        "bbbbbbbbbbbb",
        f"team/{world.twin['metadata']['name']}",
        world.twin["metadata"]["uid"],
        "b",
        "c",
        MigrationMethod.KUBELET_CHECKPOINT,
        ROLLED_BACK,
        time.time(),
    )
    merge(world.twin, journalled(second))
    with capture_logs() as told, world.engine() as engine:
        engine.run()
        until(lambda: any(each["event"] == "move left to another daemon" for each in told))
        until(lambda: not engine.records())
    assert world.names == ["train", "train-m"]
    assert not world.twin["metadata"].get("deletionTimestamp")
    assert not [name for method, name in world.cluster.writes if method == "DELETE"]
    assert world.disks.images["b"], "it restarts from it"
