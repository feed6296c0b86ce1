"""When a restored pod runs, when it may yet, and when it never will: by its containers, not by its phase."""

from __future__ import annotations

from typing import Any

import pytest

from htas.adapters.migration.method import StepFailedError, copy_failure, dump_failure
from htas.adapters.migration.present import is_restored
from htas.model.migrations import Failure
from tests.unit.adapters.migration.pods import RUNNING, a_pod


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (RUNNING, True),
        ({"terminated": {"exitCode": 0}}, True),
        ({"waiting": {"reason": "ContainerCreating"}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_pod_is_restored_once_its_containers_run(state: dict[str, Any] | None, expected: bool) -> None:
    assert is_restored(a_pod(state), a_pod()) is expected


@pytest.mark.parametrize(
    "state",
    [
        {"waiting": {"reason": "RunContainerError", "message": "criu failed"}},
        {"waiting": {"reason": "ErrImageNeverPull"}},
        {"waiting": {"reason": "ImagePullBackOff"}},
        {"terminated": {"exitCode": 128, "reason": "StartError"}},
    ],
)
def test_a_restore_that_failed_is_not_waited_for(state: dict[str, Any]) -> None:
    """Its phase says Running all the while."""
    with pytest.raises(StepFailedError) as failed:
        is_restored(a_pod(state), a_pod())
    assert failed.value.reason is Failure.RESTORE_FAILED


def test_a_pod_that_the_kubelet_turned_away_is_not_waited_for() -> None:
    turned_away = a_pod(None)
    turned_away["status"] = {"phase": "Failed", "reason": "NodeAffinity", "message": "does not fit"}
    with pytest.raises(StepFailedError, match="NodeAffinity: does not fit"):
        is_restored(turned_away, a_pod())


def test_a_twin_must_be_as_ready_as_its_source() -> None:
    assert not is_restored(a_pod(ready=False), a_pod())
    assert is_restored(a_pod(ready=False), a_pod(ready=False))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Error: Connected TCP socket, consider using --tcp-established option.", Failure.OPEN_CONNECTION),
        ("Some file locks are hold by dumping tasks! You can try --file-locks", Failure.FILE_LOCK),
        ("Error (criu/fsnotify.c:284): fsnotify: Can't dump that handle", Failure.WATCHES_FILES),
        ("write /x: no space left on device", Failure.NO_SPACE),
        ("something else", Failure.CHECKPOINT_FAILED),
    ],
)
def test_crius_words_are_understood(words: str, reason: Failure) -> None:
    assert dump_failure(words).reason is reason


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("ctr: failed to copy: write …/ingest/data: no space left on device", Failure.NO_SPACE),
        ("ctr: content digest sha256:ab…: not found", Failure.DIGEST_WRONG),
        ("Connection closed by remote host", Failure.TRANSFER_FAILED),
    ],
)
def test_the_ends_of_a_copy_are_understood(words: str, reason: Failure) -> None:
    assert copy_failure(words).reason is reason


def test_of_a_long_complaint_the_end_is_told() -> None:
    told = dump_failure("begin " + "x " * 900 + "the reason")
    assert told.detail.endswith("the reason")
    assert len(told.detail) < 310
