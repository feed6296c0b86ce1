"""How a copy comes into its place with a ReplicaSet: seen by Services first, beside healthy pods, and if need be alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from htas.adapters.migration import switching
from htas.adapters.migration.documents import FRESH, HASH, copy_of, is_ready, journalled, twin_name_of
from htas.adapters.migration.methods.replace import Replacing
from htas.model.migrations import Deadlines, Failure, MigrationRecord, MigrationState
from htas.model.moves import MigrationMethod
from htas.model.pods import MOVING, TWIN_OF, Pod
from tests.builders import make_pod
from tests.unit.adapters.migration.cluster import RUNNING, Json, merge
from tests.unit.adapters.migration.moving import ID, World, a_source, over
from tests.waiting import until

REPLACE = MigrationMethod.REPLACE
PREPARED, RESTORED, DONE = MigrationState.PREPARED, MigrationState.RESTORED, MigrationState.DONE
ROLLED_BACK = MigrationState.ROLLED_BACK
WAITING: Json = {"waiting": {"reason": "ContainerCreating"}}
NOT_SEEN_S = 0.2
"""Instead of the seconds that Services need."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switching, "SEEN_S", NOT_SEEN_S)


def shop(*, has_hash: bool = False, **spec: Any) -> World:
    """The pod team/train of a ReplicaSet on node a; `has_hash`: of a Deployment's."""
    world = World("ReplicaSet")
    world.method = Replacing
    merge(world.cluster.controllers["team", "o"], {"spec": spec})
    if has_hash:
        world.source["metadata"]["labels"][HASH] = "5d4f"
        merge(world.cluster.controllers["team", "o"], {"spec": {"selector": {"matchLabels": {HASH: "5d4f"}}}})
    return world


def begun() -> Pod:
    return make_pod("train", namespace="team", uid="u-1", node="a")


def left(world: World, state: MigrationState) -> MigrationRecord:
    """An earlier daemon came so far, and the copy is Ready."""
    at = time.time()
    record = MigrationRecord(
        ID,
        "team/train",
        "u-1",
        "a",
        "b",
        MigrationMethod.REPLACE,
        PREPARED,
        at,
        reached={"Prepared": at},
        containers=("main",),
    )
    world.cluster.add(copy_of(world.source, record))
    if state is RESTORED:
        record = msgspec.structs.replace(record, state=state, twin=twin_name_of(record))
    merge(world.source, journalled(record))
    return record


def introduce(world: World) -> None:
    """The earlier daemon gave the twin its labels, and nothing more."""
    merge(world.twin, {"metadata": {"labels": {"app": "train"}}})


def sibling(world: World, state: Json = WAITING, name: str = "other") -> Json:
    made = a_source("ReplicaSet", name=name, uid=f"u-{name}")
    made["metadata"]["labels"] = dict(world.source["metadata"]["labels"])
    world.cluster.add(made)
    world.cluster.say(made, state, phase="Running" if "running" in state else "Pending")
    return made


def patches_of_the_twin(world: World) -> list[tuple[float, Json]]:
    """Filled as they come: when, and what."""
    seen: list[tuple[float, Json]] = []

    def note(method: str, name: str, body: Json) -> None:
        if method == "PATCH" and name != "train":
            seen.append((time.monotonic(), body["metadata"]))

    world.cluster.before = note
    return seen


def ready_since(world: World, ago_s: float) -> None:
    (ready,) = world.twin["status"]["conditions"]
    ready["lastTransitionTime"] = datetime.fromtimestamp(time.time() - ago_s, UTC).isoformat()


# Ready for long enough.


