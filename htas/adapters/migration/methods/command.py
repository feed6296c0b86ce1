"""The method command: the operator's own executables dump, transfer and restore. docs/migration.md has their contract.

The engine keeps what must not differ: states and their journal, deadlines, attempts, and the identity of owned pods.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec
import structlog

from htas.adapters.migration.documents import Json, containers_of, twin_of
from htas.adapters.migration.method import Delivered, Dump, StepFailedError, shortened
from htas.model.migrations import Commands, Failure, MigrationRecord
from htas.model.moves import MigrationMethod
from htas.ports import NotFoundError

log = structlog.get_logger()

REFUSED = 77
"""EX_NOPERM: no other attempt would succeed."""
ABORT_S = 60.0
MERCY_S = 5.0
"""Between SIGTERM and SIGKILL for a command whose time is up."""


class CommandMethod:
    """Implements Method. `address_of(node)` is the node's InternalIP; raises NotFoundError where it is gone."""

    name = MigrationMethod.COMMAND

    def __init__(
        self, commands: Commands, address_of: Callable[[str], str], clock: Callable[[], float] = time.time
    ) -> None:
        self._commands = commands
        self._address_of = address_of
        self._clock = clock

    def checkpoint(self, record: MigrationRecord, source: Json, within_s: float) -> Dump:
        dumped_at = self._clock()
        printed = self._run("checkpoint", self._commands.checkpoint, self._facts(record, source), within_s)
        lines = printed.splitlines()
        if not lines or not lines[0].strip():
            raise StepFailedError(Failure.COMMAND_FAILED, "checkpoint: printed nothing for transfer to find it by")
        return Dump(lines[0].strip(), dumped_at)

    def deliver(self, record: MigrationRecord, source: Json, within_s: float) -> Delivered:
        printed = self._run("transfer", self._commands.transfer, self._facts(record, source), within_s)
        lines = [*printed.splitlines(), "", ""]
        images, size = tuple(lines[0].split()), lines[1].strip()
        if images and len(images) != len(containers_of(source)):
            what = f"transfer: printed {len(images)} images for {len(containers_of(source))} containers"
            raise StepFailedError(Failure.COMMAND_FAILED, what)
        if size and not size.isdecimal():
            raise StepFailedError(Failure.COMMAND_FAILED, f"transfer: {shortened(size)!r} is no size in bytes")
        return Delivered(images, size=int(size or 0))

    def discard(self, record: MigrationRecord) -> None:
        """Nothing: `abort` is told that the move is done, and knows what the twin needs."""

    def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
        """The command creates the twin, of which it is given the manifest. One that is there already is taken."""
        own = [container["image"] for container in source["spec"]["containers"]]
        twin = twin_of(source, record, record.image.split() or own, "IfNotPresent")
        name: str = twin["metadata"]["name"]
        facts = {**self._facts(record, source), "HTAS_TWIN": name}
        self._run("restore", self._commands.restore, facts, within_s, msgspec.json.encode(twin))
        return name

    def clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool) -> None:
        why = "done" if keep_image else "failed"
        facts = {**self._facts(record, source), "HTAS_WHY": why}
        self._run("abort", self._commands.abort, facts, ABORT_S)

    def clean_again(self, record: MigrationRecord, *, keep_image: bool) -> None:
        self.clean(record, None, keep_image=keep_image)

    def forget(self, node: str, move: str) -> None:
        facts = {"HTAS_MIGRATION": move, "HTAS_TARGET_NODE": node, "HTAS_WHY": "gone"}
        self._run("abort", self._commands.abort, facts, ABORT_S)

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        """Nothing: of moves that nobody remembers the commands know more than we do."""

    def _facts(self, record: MigrationRecord, source: Json | None) -> dict[str, str]:
        namespace, _, pod = record.pod.partition("/")
        return {
            "HTAS_MIGRATION": record.id,
            "HTAS_ATTEMPT": str(record.attempt),
            "HTAS_NAMESPACE": namespace,
            "HTAS_POD": pod,
            "HTAS_POD_UID": record.uid,
            "HTAS_CONTAINERS": " ".join(record.containers or (containers_of(source) if source is not None else ())),
            "HTAS_SOURCE_NODE": record.source,
            "HTAS_SOURCE_ADDRESS": self._address(record.source),
            "HTAS_TARGET_NODE": record.target,
            "HTAS_TARGET_ADDRESS": self._address(record.target),
            "HTAS_ARCHIVE": record.archive,
            "HTAS_IMAGE": record.image,
            "HTAS_TWIN": record.twin,
        }

    def _address(self, node: str) -> str:
        """Empty for a node that is gone: `abort` is called all the same."""
        try:
            return self._address_of(node)
        except NotFoundError:
            return ""

    def _run(self, step: str, path: str, facts: Mapping[str, str], within_s: float, given: bytes = b"") -> str:
        """What a command prints; raises StepFailedError where it fails or takes too long."""
        environment = {**os.environ, **facts, "HTAS_STEP": step, "HTAS_DEADLINE_S": f"{within_s:.0f}"}
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                [path], stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
            )
        except OSError as error:
            what = f"{step}: {path}: {error.strerror}"
            raise StepFailedError(Failure.COMMAND_FAILED, what, is_final=True) from error
        with process:
            try:
                printed, said = process.communicate(given, timeout=max(0.1, within_s))
            except subprocess.TimeoutExpired as error:
                _end(process)
                raise StepFailedError(Failure.DEADLINE, f"{step}: not done within {within_s:.0f} s") from error
        if process.returncode != 0:
            raise _failure(step, process.returncode, said.decode("utf-8", "replace"))
        return printed.decode("utf-8", "replace")


def _failure(step: str, code: int, said: str) -> StepFailedError:
    lines = [line for line in said.splitlines() if line.strip()]
    what = f"{step}: {shortened(lines[-1])}" if lines else f"{step}: ended with {code} and printed nothing"
    if code == REFUSED:
        return StepFailedError(Failure.REFUSED, what, is_final=True)
    return StepFailedError(Failure.COMMAND_FAILED, what)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=MERCY_S)
            return
