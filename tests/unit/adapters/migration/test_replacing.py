"""A fresh copy of a pod is started at the target, and takes the pod's place once it is Ready: no sooner, and once."""

from __future__ import annotations

import time
from typing import Any

import pytest

from htas.adapters.migration.documents import FRESH, RESTORED, copy_of, journalled
from htas.adapters.migration.methods.replace import Replacing
from htas.adapters.migration.present import has_come_up
from htas.model.migrations import Deadlines, Failure, MigrationRecord, MigrationState
from htas.model.moves import MigrationMethod
from htas.model.pods import MOVING, TWIN_OF, Pod
from tests.builders import make_pod
from tests.unit.adapters.migration.cluster import RUNNING, Json, merge
from tests.unit.adapters.migration.moving import ID, World, over
from tests.unit.adapters.migration.pods import a_pod, a_record
from tests.waiting import until

REPLACE = MigrationMethod.REPLACE
WAITING = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}


def shop() -> World:
    """The ReplicaSet's pod team/train on node a, with an init container."""
    world = World("ReplicaSet")
    world.source["spec"]["initContainers"] = [{"name": "once", "image": "once:1"}]
    world.method = Replacing
    return world


def begun(name: str = "train") -> Pod:
    return make_pod(name, namespace="team", uid="u-1", node="a")


def slow_to_start(world: World) -> None:
    """The kubelets start what is new, and it is not Ready yet."""

    def is_made(method: str, name: str, body: Json) -> None:
        if method == "POST":
            world.cluster.say(world.twin, {"waiting": {"reason": "ContainerCreating"}}, phase="Pending")

    world.cluster.after = is_made


def left_prepared(world: World) -> MigrationRecord:
    """An earlier daemon wrote the move down, and had come no further."""
    at = time.time()
    record = MigrationRecord(
        ID, "team/train", "u-1", "a", "b", MigrationMethod.REPLACE, MigrationState.PREPARED, at, containers=("main",)
    )
    merge(world.source, journalled(record))
    return record


def test_a_copy_takes_the_place_of_a_pod_that_then_ends_with_its_own_grace() -> None:
    world = shop()
    graces: list[int] = []

    def note(method: str, name: str, body: Json) -> None:
        if method == "DELETE" and name == "train":
            graces.append(body["gracePeriodSeconds"])

    world.cluster.before = note
    with world.engine(grace=lambda pod: 25) as engine:
        engine.start(begun(), "b", REPLACE)
        record = over(engine)
    assert list(record.reached) == ["Prepared", "Restored", "Switched", "Done"]
    assert set(graces) == {25}
    assert world.names == ["train-m"]
    twin = world.twin
    assert twin["metadata"]["labels"]["app"] == "train"
    assert twin["metadata"]["ownerReferences"] == [
        {"kind": "ReplicaSet", "name": "o", "uid": "u-o", "controller": True}
    ]
    assert not {TWIN_OF, MOVING} & set(twin["metadata"]["labels"])
    assert (record.archive_bytes, record.dumped_at, record.image) == (0, None, "")


def test_the_copy_is_the_pods_own_manifest_and_nobodys_until_it_takes_over() -> None:
    source = a_pod(owner="ReplicaSet", initContainers=[{"name": "once"}], ephemeralContainers=[{"name": "debug"}])
    twin = copy_of(source, a_record(MigrationState.PREPARED, method=MigrationMethod.REPLACE))
    kept = {key: value for key, value in source["spec"].items() if key != "ephemeralContainers"}
    assert twin["spec"] == {**kept, "nodeName": "b"}
    assert "ownerReferences" not in twin["metadata"]
    assert set(twin["metadata"]["labels"]) == {TWIN_OF, MOVING, FRESH}
    assert RESTORED not in twin["metadata"]["labels"], "no node keeps an image for it"