def test_a_copy_takes_over_once_its_owner_would_call_it_available() -> None:
    world = shop(minReadySeconds=60)
    world.cluster.after = lambda method, *_: ready_since(world, 0.0) if method == "POST" else None
    with world.engine() as engine:
        engine.start(begun(), "b", REPLACE)
        until(lambda: len(world.cluster.pods) == 2)
        path = f"/api/v1/namespaces/team/pods/{world.twin['metadata']['name']}"
        until(lambda: world.cluster.reads.count(path) >= 3)
        known = time.time()
        ready_since(world, 61.0)
        record = over(engine)
    assert record.state is DONE
    assert record.reached["Restored"] >= known


def test_the_time_that_a_copy_has_to_be_ready_for_is_not_taken_from_its_deadline() -> None:
    world = shop(minReadySeconds=1)
    world.cluster.after = lambda method, *_: ready_since(world, 0.2) if method == "POST" else None
    with world.engine(deadlines=Deadlines(restore_s=0.3, switch_s=5.0)) as engine:
        engine.start(begun(), "b", REPLACE)
        assert over(engine).state is DONE


# Seen by Services before the source ends.


def test_a_deployments_copy_has_all_labels_but_the_hash_for_a_while_before_its_owner() -> None:
    world = shop(has_hash=True)
    seen = patches_of_the_twin(world)
    with world.engine() as engine:
        engine.start(begun(), "b", REPLACE)
        assert over(engine).state is DONE
    (shown_at, shown), (adopted_at, adopted), *_ = seen
    assert (shown["labels"], "ownerReferences" in shown) == ({"app": "train"}, False)
    assert (adopted["labels"][HASH], [each["name"] for each in adopted["ownerReferences"]]) == ("5d4f", ["o"])
    assert adopted_at - shown_at >= NOT_SEEN_S


def test_a_replica_set_without_a_hash_would_count_the_copy_at_once_and_gets_it_in_one_step() -> None:
    world = shop()
    seen = patches_of_the_twin(world)
    with world.engine() as engine:
        engine.start(begun(), "b", REPLACE)
        assert over(engine).state is DONE
    assert seen[0][1]["labels"]["app"] == "train"
    assert seen[0][1]["ownerReferences"]


def test_a_copy_that_serves_already_is_gone_on_with_after_a_crash() -> None:
    world = shop(has_hash=True)
    left(world, RESTORED)
    introduce(world)
    assert world.carried_on().state is DONE
    assert world.names == ["train-m"]
    labels = world.twin["metadata"]["labels"]
    assert (labels["app"], labels[HASH]) == ("train", "5d4f")
    assert not {TWIN_OF, MOVING} & set(labels)
    assert labels[FRESH] == ID


@pytest.mark.parametrize(("is_shown", "grace_s"), [(True, 25), (False, 1)])
def test_a_copy_that_serves_and_is_not_needed_ends_with_its_own_grace(is_shown: bool, grace_s: int) -> None:
    world = shop(has_hash=True)
    left(world, RESTORED)
    if is_shown:
        introduce(world)
    sibling(world)
    graces: list[int] = []

    def note(method: str, name: str, body: Json) -> None:
        if method == "DELETE":
            graces.append(body["gracePeriodSeconds"])

    world.cluster.before = note
    record = world.carried_on(grace=lambda pod: 25, deadlines=Deadlines(switch_s=0.2))
    assert record.state is ROLLED_BACK
    assert set(graces) == {grace_s}
    assert world.names == ["other", "train"]


# Beside pods that are Ready.


def test_a_pod_that_is_not_ready_would_be_deleted_instead_and_is_waited_for() -> None:
    world = shop(replicas=2)
    left(world, RESTORED)
    other = sibling(world)
    was_ready: list[bool] = []

    def note(method: str, name: str, body: Json) -> None:
        if method == "PATCH" and "ownerReferences" in body["metadata"]:
            was_ready.append(is_ready(other))

    world.cluster.before = note
    with world.engine() as engine:
        engine.run()
        until(lambda: "/api/v1/namespaces/team/pods" in world.cluster.reads)
        world.cluster.say(other, RUNNING, phase="Running")
        assert over(engine).state is DONE
    assert was_ready == [True]


