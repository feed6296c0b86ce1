"""A Ready node that HTAS did not launch, or that was started again: pods count on the device that it still lacks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.flavours import Flavour
from htas.model.nodes import DRAINING_TAINT, INSTANCE_TYPE_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import MAY_MIGRATE, Pod
from htas.model.policy import NodeGroup
from htas.model.reasons import Kept
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    make_flavour,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    no_schedule,
    owned_node,
    ready_claim,
    running,
)

GPU = "nvidia.com/gpu"
AGENT = no_schedule("agent-not-ready")
GPU_FLAVOUR = make_flavour("gpu", "4", "16Gi", "2", extended={GPU: 2})
POLICY = make_policy([NodeGroup("any", startup_taints=(AGENT,))], (GPU_FLAVOUR,))


def theirs(ready_for_s: float = 60.0, **fields: Any) -> Node:
    """A node of another autoscaler's."""
    return make_node(
        "theirs", "4", "16Gi", labels={INSTANCE_TYPE_LABEL: "gpu"}, ready_since=NOW - ready_for_s, **fields
    )


def ours(ready_for_s: float = 60.0, **fields: Any) -> Node:
    """A node of a machine that was initialized an hour ago."""
    return owned_node("ours", flavour="gpu", cpu="4", memory="16Gi", ready_since=NOW - ready_for_s, **fields)


def train(gpus: int = 1, name: str = "train", **fields: Any) -> Pod:
    pod = make_pod(name, "1", "1Gi", **fields)
    return msgspec.structs.replace(pod, requests=msgspec.structs.replace(pod.requests, extended=((GPU, gpus),)))


def planned(node: Node, *pods: Pod) -> Plan:
    claims = [msgspec.structs.replace(ready_claim(node), ready_at=NOW - 3600)] if node.claim else []
    return plan(make_snapshot([node], list(pods), claims=claims), POLICY, NOW)


@pytest.mark.parametrize("node", [theirs(), ours()], ids=["another autoscaler's", "ours, after a reboot"])
def test_no_machine_is_launched_while_a_device_may_come(node: Node) -> None:
    made = planned(node, train())
    assert (made.launch, made.bind, made.unplaced) == ((), (), ())
    [held] = made.nominate
    assert (held.node, held.why) == (node.name, f"its machine is registered, waiting for {GPU}")


@pytest.mark.parametrize(
    ("flavours", "is_awaited"),
    [
        pytest.param([GPU_FLAVOUR], True, id="the only flavour of its size has the device"),
        pytest.param([GPU_FLAVOUR, make_flavour("small", "1", "4Gi", "1")], True, id="another size does not count"),
        pytest.param([GPU_FLAVOUR, make_flavour("plain", "4", "16Gi", "1")], False, id="it may as well have none"),
    ],
)
def test_without_an_instance_type_its_size_tells_the_devices_that_may_come(
    flavours: list[Flavour], is_awaited: bool
) -> None:
    """Nobody labels a node of bare kubeadm: a second GPU machine was launched beside it."""
    node = make_node("theirs", "4", "15500Mi", ready_since=NOW - 60.0)
    made = plan(make_snapshot([node], [train()]), make_policy(flavours=flavours), NOW)
    assert [item.node for item in made.nominate] == (["theirs"] if is_awaited else [])
    assert len(made.launch) == (0 if is_awaited else 1)


def test_such_a_node_of_ours_is_needed() -> None:
    [kept] = planned(ours(), train()).kept
    assert kept.reason is Kept.NEEDED


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(theirs(ready_for_s=901.0), id="it had its time"),
        pytest.param(msgspec.structs.replace(theirs(), ready_since=None), id="nobody says since when it is Ready"),
        pytest.param(theirs(is_unschedulable=True), id="it is cordoned"),
        pytest.param(theirs(is_ready=False), id="it is not Ready"),
        pytest.param(theirs(taints=(no_schedule("dedicated"),)), id="its taint is for good"),
        pytest.param(
            msgspec.structs.replace(theirs(), labels={INSTANCE_TYPE_LABEL: "unheard-of"}), id="nobody knows its flavour"
        ),
        pytest.param(ours(taints=(DRAINING_TAINT,)), id="it is drained"),
    ],
)
def test_a_machine_is_launched_where_nothing_is_to_be_expected(node: Node) -> None:
    assert len(planned(node, train()).launch) == 1


def test_what_comes_holds_no_more_than_was_promised() -> None:
    made = planned(theirs(), *(train(name=f"train-{number}") for number in range(3)))
    assert (len(made.nominate), [len(item.pods) for item in made.launch]) == (2, [1])


def test_pods_that_need_no_device_are_bound_at_once() -> None:
    made = planned(theirs(), make_pod("web", "1", "1Gi"), train())
    assert [(item.pod, item.node) for item in made.bind] == [("default/web", "theirs")]
    assert [item.pod for item in made.nominate] == ["default/train"]


@pytest.mark.parametrize("node", [theirs(extended={GPU: 2}), ours(extended={GPU: 2})])
def test_pods_wait_for_a_start_up_taint_to_go(node: Node) -> None:
    started = msgspec.structs.replace(node, taints=(AGENT,))
    made = planned(started, make_pod("web", "1", "1Gi"))
    assert (made.launch, made.bind) == ((), ())
    assert [hold.why for hold in made.nominate] == [f"its machine is registered, waiting for taint {AGENT.key}"]
    old = msgspec.structs.replace(started, ready_since=NOW - 901.0)
    assert len(planned(old, make_pod("web", "1", "1Gi")).launch) == 1


def test_nothing_is_moved_to_what_may_not_come() -> None:
    """A node whose pod has a GPU is under-used; the other one's GPUs are still to come."""
    used = owned_node("used", flavour="gpu", cpu="4", memory="16Gi", extended={GPU: 2}, ready_since=NOW - 7200)
    claim = msgspec.structs.replace(ready_claim(used, 7200), ready_at=NOW - 7200)
    pod = running(train(disruption={MAY_MIGRATE: "true"}), "used", 3600)
    before = make_snapshot([used, theirs()], [pod], claims=[claim])
    memory = msgspec.structs.replace(before.memory, queue_empty_since=0.0, underutilized_since={"used": 0.0})
    waiting = msgspec.structs.replace(before, memory=memory)
    assert plan(waiting, POLICY, NOW).proposals == ()
    there = make_snapshot([used, theirs(extended={GPU: 2})], [pod], claims=[claim], memory=memory)
    assert [release.node for item in plan(there, POLICY, NOW).proposals for release in item.releases] == ["used"]
