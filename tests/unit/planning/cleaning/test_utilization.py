"""Utilisation as Cluster Autoscaler counts it."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.pods import DAEMONSET_POD, Owner, Pod
from htas.model.policy import CleaningRules
from htas.model.resources import Resources
from htas.planning.disrupt.cleaning.utilization import is_empty, utilization
from tests.builders import NOW, make_node, make_pod

DAEMON = Owner("DaemonSet", "logs")


def daemon(**fields: Any) -> Pod:
    return make_pod("daemon", owner=DAEMON, **fields)


@pytest.mark.parametrize(
    ("pods", "rules", "share"),
    [
        pytest.param([], {}, 0.0, id="nothing runs"),
        pytest.param([make_pod(cpu="2", memory="1Gi")], {}, 0.5, id="cpu is the greater share"),
        pytest.param([make_pod(cpu="1", memory="6Gi")], {}, 0.75, id="memory is the greater share"),
        pytest.param(
            [make_pod("a", "500m", "0"), make_pod("b", "1500m", "0")], {}, 0.5, id="requests of several pods add up"
        ),
        pytest.param(
            [make_pod(cpu="1", memory="0"), daemon(cpu="2", memory="0")],
            {},
            0.5,
            id="a daemon's 2 cores are taken off the 4 on offer: 1 of 2",
        ),
        pytest.param(
            [make_pod(cpu="1", memory="0"), daemon(cpu="2", memory="0")],
            {"ignore_daemonset_utilization": False},
            0.75,
            id="a daemon counts where it is configured to",
        ),
        pytest.param(
            [make_pod(cpu="1", memory="0"), make_pod("mirror", "2", "0", is_mirror=True, owner=None)],
            {},
            0.5,
            id="a mirror pod is taken off both sides",
        ),
        pytest.param(
            [make_pod(cpu="1", memory="0"), make_pod("mirror", "2", "0", is_mirror=True, owner=None)],
            {"ignore_mirror_utilization": False},
            0.75,
            id="a mirror pod counts where it is configured to",
        ),
        pytest.param(
            [make_pod(cpu="3", memory="0", deleted_at=NOW - 61, grace_s=30.0)],
            {},
            0.0,
            id="an overdue deletion is gone",
        ),
        pytest.param(
            [make_pod(cpu="3", memory="0", deleted_at=NOW - 59, grace_s=30.0)],
            {},
            0.75,
            id="a pod that ends still counts",
        ),
        pytest.param([daemon(cpu="4", memory="0")], {}, 1.0, id="all taken by daemons: nothing left to offer, so full"),
    ],
)
def test_the_greater_of_cpu_and_memory(pods: list[Pod], rules: dict[str, Any], share: float) -> None:
    assert utilization(make_node(cpu="4", memory="8Gi"), pods, CleaningRules(**rules), NOW) == share


GPU_NODE = make_node(cpu="4", memory="8Gi", extended={"nvidia.com/gpu": 4})


def asks_for_gpus(count: int, **fields: Any) -> Pod:
    return make_pod(requests=Resources.of({"cpu": 100, "pods": 1, "nvidia.com/gpu": count}), **fields)


@pytest.mark.parametrize(
    ("pods", "share"),
    [
        pytest.param([make_pod(cpu="4", memory="8Gi")], 0.0, id="full of work that needs no GPU: not in use"),
        pytest.param([asks_for_gpus(3)], 0.75, id="three of four GPUs"),
        pytest.param([asks_for_gpus(1), asks_for_gpus(2, owner=DAEMON)], 0.5, id="a daemon's two are off both sides"),
    ],
)
def test_of_a_node_with_gpus_these_alone_count(pods: list[Pod], share: float) -> None:
    assert utilization(GPU_NODE, pods, CleaningRules(), NOW) == share


def test_a_gpu_that_no_device_plugin_offers_yet_does_not_count() -> None:
    node = make_node(cpu="4", memory="8Gi", extended={"nvidia.com/gpu": 0})
    assert utilization(node, [make_pod(cpu="1")], CleaningRules(), NOW) == 0.25


@pytest.mark.parametrize(
    ("pods", "empty"),
    [
        pytest.param([], True, id="nothing at all"),
        pytest.param([daemon(), make_pod("mirror", is_mirror=True)], True, id="only what belongs to the node"),
        pytest.param([make_pod(disruption={DAEMONSET_POD: "true"})], True, id="or says that it does"),
        pytest.param([daemon(), make_pod()], False, id="one pod that would have to move"),
        pytest.param([make_pod(deleted_at=NOW - 5)], False, id="a pod still within its grace period"),
        pytest.param([make_pod(deleted_at=NOW - 3600)], True, id="a pod that should be gone for an hour"),
    ],
)
def test_empty_means_nothing_would_have_to_go_elsewhere(pods: list[Pod], empty: bool) -> None:
    assert is_empty(pods, NOW) is empty
