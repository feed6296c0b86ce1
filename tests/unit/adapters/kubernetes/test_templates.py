"""What pods were made from."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.adapters.kubernetes.manifests import Manifest, pod, read_pod


def owned_by(kind: str, name: str, api_version: str = "", **labels: str) -> Manifest:
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": True}
    return {"ownerReferences": [reference], "labels": labels}


@pytest.mark.parametrize(
    ("name", "meta", "template"),
    [
        pytest.param("web-6d4cf56db6-x7k2p", owned_by("ReplicaSet", "web-6d4cf56db6", **{"pod-template-hash": "6d4cf56db6"}), "Deployment/web", id="a Deployment, whatever its revision"),
        pytest.param("web-6d4cf56db6-x7k2p", owned_by("ReplicaSet", "web-6d4cf56db6", **{"rollouts-pod-template-hash": "6d4cf56db6"}), "Rollout/web", id="a Rollout of Argo's"),
        pytest.param("web-x7k2p", owned_by("ReplicaSet", "web"), "ReplicaSet/web", id="a ReplicaSet of its own"),
        pytest.param("backup-29384160-x7k2p", owned_by("Job", "backup-29384160"), "CronJob/backup", id="a CronJob, whatever the minute"),
        pytest.param("train-17-x7k2p", owned_by("Job", "train-17"), "Job/train-#", id="numbered Jobs"),
        pytest.param("train-x7k2p-0", owned_by("Job", "train-x7k2p"), "Job/train-#", id="Jobs with generated names"),
        pytest.param("train-fast-0", owned_by("Job", "train-fast"), "Job/train-fast", id="a word is no generated part"),
        pytest.param("db-0", owned_by("StatefulSet", "db"), "StatefulSet/db", id="a StatefulSet"),
        pytest.param("db-1-0", owned_by("StatefulSet", "db-1", "apps.kruise.io/v1beta1"), "StatefulSet.apps.kruise.io/db-1", id="a StatefulSet of OpenKruise's, beside db-2"),
        pytest.param("train-17-worker-0", owned_by("Job", "train-17", "batch.volcano.sh/v1alpha1"), "Job.batch.volcano.sh/train-#", id="numbered Jobs of Volcano's"),
        pytest.param("run-17", {}, "Pod/run-#", id="pods of nobody"),
    ],
)  # fmt: skip
def test_pods_of_one_template(name: str, meta: Any, template: str) -> None:
    assert read_pod(pod(name, meta)).template == template


def test_the_image_is_that_of_the_first_container() -> None:
    assert (
        read_pod(pod(containers=[{"name": "a", "image": "example.com/a:1"}, {"name": "b", "image": "b"}])).image
        == "example.com/a:1"
    )
    assert read_pod(pod()).image == ""


TAG = "abcdef012345-1-" + "0123456789abcdef" * 2
JOURNALS = [
    pytest.param('{"base_images": ["train:1"]}', "train:1", id="what it starts from otherwise"),
    pytest.param('{"id": "abcdef012345"}', "", id="that was not written down"),
    pytest.param("{", "", id="a journal that was spoiled"),
    pytest.param("", "", id="no journal"),
]


@pytest.mark.parametrize(("journal", "image"), JOURNALS)
@pytest.mark.parametrize("name", [f"localhost/htas-checkpoint/a:{TAG}", f"registry:5000/htas:01234567-{TAG}-a"])
def test_the_name_of_a_checkpoint_is_no_part_of_the_model(name: str, journal: str, image: str) -> None:
    """Whoever may ask for the snapshot could run it, and read another pod's memory."""
    restored = pod(
        "train-m1", {"annotations": {"htas.io/migration": journal}}, containers=[{"name": "a", "image": name}]
    )
    assert read_pod(restored).image == image