def test_one_that_does_not_become_ready_keeps_the_pod_where_it_is_at_the_first_attempt() -> None:
    world = shop(replicas=2)
    left(world, RESTORED)
    sibling(world)
    record = world.carried_on(attempts=3, deadlines=Deadlines(switch_s=0.3))
    assert (record.state, record.reason, record.attempt) == (ROLLED_BACK, Failure.DEADLINE, 1)
    assert "pod other of the same ReplicaSet is not Ready" in record.detail
    assert world.names == ["other", "train"]


def _on_its_way_out(pod: Json) -> None:
    pod["metadata"]["deletionTimestamp"] = "2026-11-22T00:00:00Z"


def _of_another(pod: Json) -> None:
    pod["metadata"]["ownerReferences"][0]["uid"] = "u-else"


def _has_failed(pod: Json) -> None:
    pod["status"]["phase"] = "Failed"


@pytest.mark.parametrize("change", [_on_its_way_out, _of_another, _has_failed])
def test_pods_that_the_owner_does_not_count_are_not_waited_for(change: Callable[[Json], None]) -> None:
    world = shop()
    left(world, RESTORED)
    change(sibling(world))
    assert world.carried_on(deadlines=Deadlines(switch_s=0.3)).state is DONE


# In place of a source that ends.


def _deleted(world: World) -> None:
    world.source["metadata"] |= {"deletionTimestamp": "2026-11-22T00:00:00Z", "deletionGracePeriodSeconds": 30}


def _gone(world: World) -> None:
    del world.cluster.pods["team", "train"]


def _failed(world: World) -> None:
    world.source["status"]["phase"] = "Failed"


def _reclaimed(world: World) -> None:
    world.cluster.lose_node("a", with_object=True)


ENDS = pytest.mark.parametrize("end", [_deleted, _gone, _failed, _reclaimed])


@pytest.mark.parametrize("state", [PREPARED, RESTORED])
@ENDS
def test_a_copy_that_is_ready_stays_when_its_source_ends(end: Callable[[World], None], state: MigrationState) -> None:
    """Drained by hand, evicted by its kubelet, reclaimed with its node: its owner lacks a pod, and here is one."""
    world = shop(has_hash=True)
    left(world, state)
    end(world)
    record = world.carried_on()
    assert (record.state, record.reason) == (DONE, "")
    assert world.names == ["train-m"]
    meta = world.twin["metadata"]
    assert (meta["labels"][HASH], meta["ownerReferences"][0]["uid"]) == ("5d4f", "u-o")
    assert not {TWIN_OF, MOVING} & set(meta["labels"])
    assert "deletionTimestamp" not in meta


def _none_wanted(world: World) -> None:
    world.cluster.controllers["team", "o"]["spec"]["replicas"] = 0


def _deleted_with_its_owner(world: World) -> None:
    world.cluster.controllers["team", "o"]["metadata"]["deletionTimestamp"] = "2026-11-22T00:00:00Z"


def _without_owner(world: World) -> None:
    world.cluster.controllers.clear()


def _another_owner(world: World) -> None:
    world.cluster.controllers["team", "o"]["metadata"]["uid"] = "u-new"


def _replaced(world: World) -> None:
    sibling(world, RUNNING)


def _not_ready(world: World) -> None:
    world.cluster.say(world.twin, WAITING, phase="Pending")


@pytest.mark.parametrize(
    "change", [_none_wanted, _deleted_with_its_owner, _without_owner, _another_owner, _replaced, _not_ready]
)
def test_a_copy_goes_with_its_source_where_it_is_not_wanted(change: Callable[[World], None]) -> None:
    world = shop()
    left(world, RESTORED)
    change(world)
    _gone(world)
    record = world.carried_on()
    assert (record.state, record.reason) == (ROLLED_BACK, Failure.SOURCE_ENDED)
    assert "train-m" not in world.names
