"""Checkpoint moves in the sandbox."""

from __future__ import annotations

from itertools import pairwise

import pytest

from htas.model.migrations import Failure, MigrationState
from htas.model.moves import MigrationMethod
from htas.model.resources import Resources
from htas.ports import ConflictError, PermanentError, TransientError
from htas.sandbox.migration import Rates, SandboxMigration
from htas.sandbox.world import World
from tests.unit.sandbox.situations import GIB, bind_all, job, pods, wait, web, world_of

COPY_S = GIB / 150_000_000
MOVE_S = COPY_S + 2.0
"""1 GiB at 1,200 Mbit/s, and two seconds to end the pod at its source."""


def moving() -> World:
    world = wait(bind_all(world_of(job("j", runs_s=100.0))), 50)
    world.migration.start(pods(world)["j-1"], "b")
    return world


def test_a_move_takes_the_images_size_over_the_bandwidth_and_the_end_of_the_pod() -> None:
    world = moving()
    wait(world, MOVE_S - 0.01)
    assert pods(world)["j-1"].node == "a"
    wait(world, 0.02)
    assert pods(world)["j-1"].node == "b"
    assert (world.ledger.migrations, world.ledger.restarts, world.ledger.work_lost_s) == (1, 0, 0.0)


def test_bandwidth_and_termination_are_settings() -> None:
    world = bind_all(world_of(job("j")))
    slow = SandboxMigration(
        world.clock, world.queue, world.cluster, world.ledger, rates=Rates(GIB // 8), termination_s=10.0
    )
    slow.start(pods(world)["j-1"], "b")
    wait(world, 17)
    assert pods(world)["j-1"].node == "a"
    wait(world, 1)
    assert pods(world)["j-1"].node == "b"


def test_a_moved_pod_ends_later_by_what_it_did_since_the_dump() -> None:
    world = moving()
    wait(world, 50 + COPY_S - 0.01)
    assert pods(world)["j-1"].node == "b"
    wait(world, 0.02)
    assert not pods(world)
    assert (world.ledger.finished, world.ledger.work_repeated_s) == (1, pytest.approx(COPY_S))


def states(world: World) -> list[str]:
    (move,) = world.migration.records()
    return sorted(move.reached, key=lambda state: (move.reached[state], list(MigrationState).index(state)))


def test_a_move_passes_every_state_in_order() -> None:
    world = bind_all(world_of(job("j")))
    rates = Rates(GIB / 10, dump=GIB / 3, restore=GIB / 2)
    slow = world.migration = SandboxMigration(world.clock, world.queue, world.cluster, world.ledger, rates=rates)
    slow.start(pods(world)["j-1"], "b")
    for seconds, state in (
        (2.99, "Prepared"),
        (10, "Checkpointed"),
        (2, "Transferred"),
        (2, "Switched"),
        (0.1, "Done"),
    ):
        wait(world, seconds)
        (move,) = slow.records()
        assert move.state == state
    assert states(world) == ["Prepared", "Checkpointed", "Transferred", "Restored", "Switched", "Done"]
    took = [move.took(*edge) for edge in pairwise(list(MigrationState)[:6])]
    assert took == pytest.approx([3.0, 10.0, 2.0, 0.0, 2.0])
    assert (move.archive_bytes, move.attempt, world.ledger.work_repeated_s) == (GIB, 1, pytest.approx(15.0))


@pytest.mark.parametrize("step", ["checkpoint", "transfer", "restore"])
def test_a_step_that_fails_is_tried_three_times_and_then_the_pod_stays(step: str) -> None:
    world = moving()
    for _ in range(3):
        world.migration.faults.arrange(step, TransientError("the disk is full"))
    wait(world, 40)
    (move,) = world.migration.records()
    assert (move.state, move.attempt, move.detail) == ("RolledBack", 3, "the disk is full")
    assert move.reason in set(Failure)
    assert pods(world)["j-1"].node == "a"
    wait(world, 10)
    assert (world.ledger.finished, world.ledger.migrations, world.ledger.work_repeated_s) == (1, 0, 0.0)


def test_a_second_attempt_may_succeed() -> None:
    world = moving()
    world.migration.faults.arrange("transfer", TransientError("the copy was cut off"))
    wait(world, 2 * MOVE_S)
    (move,) = world.migration.records()
    assert (move.state, move.attempt, move.reason) == ("Done", 2, "TransferFailed")
    assert pods(world)["j-1"].node == "b"


def test_what_cannot_succeed_is_not_tried_again() -> None:
    world = moving()
    world.migration.faults.arrange("restore", PermanentError("the image is damaged"))
    wait(world, MOVE_S)
    (move,) = world.migration.records()
    assert (move.state, move.attempt, move.reason) == ("RolledBack", 1, "RestoreFailed")


def test_room_at_the_target_is_free_again_after_a_roll_back() -> None:
    world = moving()
    world.migration.faults.arrange("transfer", PermanentError("no route"))
    wait(world, MOVE_S)
    world.cluster.arrive(web(1, requests=Resources(1900, GIB, 0, 1)))
    world.cluster.bind(pods(world)["web-1"], "b")
    assert world.ledger.overcommitted == 0


def test_room_at_the_target_is_kept_and_the_sources_freed() -> None:
    world = moving()
    big = Resources(1600, GIB, 0, 1)
    world.cluster.arrive(web(1, requests=big))
    world.cluster.bind(pods(world)["web-1"], "b")
    assert world.ledger.overcommitted == 1
    wait(world, 20)
    world.cluster.bind(pods(world)["web-2"], "a")
    assert world.ledger.overcommitted == 1


@pytest.mark.parametrize("how", ["deleted", "not ready"])
def test_without_its_target_a_pod_runs_on_where_it_is(how: str) -> None:
    world = moving()
    if how == "deleted":
        world.cluster.delete_node("b")
    else:
        world.cluster.set_ready("b", False)
    wait(world, 20)
    assert pods(world)["j-1"].node == "a"
    assert not world.migration.moving()
    assert [move.reason for move in world.migration.records()] == ["TargetLost"]
    assert world.ledger.migrations == 0
    wait(world, 40)
    assert world.ledger.finished == 1


def test_a_pod_whose_source_goes_is_lost_with_it_and_its_move_ends() -> None:
    world = moving()
    world.cluster.delete_node("a")
    wait(world, 20)
    assert not world.migration.moving()
    assert pods(world)["j-2"].node is None
    world.migration.start(pods(bind_all(world, "b"))["j-2"], "b")  # it is there already
    assert not world.migration.moving()


def test_a_full_target_is_refused_at_once() -> None:
    world = bind_all(world_of(job("j")))
    world.cluster.arrive(web(1, requests=Resources(1600, GIB, 0, 1)))
    bind_all(world, "b")
    with pytest.raises(ConflictError, match="no room"):
        world.migration.start(pods(world)["j-1"], "b")


@pytest.mark.parametrize("state", ["waiting", "terminating"])
def test_only_pods_that_run_are_moved(state: str) -> None:
    world = world_of(job("j"))
    if state == "terminating":
        world.cluster.evict(pods(bind_all(world))["j-1"])
    with pytest.raises(ConflictError, match="does not run"):
        world.migration.start(pods(world)["j-1"], "b")


def test_a_pod_evicted_while_it_moves_is_evicted() -> None:
    world = wait(bind_all(world_of(job("j"))), 50)
    world.migration.start(pods(world)["j-1"], "b")
    wait(world, MOVE_S - 1)
    world.cluster.evict(pods(world)["j-1"])
    wait(world, 5)
    assert not world.migration.moving()
    assert list(pods(world)) == ["j-2"]
    assert world.ledger.migrations == 0


def test_an_arranged_error_strikes_once() -> None:
    world = bind_all(world_of(job("j")))
    world.migration.faults.arrange("migrate", TransientError("the registry is away"))
    with pytest.raises(TransientError):
        world.migration.start(pods(world)["j-1"], "b")
    world.migration.start(pods(world)["j-1"], "b")
    assert len(world.migration.moving()) == 1


def replacing() -> World:
    """Two pods of a service on a, of which one is being replaced on b."""
    world = wait(bind_all(world_of(web())), 50)
    world.migration.start(pods(world)["web-1"], "b", MigrationMethod.REPLACE)
    return world


def test_a_replaced_pod_starts_as_any_pod_does_and_its_source_ends_within_its_grace() -> None:
    world = replacing()
    began = world.clock.now()
    for seconds, state, where in ((0.99, "Prepared", "a"), (0.02, "Switched", "a"), (2.0, "Done", "b")):
        wait(world, seconds)
        (move,) = world.migration.records()
        assert (move.state, pods(world)["web-1"].node) == (state, where)
    assert states(world) == ["Prepared", "Restored", "Switched", "Done"]
    assert pods(world)["web-1"].started_at == began + 1.0, "it is another process"
    assert (world.ledger.migrations, world.ledger.restarts, world.ledger.work_repeated_s) == (1, 0, 0.0)


def test_a_copy_that_does_not_start_leaves_the_pod_where_it_serves() -> None:
    world = replacing()
    for _ in range(3):
        world.migration.faults.arrange("restore", TransientError("its image is not there"))
    wait(world, 20)
    (move,) = world.migration.records()
    assert (move.state, move.attempt, move.reason) == ("RolledBack", 3, Failure.RESTORE_FAILED)
    assert pods(world)["web-1"].node == "a"


def test_the_room_of_a_copy_is_kept_from_the_beginning() -> None:
    world = wait(bind_all(world_of(web())), 1)
    world.migration.start(pods(world)["web-1"], "b", MigrationMethod.REPLACE)
    with pytest.raises(ConflictError):
        world.cluster.reserve("b", "somebody", Resources(1600, GIB, 0, 1))
