"""Moves between nodes that KWOK plays: what the twin has left to run, and the engine's attempts and take-over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from htas.adapters.migration.documents import MOVE, adoption, journalled, origin, origin_of, orphaning, twin_name
from htas.adapters.migration.methods.simulated import (
    DELAY,
    RUNS,
    Simulated,
    SimulatedObjects,
    ending_as_meant,
    seconds,
    simulated_twin,
)
from htas.model.deletion_costs import DELETION_COST
from htas.model.migrations import Deadlines, Failure, MigrationRecord, MigrationState
from htas.model.moves import MigrationMethod
from htas.model.pods import RUNTIME, TWIN_OF
from tests.builders import make_pod
from tests.unit.adapters.migration.cluster import Json
from tests.unit.adapters.migration.moving import World, over
from tests.unit.adapters.migration.pods import a_record

STARTED = "2026-01-01T00:00:00Z"
NOW = 1767225600.0 + 40.0
"""Forty seconds after the source began to run."""
DUMPED = a_record(
    MigrationState.CHECKPOINTED, pod="team/train-x7k2p", uid="u1", method=MigrationMethod.CHECKPOINT, dumped_at=NOW
)


def source(**annotations: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "train-x7k2p",
            "namespace": "team",
            "uid": "u1",
            "labels": {"job-name": "train"},
            "annotations": annotations,
            "ownerReferences": [{"kind": "Job", "name": "train"}],
            "finalizers": ["batch.kubernetes.io/job-tracking"],
        },
        "spec": {
            "nodeName": "a",
            "containers": [{"name": "main", "image": "train:1"}],
            "ephemeralContainers": [{"name": "debug"}],
        },
        "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": STARTED}}}]},
    }


def test_it_runs_what_remained_at_the_dump_and_belongs_to_nobody_yet() -> None:
    twin = simulated_twin(source(**{DELAY: "2m", RUNTIME: "2m", "other": "kept"}), DUMPED)
    meta = twin["metadata"]
    assert (meta["namespace"], meta["labels"][TWIN_OF], twin["spec"]["nodeName"]) == ("team", "u1", "b")
    assert [meta["annotations"][key] for key in (DELAY, RUNS, RUNTIME)] == ["80.0s"] * 3
    assert meta["annotations"]["other"] == "kept"
    assert "ownerReferences" not in meta
    assert "ephemeralContainers" not in twin["spec"]


@pytest.mark.parametrize(
    ("cost", "kept"),
    [
        pytest.param("-1478894080", False, id="HTAS's tells of the machine it was on"),
        pytest.param("5", True, id="its own goes with it"),
        pytest.param("high", True, id="whatever it is"),
    ],
)
def test_a_twin_has_the_deletion_cost_that_the_source_stated_itself(cost: str, kept: bool) -> None:
    twin = simulated_twin(source(**{DELAY: "2m", RUNTIME: "2m", DELETION_COST: cost}), DUMPED)
    assert twin["metadata"]["annotations"].get(DELETION_COST) == (cost if kept else None)


def test_moved_again_it_runs_what_remains_of_what_remained() -> None:
    twin = simulated_twin(source(**{DELAY: "3.0s", RUNS: "80.0s"}), DUMPED)
    assert twin["metadata"]["annotations"][DELAY] == "40.0s", "DELAY had been brought up to date when it was journalled"


@pytest.mark.parametrize(
    ("after_s", "left"),
    [
        pytest.param(0.0, "87.2s", id="as soon as it runs"),
        pytest.param(7.2, "80.0s", id="those seconds are over, and not waited for again"),
        pytest.param(100.0, "0.1s", id="it should have ended"),
    ],
)
def test_a_pod_that_is_patched_runs_no_longer_than_it_was_meant_to(after_s: float, left: str) -> None:
    """KWOK counts anew from each change; patched twice, or by the next process, it is still the same end."""
    pod = source(**{DELAY: "127.2s"})
    given = origin(pod)
    for patch in (journalled(DUMPED), adoption(given)):
        patched = ending_as_meant(patch, pod, NOW + after_s)["metadata"]["annotations"]
        assert (patched[DELAY], patched[RUNS]) == (left, "127.2s")
        assert patched.keys() >= patch["metadata"]["annotations"].keys()
        pod["metadata"]["annotations"] |= {DELAY: left, RUNS: patched[RUNS]}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(source(), id="nobody ends it"),
        pytest.param({**source(**{DELAY: "2m"}), "status": {"phase": "Pending"}}, id="it does not run yet"),
    ],
)
def test_what_kwok_does_not_count_is_left_alone(pod: Json) -> None:
    assert ending_as_meant(journalled(DUMPED), pod, NOW) == journalled(DUMPED)


def test_work_that_should_have_ended_ends_at_once() -> None:
    assert simulated_twin(source(**{DELAY: "30s"}), DUMPED)["metadata"]["annotations"][DELAY] == "0.1s"


def test_whatever_the_twin_bears_its_origin_can_be_read_back() -> None:
    found = source()
    given = origin_of(simulated_twin(found, DUMPED))
    assert given is not None
    adopted = adoption(given)["metadata"]
    for key in ("labels", "ownerReferences", "finalizers"):
        assert adopted[key] == found["metadata"][key]
    orphaned = orphaning(given)["metadata"]
    assert (orphaned["uid"], orphaned["labels"], orphaned["finalizers"]) == ("u1", {"job-name": None}, None)


@pytest.mark.parametrize("spoiled", [{}, {"annotations": {MOVE: "{"}}, {"annotations": None}])
def test_a_twin_whose_note_is_spoiled_is_nobodys(spoiled: dict[str, Any]) -> None:
    assert origin_of({"metadata": spoiled}) is None


def test_its_name_is_the_same_each_time_and_does_not_grow_with_each_move() -> None:
    first = twin_name("train", "u1")
    assert first == twin_name("train", "u1")
    assert first != twin_name("train", "u2")
    assert len(twin_name(first, "u2")) == len(first)
    assert len(twin_name("x" * 253, "u")) <= 253


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90.0), ("1h30m", 5400.0), ("2.5s", 2.5), ("500ms", 0.5), ("", None), ("soon", None), ("5 m", None)],
)
def test_durations_are_read_as_kwok_reads_them(text: str, expected: float | None) -> None:
    assert seconds(text) == expected


# With the engine.


@pytest.fixture
def world() -> Iterator[World]:
    """The pod team/train, which has run for ten of its hundred seconds."""
    found = World()
    found.objects, found.method = SimulatedObjects, lambda objects: Simulated(objects, bandwidth_bytes_per_s=2**40)
    began = datetime.fromtimestamp(time.time() - 10.0, UTC).isoformat()
    found.source["metadata"]["annotations"] |= {DELAY: "100s"}
    found.cluster.say(found.source, {"running": {"startedAt": began}}, phase="Running")
    yield found


def moved(world: World, **changes: Any) -> MigrationRecord:
    with world.engine(**changes) as engine:
        engine.start(make_pod("train", namespace="team", uid="u-1", node="a"), "b", MigrationMethod.CHECKPOINT)
        return over(engine)


def test_a_move_goes_through_all_states_and_the_twin_bears_what_is_left(world: World) -> None:
    record = moved(world)
    assert (record.state, record.attempt) == (MigrationState.DONE, 1), record.detail
    assert list(record.reached) == ["Prepared", "Checkpointed", "Transferred", "Restored", "Switched", "Done"]
    assert (record.archive_bytes, world.names) == (record.memory_bytes, ["train-m"])
    left_s = seconds(world.twin["metadata"]["annotations"][RUNS])
    assert left_s is not None
    assert 80.0 < left_s <= 90.0


def test_a_twin_that_fails_is_tried_again_and_the_third_gets_the_place(world: World) -> None:
    """Before, what failed once on KWOK was taken back."""
    failing = [True, True]

    def fail(method: str, name: str, body: Json) -> None:
        if method == "POST" and name.startswith("train-m") and failing:
            failing.pop()
            pod = next(pod for (_, each), pod in world.cluster.pods.items() if each == name)
            world.cluster.say(pod, {"terminated": {"exitCode": 1, "reason": "Error"}}, phase="Failed")

    world.cluster.after = fail
    record = moved(world, attempts=3)
    assert (record.state, record.attempt, record.reason) == (MigrationState.DONE, 3, ""), record.detail
    assert world.names == ["train-m"]


def test_what_another_daemon_began_is_gone_on_with(world: World) -> None:
    world.left(MigrationState.CHECKPOINTED, method=MigrationMethod.CHECKPOINT, image="", image_key="")
    record = world.carried_on()
    assert (record.state, record.is_taken_up) == (MigrationState.DONE, True), record.detail
    assert world.names == ["train-m"]


@pytest.mark.parametrize(
    ("transfer_s", "ends", "waits_s"),
    [
        pytest.param(
            600.0, (MigrationState.DONE, ""), 15.0, id="it is waited for, less what has passed since the dump"
        ),
        pytest.param(10.0, (MigrationState.ROLLED_BACK, Failure.DEADLINE), 10.0, id="no longer than its deadline"),
    ],
)
def test_a_copy_takes_its_time(
    transfer_s: float, ends: tuple[MigrationState, str], waits_s: float, world: World
) -> None:
    slept: list[float] = []
    world.method = lambda objects: Simulated(objects, bandwidth_bytes_per_s=1.0, pause=slept.append)
    facts = {"method": MigrationMethod.CHECKPOINT, "image": "", "image_key": "", "memory_bytes": 20}
    world.left(MigrationState.CHECKPOINTED, ago_s=5.0, **facts)
    record = world.carried_on(deadlines=Deadlines(transfer_s=transfer_s))
    assert (record.state, record.reason) == ends
    assert slept == [pytest.approx(waits_s, abs=1.0)]


def test_a_target_that_is_gone_ends_the_move_at_once(world: World) -> None:
    world.cluster.after = lambda method, name, body: (
        world.cluster.lose_node("b", with_object=True) if method == "POST" else None
    )
    world.cluster.add_node("b")
    original = world.cluster.add

    def never_started(pod: Json) -> Json:
        made = original(pod)
        if pod["spec"]["nodeName"] == "b":
            made["status"] = {"phase": "Pending"}
        return made

    world.cluster.add = never_started  # type: ignore[method-assign]
    record = moved(world, attempts=3)
    assert (record.state, record.reason, record.attempt) == (MigrationState.ROLLED_BACK, Failure.TARGET_LOST, 1)
    assert world.names == ["train"]
