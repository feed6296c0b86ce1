"""What a live view makes of what it is told, and what of it brings a cycle forward."""

from __future__ import annotations

import json
from typing import Any

import pytest

from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kubernetes.resources import RESOURCES
from htas.model.pods import RunLength, RunLengthSource
from htas.model.snapshot import ENDED_KEPT, Ended
from tests.unit.adapters.kubernetes.manifests import manifest, node, pod

Json = dict[str, Any]
BY_KIND = {resource.kind: resource for resource in RESOURCES}
READY = [{"type": "Ready", "status": "True"}]


@pytest.fixture
def live() -> LiveView:
    view = LiveView("htas")
    for resource in RESOURCES:
        view.end_list(resource, set())
    return view


def put(live: LiveView, item: Json) -> None:
    live.put(BY_KIND[item["kind"]], json.dumps(item).encode())


def remove(live: LiveView, item: Json) -> None:
    live.remove(BY_KIND[item["kind"]], json.dumps(item).encode())


def waiting(name: str = "p", uid: str = "1", scheduler: str = "htas", **spec: Any) -> Json:
    return pod(name, {"namespace": "default", "uid": uid}, schedulerName=scheduler, **spec)


def a_node(*taints: str, ready: bool = True, **spec: Any) -> Json:
    if taints:
        spec["taints"] = [{"key": key, "effect": "NoSchedule"} for key in taints]
    return node("n", {"uid": "n"}, spec, allocatable={"cpu": "4"}, conditions=READY if ready else [])


def test_nothing_can_be_relied_on_before_every_kind_is_listed() -> None:
    view = LiveView("htas")
    assert view.missing == tuple(resource.kind for resource in RESOURCES)
    view.end_list(BY_KIND["Node"], set())
    assert "Node" not in view.missing
    assert "Pod" in view.missing


UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
CASES: list[Any] = [
    pytest.param([], waiting(), True, id="work of ours arrives"),
    pytest.param([waiting()], waiting(), False, id="told of once more"),
    pytest.param([], waiting(scheduler="other"), False, id="work of another scheduler, which may find room yet"),
    pytest.param([waiting(scheduler="other")], waiting(scheduler="other") | {"status": UNSCHEDULABLE}, True, id="it found none"),
    pytest.param([], waiting(schedulingGates=[{"name": "g"}]), False, id="a gated pod"),
    pytest.param([waiting(schedulingGates=[{"name": "g"}])], waiting(), True, id="its gate opens"),
    pytest.param([waiting()], waiting(nodeName="n"), False, id="it is bound"),
    pytest.param([waiting(nodeName="n")], waiting(uid="2", nodeName="m"), True, id="another of its name: one went"),
    pytest.param([], a_node(), True, id="a node joins"),
    pytest.param([a_node(ready=False)], a_node(), True, id="a node turns Ready"),
    pytest.param([a_node("t")], a_node(), True, id="a taint goes"),
    pytest.param([a_node(unschedulable=True)], a_node(), True, id="a node is opened"),
    pytest.param([a_node()], a_node(unschedulable=True), False, id="a node is closed"),
    pytest.param([a_node()], a_node(), False, id="a heartbeat"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "now", "grows"), CASES)
def test_what_brings_a_cycle_forward(before: list[Json], now: Json, grows: bool, live: LiveView) -> None:
    for item in before:
        put(live, item)
    seen = live.changes
    put(live, now)
    assert (live.changes > seen) is grows


@pytest.mark.parametrize(
    ("item", "grows"),
    [
        pytest.param(waiting(nodeName="n"), True, id="a pod that ran: room frees"),
        pytest.param(waiting(), False, id="a pod that waited"),
        pytest.param(a_node(), True, id="a node"),
    ],
)
def test_what_going_brings_a_cycle_forward(item: Json, grows: bool, live: LiveView) -> None:
    put(live, item)
    seen = live.changes
    remove(live, item)
    assert (live.changes > seen) is grows


def test_a_budget_that_allows_again_brings_a_cycle_forward(live: LiveView) -> None:
    def allowing(count: int) -> Json:
        return manifest(
            "PodDisruptionBudget", "b", {"namespace": "default"}, spec={}, status={"disruptionsAllowed": count}
        )

    put(live, allowing(0))
    seen = live.changes
    put(live, allowing(1))
    assert live.changes == seen + 1
    put(live, allowing(0))
    assert live.changes == seen + 1


def test_an_object_that_makes_no_sense_is_told_until_it_is_mended_or_goes(live: LiveView) -> None:
    odd = waiting() | {"spec": {"containers": 7}}
    put(live, odd)
    assert (live.view().pods, [p.where for p in live.view().problems]) == ((), ["Pod default/p"])
    put(live, waiting())
    assert ([p.name for p in live.view().pods], live.view().problems) == (["p"], ())
    put(live, odd)
    remove(live, odd)
    assert live.view().problems == ()


NEGATIVE = {"containers": [{"resources": {"requests": {"cpu": "-1"}}}]}
LEFT_OUT = [
    pytest.param(waiting(nodeName="n") | {"status": {"phase": "Weird"}}, {"n": "default/p"}, id="an odd phase"),
    pytest.param(waiting(nodeName="n", **NEGATIVE), {"n": "default/p"}, id="fewer cores than none"),
    pytest.param(waiting(nodeName="n", containers=7), {"n": "default/p"}, id="it cannot be decoded"),
    pytest.param(waiting(nodeName="n", containers=7) | {"status": 7}, {"n": "default/p"}, id="nor can its status"),
    pytest.param(waiting(nodeName="n", containers=7) | {"status": {"phase": "Failed"}}, {}, id="it has ended"),
    pytest.param(waiting(containers=7), {}, id="it waits"),
    pytest.param(waiting(nodeName=7), {}, id="it does not say where it runs"),
]