def _asking(field: str) -> Json:
    return {"name": "X", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}}


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        pytest.param(_asking("metadata.labels['app']"), {"name": "X", "value": "train"}, id="a label"),
        pytest.param(_asking("metadata.labels['none']"), {"name": "X", "value": ""}, id="a label that it has not"),
        pytest.param(_asking("metadata.annotations['keep']"), None, id="an annotation, which the copy has"),
        pytest.param(_asking("metadata.labels['topology.kubernetes.io/zone']"), None, id="the zone, which is its own"),
        pytest.param(_asking("metadata.name"), None, id="its name"),
        pytest.param({"name": "X", "value": "plain"}, None, id="a value"),
        pytest.param({"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, None, id="a Secret's"),
    ],
)
def test_a_copys_variables_have_the_labels_that_it_gets_only_later(asked: Json, given: Json | None) -> None:
    """The kubelet reads them once, when the container starts."""
    each = {"name": "main", "env": [asked]}
    source = a_pod(owner="ReplicaSet", containers=[each], initContainers=[{**each, "name": "once"}])
    source["metadata"]["labels"]["topology.kubernetes.io/zone"] = "a"
    spec = copy_of(source, a_record(MigrationState.PREPARED, method=MigrationMethod.REPLACE))["spec"]
    assert [spec[part][0]["env"] for part in ("containers", "initContainers")] == [[given or asked]] * 2
    assert source["spec"]["containers"][0]["env"] == [asked], "the source is as it was"


def test_until_the_copy_is_ready_the_pod_serves_on() -> None:
    world = shop()
    slow_to_start(world)
    with world.engine() as engine:
        engine.start(begun(), "b", REPLACE)
        until(lambda: len(world.cluster.pods) == 2)
        assert [record.state for record in engine.records()] == [MigrationState.PREPARED]
        assert "app" not in world.twin["metadata"]["labels"], "no Service sends to it"
        assert not world.source["metadata"].get("deletionTimestamp")
        world.cluster.say(world.twin, RUNNING, phase="Running")
        assert over(engine).state is MigrationState.DONE


def test_a_copy_that_does_not_become_ready_is_removed_and_the_pod_stays_what_it_was() -> None:
    world = shop()
    slow_to_start(world)
    with world.engine(deadlines=Deadlines(restore_s=0.3, switch_s=5.0)) as engine:
        engine.start(begun(), "b", REPLACE)
        until(lambda: len(world.cluster.pods) == 2)
        world.cluster.say(world.twin, WAITING, phase="Running")
        record = over(engine)
    assert (record.state, record.reason) == (MigrationState.ROLLED_BACK, Failure.DEADLINE)
    assert record.detail.endswith("was not Ready within 0 s; main: CrashLoopBackOff: back-off 10s")
    assert world.names == ["train"]
    assert world.source["metadata"]["ownerReferences"]


def test_a_copy_that_was_made_before_the_daemon_died_is_the_only_one() -> None:
    world = shop()
    record = left_prepared(world)
    world.cluster.add(copy_of(world.source, record))
    with world.engine() as engine:
        engine.run()
        assert over(engine).state is MigrationState.DONE
    assert world.names == ["train-m"]
    assert "POST" not in {method for method, _ in world.cluster.writes}


def test_a_target_that_takes_no_pods_any_more_gets_no_copy() -> None:
    world = shop()
    left_prepared(world)
    world.cluster.nodes["b"]["spec"]["unschedulable"] = True
    with world.engine() as engine:
        engine.run()
        assert over(engine).reason == Failure.TARGET_LOST
    assert "POST" not in {method for method, _ in world.cluster.writes}


@pytest.mark.parametrize(
    ("state", "ready", "expected"),
    [
        pytest.param(RUNNING, True, True, id="Ready"),
        pytest.param(RUNNING, False, False, id="it runs, and is not Ready"),
        pytest.param(WAITING, False, False, id="its kubelet starts it again"),
        pytest.param({"terminated": {"exitCode": 1}}, False, False, id="it died, and is started again"),
    ],
)
def test_a_copy_is_up_once_it_says_that_it_is_ready(state: Json, ready: bool, expected: bool) -> None:
    """Also where its source is not: a pod that serves nobody is no reason to send requests to another one."""
    record = a_record(MigrationState.PREPARED, method=MigrationMethod.REPLACE)
    assert has_come_up(record, a_pod(state, ready=ready), a_pod(ready=False)) is expected


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_copy_that_has_ended_is_not_waited_for(phase: str) -> None:
    ended: dict[str, Any] = a_pod(None, ready=False)
    ended["status"] |= {"phase": phase, "reason": "NodePorts", "message": "no free ports"}
    with pytest.raises(Exception, match=f"RestoreFailed: it ended as {phase} \\(NodePorts: no free ports\\)"):
        has_come_up(a_record(MigrationState.PREPARED, method=MigrationMethod.REPLACE), ended, a_pod())
