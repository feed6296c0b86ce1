"""What a pod's manifest tells of whether it can be moved with its progress."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.migrations import Refusal
from htas.model.pods import SAFE_LOCAL_VOLUMES
from tests.unit.adapters.kubernetes.manifests import asking, node, pod, read_pod, view_of

CLEAN = {"annotations": {SAFE_LOCAL_VOLUMES: "scratch"}}


@pytest.mark.parametrize(
    ("meta", "spec", "reasons"),
    [
        pytest.param({}, {}, [], id="nothing special"),
        pytest.param({}, {"volumes": [{"name": "v", "emptyDir": {}}]}, [Refusal.EMPTY_DIR], id="emptyDir"),
        pytest.param({}, {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}, [Refusal.EMPTY_DIR], id="emptyDir in memory"),
        pytest.param(CLEAN, {"volumes": [{"name": "scratch", "emptyDir": {}}]}, [], id="emptyDir that may be lost"),
        pytest.param({}, {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}, [Refusal.HOST_PATH], id="hostPath"),
        pytest.param({}, {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}, [], id="a configMap"),
        pytest.param({}, {"volumes": [{"name": "v", "projected": {"sources": []}}, {"name": "w", "secret": {}}, {"name": "x", "downwardAPI": {}}]}, [], id="what the kubelet writes itself"),
        pytest.param({}, {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, [], id="a claim: judged by its access modes"),
        pytest.param({}, {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}, [Refusal.READ_WRITE_ONCE], id="an ephemeral claim"),
        pytest.param({}, {"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]}, [Refusal.LOCAL_VOLUME], id="a kind nobody tried"),
        pytest.param({}, {"containers": [asking(limits={"nvidia.com/gpu": "1"})]}, [Refusal.DEVICE], id="a GPU"),
        pytest.param({}, {"containers": [asking(**{"hugepages-2Mi": "4Mi"})]}, [], id="huge pages"),
        pytest.param({}, {"containers": [{"name": "c", "volumeDevices": [{"name": "d", "devicePath": "/dev/x"}]}]}, [Refusal.DEVICE], id="a block device"),
        pytest.param({}, {"hostNetwork": True}, [Refusal.HOST_NAMESPACE], id="the node's network"),
        pytest.param({}, {"hostPID": True}, [Refusal.HOST_NAMESPACE], id="the node's processes"),
        pytest.param({}, {"initContainers": [asking("side", always=True)]}, [Refusal.SIDECAR], id="a sidecar"),
        pytest.param({}, {"readinessGates": [{"conditionType": "example.com/target-health"}]}, [Refusal.READINESS_GATE], id="somebody else says when it is ready"),
        pytest.param({}, {"resourceClaims": [{"name": "gpu"}]}, [Refusal.RESOURCE_CLAIM], id="a device that it claims"),
        pytest.param({}, {"initContainers": [asking("init")]}, [], id="an init container that has ended"),
        pytest.param({}, {"hostIPC": True, "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]}, [Refusal.HOST_NAMESPACE, Refusal.EMPTY_DIR], id="each reason once"),
    ],
)  # fmt: skip
def test_obstacles(meta: dict[str, Any], spec: dict[str, Any], reasons: list[Refusal]) -> None:
    assert list(read_pod(pod("a", meta, **spec)).obstacles) == reasons


def test_containers_are_counted_without_those_that_initialise() -> None:
    found = read_pod(pod("a", containers=[asking("a"), asking("b")], initContainers=[asking("init")]))
    assert found.containers == 2


def test_a_node_tells_its_container_runtime() -> None:
    view = view_of(node(nodeInfo={"containerRuntimeVersion": "containerd://2.3.7"}), node("other"))
    assert [each.runtime for each in view.nodes] == ["containerd://2.3.7", ""]


def test_a_node_tells_its_kubelet() -> None:
    view = view_of(node(nodeInfo={"kubeletVersion": "v1.34.1"}), node("other"))
    assert [each.kubelet for each in view.nodes] == ["v1.34.1", ""]


SINCE, EPOCH = "2026-01-01T00:00:00Z", 1767225600.0


@pytest.mark.parametrize(
    ("conditions", "borne"),
    [
        pytest.param([{"type": "KernelDeadlock", "status": "True", "lastTransitionTime": SINCE}], (("KernelDeadlock", EPOCH),), id="a detector found something"),
        pytest.param([{"type": "KernelDeadlock", "status": "False", "lastTransitionTime": SINCE}], (), id="it found nothing"),
        pytest.param([{"type": "KernelDeadlock", "status": "Unknown", "lastTransitionTime": SINCE}], (), id="it does not know"),
        pytest.param([{"type": "KernelDeadlock", "status": "True"}], (), id="it does not say since when"),
        pytest.param([{"type": "Ready", "status": "True", "lastTransitionTime": SINCE}], (), id="Ready is nothing wrong"),
        pytest.param([{"type": name, "status": "True", "lastTransitionTime": SINCE} for name in ("PIDPressure", "DiskPressure")], (("DiskPressure", EPOCH), ("PIDPressure", EPOCH)), id="two, whatever their order"),
        pytest.param(None, (), id="none at all"),
    ],
)  # fmt: skip
def test_a_node_tells_what_is_wrong_with_it(conditions: Any, borne: tuple[tuple[str, float], ...]) -> None:
    assert [each.conditions for each in view_of(node(conditions=conditions)).nodes] == [borne]


CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
WRITING, READING = {"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v", "readOnly": True}


@pytest.mark.parametrize(
    ("volumes", "mounts", "claims"),
    [
        pytest.param([CLAIM], [[WRITING]], (), id="written"),
        pytest.param([CLAIM], [[READING]], ("data",), id="mounted read-only"),
        pytest.param([CLAIM], [[READING], [WRITING]], (), id="written by one of two containers"),
        pytest.param([CLAIM], [[]], ("data",), id="mounted by none"),
        pytest.param(
            [{**CLAIM, "persistentVolumeClaim": {"claimName": "data", "readOnly": True}}],
            [[WRITING]],
            ("data",),
            id="read-only for the whole pod",
        ),
        pytest.param([CLAIM, {**CLAIM, "name": "w"}], [[WRITING]], (), id="by two volumes, one of them written"),
        pytest.param([{"name": "v", "configMap": {"name": "c"}}], [[WRITING]], (), id="no claim"),
    ],
)
def test_claims_that_are_only_read(volumes: list[Any], mounts: list[list[Any]], claims: tuple[str, ...]) -> None:
    containers = [asking(f"c{number}") | {"volumeMounts": each} for number, each in enumerate(mounts)]
    assert read_pod(pod("a", containers=containers, volumes=volumes)).only_read == claims