@pytest.mark.parametrize(("odd", "unread"), LEFT_OUT)
def test_a_pod_that_is_left_out_tells_its_node_until_it_is_mended_or_goes(
    odd: Json, unread: Json, live: LiveView
) -> None:
    put(live, odd)
    assert ([p.name for p in live.view().pods], live.view().unread) == ([], unread)
    put(live, waiting(nodeName="n"))
    assert ([p.name for p in live.view().pods], live.view().unread) == (["p"], {})
    put(live, odd)
    remove(live, odd)
    assert live.view().unread == {}


def job(**spec: Any) -> Json:
    return manifest("Job", "j", {"namespace": "default"}, spec={"parallelism": 3, **spec})


def of_the_job(**spec: Any) -> Json:
    owner = {"kind": "Job", "name": "j", "uid": "j", "controller": True}
    return pod("p", {"namespace": "default", "uid": "1", "ownerReferences": [owner]}, schedulerName="htas", **spec)


def test_a_controller_told_of_after_its_pods_still_counts(live: LiveView) -> None:
    put(live, of_the_job())
    put(live, job(activeDeadlineSeconds=90))
    (found,) = live.view().pods
    assert found.owner is not None
    assert found.owner.replicas == 3
    assert found.run_length == RunLength(90.0, RunLengthSource.DEADLINE)


def test_a_jobs_deadline_counts_as_it_is_now_and_goes_with_the_job(live: LiveView) -> None:
    put(live, of_the_job())
    put(live, job(activeDeadlineSeconds=90))
    put(live, job(activeDeadlineSeconds=60))
    assert live.view().pods[0].run_length == RunLength(60.0, RunLengthSource.DEADLINE)
    remove(live, job())
    assert live.view().pods[0].run_length is None


def test_a_pods_own_deadline_outlives_what_its_job_says(live: LiveView) -> None:
    put(live, of_the_job(activeDeadlineSeconds=30))
    put(live, job(activeDeadlineSeconds=90))
    remove(live, job())
    assert live.view().pods[0].run_length == RunLength(30.0, RunLengthSource.DEADLINE)


def test_a_nodes_limits_may_come_before_it_or_after(live: LiveView) -> None:
    limits = manifest("CSINode", "n", spec={"drivers": [{"name": "d", "allocatable": {"count": 2}}]})
    put(live, limits)
    put(live, a_node())
    assert live.view().nodes[0].attach_limits == (("d", 2),)
    limits["spec"]["drivers"][0]["allocatable"]["count"] = 5
    put(live, limits)
    assert live.view().nodes[0].attach_limits == (("d", 5),)
    limits["spec"]["drivers"][0]["topologyKeys"] = ["d/zone"]
    before = live.changes
    put(live, limits)
    assert live.view().nodes[0].topology_keys == ("d/zone",)
    assert live.changes > before
    remove(live, limits)
    assert (live.view().nodes[0].attach_limits, live.view().nodes[0].topology_keys) == ((), ())


def test_what_can_be_asked_for_by_name(live: LiveView) -> None:
    put(live, a_node())
    put(live, waiting())
    assert live.node("n") is live.view().nodes[0]
    assert live.pod(("default", "p")) is live.view().pods[0]
    assert (live.node("m"), live.pod(("default", "q"))) == (None, None)


def ended(phase: str = "Succeeded", uid: str = "1", at: str | None = "1970-01-01T00:02:00Z") -> Json:
    terminated = {"terminated": {"exitCode": 0, **({"finishedAt": at} if at else {})}}
    return waiting(uid=uid, nodeName="n") | {
        "status": {"phase": phase, "containerStatuses": [{"name": "c", "state": terminated}]}
    }


MAKER = "default/Pod/p"


@pytest.mark.parametrize(
    ("before", "now", "want"),
    [
        pytest.param(waiting(nodeName="n"), ended(), [Ended("1", True, 120.0, "n", MAKER)], id="it ended well"),
        pytest.param(waiting(nodeName="n"), ended("Failed"), [Ended("1", False, 120.0, "n", MAKER)], id="it failed"),
        pytest.param(waiting(nodeName="n"), ended(at=None), [Ended("1", True, None, "n", MAKER)], id="nobody says when"),
        pytest.param(ended(), ended(), [Ended("1", True, 120.0, "n", MAKER)], id="it had ended before it was seen"),
        pytest.param(waiting(uid="0", nodeName="n"), ended(), [Ended("1", True, 120.0, "n", MAKER)], id="another of its name was seen"),
        pytest.param(waiting(nodeName="n"), waiting(nodeName="n"), [], id="it runs on"),
    ],
)  # fmt: skip
def test_how_pods_ended_is_told_once(before: Json, now: Json, want: list[Ended], live: LiveView) -> None:
    put(live, before)
    put(live, now)
    put(live, now)  # told of once more
    assert list(live.view().ended) == want


def test_of_many_ended_pods_the_last_are_kept(live: LiveView) -> None:
    for number in range(ENDED_KEPT + 10):
        put(live, ended(uid=str(number)))
    assert [end.uid for end in live.view().ended] == [str(number) for number in range(10, ENDED_KEPT + 10)]
