"""The operator's own executables: what they are told, what they may say, and how they are ended."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from htas.adapters.migration.method import StepFailedError
from htas.adapters.migration.methods.command import CommandMethod
from htas.model.migrations import Commands, Failure, MigrationRecord, MigrationState
from htas.model.moves import MigrationMethod
from htas.ports import NotFoundError
from tests.programs import write_program
from tests.waiting import until

SOURCE: dict[str, Any] = {
    "metadata": {"name": "train-x", "namespace": "team", "uid": "u1", "labels": {"job-name": "train"}},
    "spec": {"nodeName": "a", "containers": [{"name": "main", "image": "app:1"}]},
}
RECORD = MigrationRecord(
    "m1",
    "team/train-x",
    "u1",
    "a",
    "b",
    MigrationMethod.COMMAND,
    MigrationState.PREPARED,
    100.0,
    attempt=2,
    archive="/dumps/m1",
    image="here/m1:2",
)
TELL = 'env | grep ^HTAS_ | sort > "$OUT"; '


def address_of(node: str) -> str:
    if node == "gone":
        raise NotFoundError("node gone is gone")
    return f"192.0.2.{ord(node)}"


@pytest.fixture(autouse=True)
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    return tmp_path / "out"


def method(folder: Path, script: str) -> CommandMethod:
    """One executable for all steps."""
    path = folder / "move"
    write_program(path, f"#!/bin/bash\n{script}\n")
    return CommandMethod(Commands(*[str(path)] * 4), address_of, lambda: 123.0)


def facts(out: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in out.read_text().splitlines())


def test_a_checkpoint_is_told_what_to_dump_and_says_where_it_lies(tmp_path: Path, out: Path) -> None:
    dump = method(tmp_path, TELL + "echo /dumps/with blanks").checkpoint(RECORD, SOURCE, 30.4)
    assert (dump.archive, dump.dumped_at) == ("/dumps/with blanks", 123.0)
    assert facts(out) == {
        "HTAS_STEP": "checkpoint",
        "HTAS_MIGRATION": "m1",
        "HTAS_ATTEMPT": "2",
        "HTAS_NAMESPACE": "team",
        "HTAS_POD": "train-x",
        "HTAS_POD_UID": "u1",
        "HTAS_CONTAINERS": "main",
        "HTAS_SOURCE_NODE": "a",
        "HTAS_SOURCE_ADDRESS": "192.0.2.97",
        "HTAS_TARGET_NODE": "b",
        "HTAS_TARGET_ADDRESS": "192.0.2.98",
        "HTAS_ARCHIVE": "/dumps/m1",
        "HTAS_IMAGE": "here/m1:2",
        "HTAS_TWIN": "",
        "HTAS_DEADLINE_S": "30",
    }


@pytest.mark.parametrize(
    ("printed", "images", "size"),
    [
        pytest.param("here/m1:2\n1048576\n", ("here/m1:2",), 1048576, id="an image and its size"),
        pytest.param("here/m1:2", ("here/m1:2",), 0, id="no size"),
        pytest.param("\n5", (), 5, id="the source's images"),
        pytest.param("", (), 0, id="nothing"),
    ],
)
def test_a_transfer_tells_images_and_size(tmp_path: Path, printed: str, images: tuple[str, ...], size: int) -> None:
    delivered = method(tmp_path, f"printf '{printed}'").deliver(RECORD, SOURCE, 30.0)
    assert (delivered.images, delivered.size) == (images, size)


def test_a_restore_is_given_the_twins_manifest(tmp_path: Path, out: Path) -> None:
    name = method(tmp_path, 'cat > "$OUT"').restore(RECORD, SOURCE, 30.0)
    twin = json.loads(out.read_text())
    assert (twin["kind"], twin["metadata"]["name"], twin["spec"]["nodeName"]) == ("Pod", name, "b")
    assert twin["spec"]["containers"] == [{"name": "main", "image": "here/m1:2", "imagePullPolicy": "IfNotPresent"}]
    assert "job-name" not in twin["metadata"]["labels"]


def test_a_command_need_not_read_what_it_is_given(tmp_path: Path) -> None:
    assert method(tmp_path, "exec true").restore(RECORD, SOURCE, 30.0).startswith("train-x-m")


@pytest.mark.parametrize(("keep_image", "why"), [(True, "done"), (False, "failed")])
def test_an_abort_is_told_what_may_stay(tmp_path: Path, out: Path, keep_image: bool, why: str) -> None:
    method(tmp_path, TELL).clean(RECORD, None, keep_image=keep_image)
    told = facts(out)
    assert (told["HTAS_STEP"], told["HTAS_WHY"], told["HTAS_CONTAINERS"]) == ("abort", why, "")


def test_images_of_a_twin_that_runs_no_more_are_removed_by_abort(tmp_path: Path, out: Path) -> None:
    method(tmp_path, TELL).forget("b", "m1")
    told = facts(out)
    assert (told["HTAS_MIGRATION"], told["HTAS_TARGET_NODE"], told["HTAS_WHY"]) == ("m1", "b", "gone")


def test_a_node_that_is_gone_has_no_address(tmp_path: Path, out: Path) -> None:
    import msgspec

    method(tmp_path, TELL).clean(msgspec.structs.replace(RECORD, target="gone"), SOURCE, keep_image=False)
    assert facts(out)["HTAS_TARGET_ADDRESS"] == ""


@pytest.mark.parametrize(
    ("script", "reason", "detail", "is_final"),
    [
        pytest.param("echo first >&2; echo no route >&2; exit 3", Failure.COMMAND_FAILED, "checkpoint: no route", False, id="it fails"),
        pytest.param("exit 3", Failure.COMMAND_FAILED, "checkpoint: ended with 3 and printed nothing", False, id="without a word"),
        pytest.param("echo a device >&2; exit 77", Failure.REFUSED, "checkpoint: a device", True, id="it refuses"),
        pytest.param("kill -9 $$", Failure.COMMAND_FAILED, "checkpoint: ended with -9 and printed nothing", False, id="it is killed"),
        pytest.param("true", Failure.COMMAND_FAILED, "checkpoint: printed nothing for transfer to find it by", False, id="it prints nothing"),
    ],
)  # fmt: skip
def test_why_a_command_failed(tmp_path: Path, script: str, reason: Failure, detail: str, is_final: bool) -> None:
    with pytest.raises(StepFailedError) as failed:
        method(tmp_path, script).checkpoint(RECORD, SOURCE, 30.0)
    assert (failed.value.reason, failed.value.detail, failed.value.is_final) == (reason, detail, is_final)


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        pytest.param("echo one two", "transfer: printed 2 images for 1 containers", id="too many images"),
        pytest.param("echo one; echo 5MB", "transfer: '5MB' is no size in bytes", id="a size with a unit"),
    ],
)
def test_what_makes_no_sense_is_not_restored(tmp_path: Path, script: str, detail: str) -> None:
    with pytest.raises(StepFailedError, match=detail):
        method(tmp_path, script).deliver(RECORD, SOURCE, 30.0)


def test_a_command_that_is_not_there_is_not_tried_again(tmp_path: Path) -> None:
    with pytest.raises(StepFailedError) as failed:
        CommandMethod(Commands(str(tmp_path / "nothing")), address_of).checkpoint(RECORD, SOURCE, 30.0)
    assert failed.value.is_final
    assert failed.value.detail.endswith("nothing: No such file or directory")


def test_a_command_whose_time_is_up_is_ended_with_all_that_it_started(tmp_path: Path, out: Path) -> None:
    began = time.monotonic()
    with pytest.raises(StepFailedError) as failed:
        method(tmp_path, 'sleep 600 & echo $! > "$OUT"; wait').checkpoint(RECORD, SOURCE, 1.0)
    assert (failed.value.reason, failed.value.detail) == (Failure.DEADLINE, "checkpoint: not done within 1 s")
    assert time.monotonic() - began < 30
    child = int(out.read_text())
    until(lambda: not _runs(child))


def _runs(pid: int) -> bool:
    """Whether a process is there and no zombie that nobody has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_the_commands_have_the_daemons_environment(tmp_path: Path) -> None:
    assert method(tmp_path, "echo $PATH").checkpoint(RECORD, SOURCE, 30.0).archive == os.environ["PATH"]
