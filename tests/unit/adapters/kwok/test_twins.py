"""The twin of a moved pod, as documents."""

from __future__ import annotations

from typing import Any

import pytest

from htas.adapters.kwok import twins
from htas.adapters.twins import MOVE, adoption, origin_of, orphaning, twin_name
from htas.model.pods import TWIN_OF

STARTED = "2026-01-01T00:00:00Z"
NOW = 1767225600.0 + 40.0
"""Forty seconds after the source began to run."""


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
        "spec": {"nodeName": "a", "containers": [{"name": "c"}], "ephemeralContainers": [{"name": "debug"}]},
        "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": STARTED}}}]},
    }


def test_it_runs_what_remains_on_the_target_and_belongs_to_nobody_yet() -> None:
    twin = twins.twin_of(source(**{twins.DELAY: "2m", "htas.io/runtime": "2m", "other": "kept"}), "b", NOW)
    meta = twin["metadata"]
    assert (meta["namespace"], meta["labels"], twin["spec"]["nodeName"]) == ("team", {TWIN_OF: "u1"}, "b")
    assert (meta["annotations"][twins.DELAY], meta["annotations"]["htas.io/runtime"]) == ("80.0s", "80.0s")
    assert meta["annotations"]["other"] == "kept"
    assert "ownerReferences" not in meta
    assert "ephemeralContainers" not in twin["spec"]


def test_it_does_again_what_its_source_does_while_it_is_copied() -> None:
    found = twins.twin_of(source(**{twins.DELAY: "2m"}), "b", NOW, memory_bytes=2**30, copy_s=7.2)
    assert found["metadata"]["annotations"][twins.DELAY] == "87.2s"
    origin = origin_of(found)
    assert origin is not None
    assert (origin.memory_bytes, origin.copy_s) == (2**30, 7.2)


@pytest.mark.parametrize(
    ("after_s", "left"),
    [
        pytest.param(0.0, "87.2s", id="as soon as it runs"),
        pytest.param(7.2, "80.0s", id="copied: the copy's seconds are over, and not waited for again"),
        pytest.param(100.0, "0.1s", id="it should have ended"),
    ],
)
def test_a_twin_that_is_patched_runs_no_longer_than_it_was_meant_to(after_s: float, left: str) -> None:
    """KWOK counts anew from each change; patched twice, or by the next process, it is still the same end."""
    twin = twins.twin_of(source(**{twins.DELAY: "2m"}), "b", NOW, copy_s=7.2)
    twin["status"] = {"containerStatuses": [{"state": {"running": {"startedAt": "2026-01-01T00:00:40Z"}}}]}
    origin = origin_of(twin)
    assert origin is not None
    for patch in (adoption(origin), twins.unmarking(None)):
        patched = twins.ending_as_meant(patch, twin, origin, NOW + after_s)["metadata"]["annotations"]
        assert patched[twins.DELAY] == left
        assert patched.keys() >= patch["metadata"]["annotations"].keys()
        twin["metadata"]["annotations"][twins.DELAY] = left


def test_a_twin_that_nobody_ends_is_given_no_end() -> None:
    twin = twins.twin_of(source(), "b", NOW)
    origin = origin_of(twin)
    assert origin is not None
    assert twins.ending_as_meant(adoption(origin), twin, origin, NOW) == adoption(origin)


def test_work_that_should_have_ended_ends_at_once() -> None:
    twin = twins.twin_of(source(**{twins.DELAY: "30s"}), "b", NOW)
    assert twin["metadata"]["annotations"][twins.DELAY] == "0.1s"


def test_whatever_the_twin_bears_its_origin_can_be_read_back() -> None:
    found = source()
    origin = origin_of(twins.twin_of(found, "b", NOW))
    assert origin is not None
    assert (origin.name, origin.uid, origin.node) == ("train-x7k2p", "u1", "a")
    adopted = adoption(origin)["metadata"]
    for key in ("labels", "ownerReferences", "finalizers"):
        assert adopted[key] == found["metadata"][key]
    orphaned = orphaning(origin)["metadata"]
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
    ("text", "seconds"),
    [("90s", 90.0), ("1h30m", 5400.0), ("2.5s", 2.5), ("500ms", 0.5), ("", None), ("soon", None), ("5 m", None)],
)
def test_durations_are_read_as_kwok_reads_them(text: str, seconds: float | None) -> None:
    assert twins.seconds(text) == seconds


def test_a_pod_runs_once_all_its_containers_do() -> None:
    pod = source()
    assert twins.runs(pod)
    pod["status"]["containerStatuses"].append({"state": {"waiting": {}}})
    assert not twins.runs(pod)
    assert not twins.runs({"status": {"phase": "Running"}})
