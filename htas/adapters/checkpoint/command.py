"""The method command: the operator's own executables checkpoint, transfer, restore and abort (docs/migration.md)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from htas.adapters.checkpoint.documents import Json, containers_of, twin_of
from htas.adapters.checkpoint.failures import StepFailedError, copy_failure, shortened
from htas.adapters.checkpoint.methods import Delivered, Dump
from htas.adapters.checkpoint.objects import Objects
from htas.model.migrations import Commands, Failure, MigrationRecord
from htas.model.policy import MigrationMethod
from htas.ports import NotFoundError

FOR_GOOD = 10
"""The exit code by which an executable says that another attempt would be of no use."""
GRACE_S = 5.0
"""Between SIGTERM and SIGKILL for one that takes too long."""
ABORT_S = 60.0
PULL_POLICY = "IfNotPresent"


class OwnCommands:
    """Implements Method."""

    name = MigrationMethod.COMMAND

    def __init__(self, objects: Objects, commands: Commands, clock: Callable[[], float] = time.time) -> None:
        self._objects = objects
        self._commands = commands
        self._clock = clock

    def checkpoint(self, record: MigrationRecord, source: Json, within_s: float) -> Dump:
        dumped_at = self._clock()
        archive = _run(self._commands.checkpoint, self._facts(record, source), within_s)
        return Dump(archive or "-", dumped_at)

    def deliver(self, record: MigrationRecord, source: Json, within_s: float) -> Delivered:
        """Its last line names an image for each container, and may end with the size in bytes."""
        words = _run(self._commands.transfer, self._facts(record, source), within_s).split()
        count = len(containers_of(source))
        if len(words) not in (count, count + 1) or not all(word.isdigit() for word in words[count:]):
            told = f"{self._commands.transfer} printed {shortened(' '.join(words))!r}, not {count} images"
            raise StepFailedError(Failure.COMMAND_FAILED, told)
        return Delivered(tuple(words[:count]), (), int(words[count]) if len(words) > count else 0)

    def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
        twin = twin_of(source, record, record.image.split(), PULL_POLICY)
        name: str = twin["metadata"]["name"]
        if self._objects.pod(twin["metadata"]["namespace"], name) is None:
            facts = self._facts(record, source) | {"HTAS_TWIN": name}
            _run(self._commands.restore, facts, within_s, msgspec.json.encode(twin))
        return name

    def clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool) -> None:
        facts = self._facts(record, source) | {"HTAS_KEEP_IMAGE": "yes" if keep_image else "no"}
        _run(self._commands.abort, facts, ABORT_S)

    def forget(self, node: str, move: str) -> None:
        facts = {"HTAS_MOVE": move, "HTAS_STATE": "Gone", "HTAS_TARGET_NODE": node, "HTAS_KEEP_IMAGE": "no"}
        _run(self._commands.abort, facts, ABORT_S)

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        facts = {"HTAS_STATE": "Sweep", "HTAS_TARGET_NODE": node, "HTAS_KEEP": " ".join(keep)}
        _run(self._commands.abort, facts, ABORT_S)

    def _facts(self, record: MigrationRecord, source: Json | None) -> dict[str, str]:
        namespace, _, pod = record.pod.partition("/")
        return {
            "HTAS_MOVE": record.id,
            "HTAS_ATTEMPT": str(record.attempt),
            "HTAS_STATE": record.state.value,
            "HTAS_NAMESPACE": namespace,
            "HTAS_POD": pod,
            "HTAS_POD_UID": record.uid,
            "HTAS_CONTAINERS": " ".join(containers_of(source)) if source is not None else "",
            "HTAS_SOURCE_NODE": record.source,
            "HTAS_SOURCE_ADDRESS": self._address(record.source),
            "HTAS_TARGET_NODE": record.target,
            "HTAS_TARGET_ADDRESS": self._address(record.target),
            "HTAS_ARCHIVE": record.archive,
            "HTAS_IMAGE": record.image,
        }

    def _address(self, node: str) -> str:
        try:
            return self._objects.address(node)
        except NotFoundError:
            return ""


def _run(path: str, facts: Mapping[str, str], within_s: float, stdin: bytes = b"") -> str:
    """The last line that an executable prints. Raises StepFailedError where it fails or takes too long."""
    environment = {**os.environ, **facts, "HTAS_DEADLINE_SECONDS": str(int(within_s))}
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            [path], stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
        )
    except OSError as error:
        raise StepFailedError(Failure.COMMAND_FAILED, f"{path}: {error.strerror}", is_final=True) from error
    with process:
        try:
            out, err = process.communicate(stdin, timeout=max(0.1, within_s))
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise StepFailedError(Failure.DEADLINE, f"{path} took longer than {within_s:.0f} s") from error
    if process.returncode != 0:
        said = shortened(err.decode("utf-8", "replace")) or "nothing was said"
        found = copy_failure(f"{path} ended with {process.returncode}: {said}", Failure.COMMAND_FAILED)
        raise StepFailedError(found.reason, found.detail, is_final=process.returncode == FOR_GOOD)
    lines = out.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """It and what it has started: a copy that outlives its deadline would write into the next attempt's."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
