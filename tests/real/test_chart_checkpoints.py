"""No pod but a twin that HTAS makes runs, or mounts, a checkpoint's image: it holds the memory of another pod."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.harness import Cluster, Json, eventually
from tests.real.test_chart import ACCOUNT, MOVING, a_pod, applied_rights, refused, rendered

REFUSAL = "pods that HTAS restores alone"
TAG = "abcdef012345-1-0123456789abcdef0123456789abcdef"
IMAGE = f"localhost/htas-checkpoint/main:{TAG}"
MIGRATION: Json = {**MOVING["config"]["migration"], "registry": {"url": "https://registry.example", "pullFrom": None}}
WITH_A_REGISTRY: Json = {**MOVING, "config": {**MOVING["config"], "migration": MIGRATION}}


@pytest.fixture(scope="module")
def policy(helm: Path) -> Iterator[str]:
    items = rendered(helm, WITH_A_REGISTRY)
    named = [each for each in items if each["metadata"]["name"].endswith("-checkpoints")]
    assert [each["kind"] for each in named] == ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    yield yaml.safe_dump_all(named)


@pytest.fixture
def guarded(helm: Path, cluster: Cluster, space: str, policy: str) -> Iterator[None]:
    """A cluster with the chart's rights and this policy, as soon as that is in force."""
    with applied_rights(cluster, rendered(helm, WITH_A_REGISTRY)):
        cluster.kubectl("apply", "-f", "-", input=policy)
        eventually(lambda: REFUSAL in made(cluster, running(IMAGE), "--dry-run=server"), 30, "in force")
        yield
        cluster.kubectl("delete", "-f", "-", input=policy)


def running(image: str, name: str = "forged", **meta: Json) -> Json:
    pod = a_pod(name, **meta)
    pod["spec"]["containers"][0]["image"] = image
    return pod


def made(cluster: Cluster, pod: Json, *options: str) -> str:
    """What is complained of; the pod is there where that is nothing."""
    return refused(cluster, "create", "-f", "-", *options, given=pod)


def gone(cluster: Cluster, name: str) -> None:
    cluster.kubectl("delete", "pod", name, "--grace-period=0", "--force")


OURS: list[Any] = [
    pytest.param(IMAGE, id="imported on a node"),
    pytest.param("localhost/htas-checkpoint/other", id="another tag"),
    pytest.param("localhost/htas-checkpoint/main@sha256:" + "0" * 64, id="by its digest"),
    pytest.param(f"registry.example/htas:01234567-{TAG}-main", id="in the registry"),
    pytest.param("registry.example/htas@sha256:" + "0" * 64, id="in the registry, by its digest"),
    pytest.param("REGISTRY.example:443/htas", id="another way to write the registry"),
    pytest.param(f"192.0.2.7:5000/mirror:01234567-{TAG}-main", id="by another name of the registry"),
    pytest.param("sha256:" + "0" * 64, id="by its id"),
    pytest.param("sha256:3f", id="by the beginning of its id"),
]
OTHERS = ["busybox:1.36", "registry.example/htas-tools:1", "registry.example/team/htas:1", "localhost/htas:1", "sha256"]


@pytest.mark.parametrize("image", OURS)
def test_nobody_runs_a_checkpoint(image: str, guarded: None, cluster: Cluster) -> None:
    assert REFUSAL in made(cluster, running(image), "--dry-run=server")


def test_everything_else_runs(guarded: None, cluster: Cluster) -> None:
    assert [made(cluster, running(image), "--dry-run=server") for image in OTHERS] == [""] * len(OTHERS)


PLACES: list[Any] = [
    pytest.param({"initContainers": [{"name": "i", "image": IMAGE}]}, id="an init container"),
    pytest.param({"volumes": [{"name": "v", "image": {"reference": IMAGE}}]}, id="a volume"),
]


@pytest.mark.parametrize("place", PLACES)
def test_nor_has_it_elsewhere_in_a_pod(place: Json, guarded: None, cluster: Cluster) -> None:
    pod = a_pod("forged")
    pod["spec"] |= copy.deepcopy(place)
    assert REFUSAL in made(cluster, pod, "--dry-run=server")


def test_nor_is_it_put_into_a_pod_that_is_there(guarded: None, cluster: Cluster) -> None:
    assert not made(cluster, running("busybox:1.36", "plain"))
    for image, expected in ((IMAGE, True), ("busybox:1.37", False)):
        patch = yaml.safe_dump({"spec": {"containers": [{"name": "c", "image": image}]}})
        assert (REFUSAL in refused(cluster, "patch", "pod", "plain", "-p", patch)) is expected
    shell = yaml.safe_dump({"spec": {"ephemeralContainers": [{"name": "e", "image": IMAGE}]}})
    assert REFUSAL in refused(cluster, "patch", "pod", "plain", "--subresource=ephemeralcontainers", "-p", shell)
    gone(cluster, "plain")


def test_htas_makes_twins_and_nothing_else_of_it(guarded: None, cluster: Cluster) -> None:
    by_htas = f"--as={ACCOUNT}"
    mark = {"htas.io/restored": "abcdef012345"}
    assert REFUSAL in made(cluster, running(IMAGE), by_htas)
    assert REFUSAL in made(cluster, running(IMAGE, labels=mark)), "others cannot pass one off as a twin"
    assert not made(cluster, running(IMAGE, "twin", labels=mark), by_htas)
    # From then on it is a pod like any other to its kubelet, its controller and its owner …
    cluster.kubectl("label", "pod", "twin", "a=b")
    cluster.kubectl("patch", "pod", "twin", "-p", '{"spec": {"activeDeadlineSeconds": 900}}')
    # … and HTAS gives it its own image back where it ended.
    image = '{"spec": {"containers": [{"name": "c", "image": "busybox:1.36"}]}}'
    cluster.kubectl("patch", "pod", "twin", "-p", image, by_htas)
    gone(cluster, "twin")


def test_it_is_there_where_checkpoints_are_made(helm: Path) -> None:
    def names(values: Json) -> list[str]:
        return [item["metadata"]["name"] for item in rendered(helm, values)]

    replacing = {"config": {"nodeGroups": [{"name": "web", "cleaning": {"migration": "replace"}}]}}
    assert not [name for name in names(replacing) if name.endswith("-checkpoints")]
    off = {**WITH_A_REGISTRY, "moves": {**MOVING["moves"], "admissionPolicy": False}}
    assert not [name for name in names(off) if name.endswith("-checkpoints")]
