import pytest

from htas.model.migrations import Failure, MigrationState, Refusal
from htas.model.moves import MigrationMethod
from htas.model.pods import Phase, Pod
from htas.ports import ConflictError, MoveRefusedError, NotFoundError
from tests.builders import make_pod
from tests.contracts.conftest import Universe
from tests.contracts.test_cluster_port import pod


def running_job(universe: Universe, for_s: float = 5.0) -> None:
    """A job of 100 s, which has run for a while."""
    universe.cluster.bind(pod(universe, "job"), "a")
    universe.wait(for_s)


def test_a_moved_pod_keeps_its_progress(universe: Universe) -> None:
    running_job(universe, 40)
    before = pod(universe, "job")
    universe.migration.start(before, "b")
    universe.migration.start(before, "b")  # begun already is done
    assert [(move.pod, move.target) for move in universe.migration.moving()] == [(before.key, "b")]
    assert pod(universe, "job").node == "a"
    universe.wait(30)
    (after,) = [p for p in universe.cluster.observe().pods if p.name.startswith("job")]
    assert (after.node, after.owner) == ("b", before.owner)
    assert not universe.migration.moving()
    universe.wait(45)  # 115 s from its start: begun anew it would need 140
    assert not [p for p in universe.cluster.observe().pods if p.name.startswith("job")]


def test_a_move_is_told_from_its_beginning_to_its_end_and_after(universe: Universe) -> None:
    running_job(universe)
    before = pod(universe, "job")
    universe.migration.start(before, "b")
    (begun,) = universe.migration.records()
    assert (begun.pod, begun.uid, begun.source, begun.target) == (before.key, before.uid, "a", "b")
    assert not begun.is_over
    universe.wait(30)
    (ended,) = universe.migration.records()
    assert (ended.id, ended.state, ended.attempt) == (begun.id, MigrationState.DONE, 1)
    in_order = [state.value for state in MigrationState if state.value in ended.reached]
    assert in_order == sorted(ended.reached, key=ended.reached.__getitem__)
    assert {"Prepared", "Restored", "Switched", "Done"} <= set(in_order)
    assert ended.archive_bytes > 0


def test_a_replaced_service_runs_elsewhere_before_it_ends(universe: Universe) -> None:
    for each in webs(universe):
        universe.cluster.bind(each, "a")
    universe.wait(5)
    before = webs(universe)[0]
    universe.migration.start(before, "b", MigrationMethod.REPLACE)
    universe.migration.start(before, "b", MigrationMethod.REPLACE)  # begun already is done
    assert [(move.pod, move.method) for move in universe.migration.moving()] == [(before.key, "replace")]
    fewest = 2
    for _ in range(15):
        universe.wait(2)
        fewest = min(fewest, len(webs(universe)))
    assert fewest == 2
    after = webs(universe)
    assert (sorted(each.node or "" for each in after), {each.owner for each in after}) == (["a", "b"], {before.owner})
    (ended,) = universe.migration.records()
    assert (ended.state, ended.method, ended.attempt) == (MigrationState.DONE, "replace", 1)
    assert set(ended.reached) == {"Prepared", "Restored", "Switched", "Done"}, "there is no checkpoint"
    assert (ended.archive_bytes, ended.dumped_at) == (0, None)


def test_batch_work_is_not_replaced(universe: Universe) -> None:
    running_job(universe)
    with pytest.raises(MoveRefusedError) as refused:
        universe.migration.start(pod(universe, "job"), "b", MigrationMethod.REPLACE)
    assert refused.value.reason is Refusal.BEGINS_AGAIN
    assert not universe.migration.moving()


def webs(universe: Universe) -> list[Pod]:
    """The service's pods that stay and, once they are bound, run; a twin that nobody owns yet is none."""
    pods = universe.cluster.observe().pods
    return [
        each
        for each in pods
        if each.name.startswith("web")
        and each.owner is not None
        and not each.is_terminating
        and (each.node is None or each.phase is Phase.RUNNING)
    ]


def test_without_room_nothing_is_moved(universe: Universe) -> None:
    running_job(universe)
    with pytest.raises((ConflictError, NotFoundError)):
        universe.migration.start(pod(universe, "job"), "nowhere")
    assert not universe.migration.moving()


def test_a_target_that_goes_leaves_the_pod_where_it_was(universe: Universe) -> None:
    running_job(universe)
    universe.migration.start(pod(universe, "job"), "b")
    universe.cluster.delete_node("b")
    universe.wait(30)
    assert pod(universe, "job").node == "a"
    (ended,) = universe.migration.records()
    assert (ended.state, ended.reason) == (MigrationState.ROLLED_BACK, Failure.TARGET_LOST.value)
    assert MigrationState.SWITCHED.value not in ended.reached


def test_what_does_not_run_is_refused_with_the_reason(universe: Universe) -> None:
    with pytest.raises(MoveRefusedError) as refused:
        universe.migration.start(pod(universe, "job"), "b")
    assert refused.value.reason is Refusal.NOT_RUNNING
    assert str(refused.value).startswith("NotRunning: pod default/job")
    assert not universe.migration.records()


def test_what_is_gone_is_not_moved(universe: Universe) -> None:
    with pytest.raises(NotFoundError):
        universe.migration.start(make_pod("nobody"), "b")
