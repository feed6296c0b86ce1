"""The operator's own executables: what they are told, what is read of them, and how they fail."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from htas.adapters.checkpoint.command import OwnCommands
from htas.adapters.checkpoint.failures import StepFailedError
from htas.adapters.checkpoint.objects import Objects
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.model.migrations import Commands, Failure, MigrationState
from tests.unit.adapters.checkpoint.pods import a_node, a_pod, a_record
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """Nodes a and b with their addresses, and no pod."""
    with FakeApiServer(_answer) as server:
        yield ApiServer(server.access(), RateLimit(1000, 1000))


def _answer(request: Request) -> Answer:
    _, _, name = request.path.rpartition("/")
    if "/nodes/" not in request.path:
        return Answer(404, {"message": "no such pod"})
    node = a_node(name)
    node["status"]["addresses"] = [{"type": "InternalIP", "address": {"a": "192.0.2.1", "b": "192.0.2.2"}[name]}]
    return Answer(200, node)


def commands(directory: Path, api: ApiServer, **scripts: str) -> OwnCommands:
    """Executables of a shell, by their names; those that are not given print nothing and succeed."""
    for name in ("checkpoint", "transfer", "restore", "abort"):
        path = directory / name
        path.write_text(f"#!/bin/sh\n{scripts.get(name, '')}\n")
        path.chmod(0o755)
    given = Commands(*(str(directory / name) for name in ("checkpoint", "transfer", "restore", "abort")))
    return OwnCommands(Objects(api), given, clock=lambda: 5.0)


def test_an_executable_is_told_which_pod_and_between_which_nodes(directory: Path, api: ApiServer) -> None:
    script = 'env | grep ^HTAS_ | sort > "$(dirname "$0")/told"; echo noise; echo /dump/m1'
    method = commands(directory, api, checkpoint=script)
    dump = method.checkpoint(a_record(MigrationState.PREPARED), a_pod(), 30.0)
    assert (dump.archive, dump.dumped_at) == ("/dump/m1", 5.0)
    told = dict(line.split("=", 1) for line in (directory / "told").read_text().splitlines())
    assert told["HTAS_POD"] == "train-x"
    assert told["HTAS_NAMESPACE"] == "default"
    assert (told["HTAS_SOURCE_ADDRESS"], told["HTAS_TARGET_ADDRESS"]) == ("192.0.2.1", "192.0.2.2")
    assert (told["HTAS_CONTAINERS"], told["HTAS_DEADLINE_SECONDS"]) == ("main", "30")


@pytest.mark.parametrize(("printed", "images", "size"), [("img:1", ("img:1",), 0), ("img:1 2048", ("img:1",), 2048)])
def test_a_transfer_names_the_images(
    printed: str, images: tuple[str, ...], size: int, directory: Path, api: ApiServer
) -> None:
    delivered = commands(directory, api, transfer=f"echo {printed}").deliver(a_record(), a_pod(), 30.0)
    assert (delivered.images, delivered.size) == (images, size)


@pytest.mark.parametrize("printed", ["", "a b c", "a b"])
def test_a_transfer_that_names_no_images_has_failed(printed: str, directory: Path, api: ApiServer) -> None:
    with pytest.raises(StepFailedError, match="not 1 images"):
        commands(directory, api, transfer=f"echo {printed}").deliver(a_record(), a_pod(), 30.0)


def test_restore_is_given_the_twin_and_its_name(directory: Path, api: ApiServer) -> None:
    script = 'cat > "$(dirname "$0")/twin"; echo "$HTAS_TWIN" > "$(dirname "$0")/name"'
    method = commands(directory, api, restore=script)
    name = method.restore(a_record(image="img:1"), a_pod(), 30.0)
    twin = msgspec.json.decode((directory / "twin").read_bytes())
    assert name == twin["metadata"]["name"] == (directory / "name").read_text().strip()
    assert twin["spec"]["containers"][0]["image"] == "img:1"
    assert twin["spec"]["nodeName"] == "b"


@pytest.mark.parametrize(("code", "is_final"), [(1, False), (10, True)])
def test_an_exit_code_tells_whether_another_attempt_is_of_use(
    code: int, is_final: bool, directory: Path, api: ApiServer
) -> None:
    method = commands(directory, api, checkpoint=f"echo it is locked >&2; exit {code}")
    with pytest.raises(StepFailedError, match="it is locked") as failed:
        method.checkpoint(a_record(), a_pod(), 30.0)
    assert (failed.value.reason, failed.value.is_final) == (Failure.COMMAND_FAILED, is_final)


def test_one_that_takes_too_long_is_ended_with_all_it_has_started(directory: Path, api: ApiServer) -> None:
    method = commands(directory, api, checkpoint='sleep 60 & echo $! > "$(dirname "$0")/pid"; wait')
    began = time.monotonic()
    with pytest.raises(StepFailedError) as failed:
        method.checkpoint(a_record(), a_pod(), 0.3)
    assert failed.value.reason is Failure.DEADLINE
    assert time.monotonic() - began < 20
    child = Path("/proc") / (directory / "pid").read_text().strip() / "stat"
    assert not child.exists() or child.read_text().split()[2] == "Z"


def test_one_that_cannot_be_run_at_all_ends_the_move(directory: Path, api: ApiServer) -> None:
    method = OwnCommands(Objects(api), Commands(checkpoint=str(directory / "nothing")))
    with pytest.raises(StepFailedError, match="No such file") as failed:
        method.checkpoint(a_record(), a_pod(), 5.0)
    assert failed.value.is_final
