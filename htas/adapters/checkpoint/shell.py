"""Shell commands on nodes by ssh: one command and what it prints, or a stream from one node to another."""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Timer
from typing import IO

import msgspec

from htas.adapters.checkpoint.failures import StepFailedError, copy_failure, shortened
from htas.model.migrations import Failure, SecureCopy

CHUNK = 1 << 20
CONNECT_S = 10
UNREACHABLE = 255
"""ssh's own exit code: it did not get as far as the command."""


class CommandFailedError(Exception):
    """A command on a node ended with another code than 0; `said` is what it wrote to its standard error."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"exit code {code}: {shortened(said)}")
        self.code, self.said = code, said

    @property
    def is_unreachable(self) -> bool:
        return self.code == UNREACHABLE


class Streamed(msgspec.Struct, frozen=True):
    """What came through a stream: the sha256 of all that was sent, and of the part that was read; what was printed."""

    whole: str
    part: str
    part_bytes: int
    printed: str


class Shell:
    """ssh to nodes by their addresses. A host key that is not in the file of known ones is refused."""

    def __init__(self, setting: SecureCopy) -> None:
        self._options = [
            *("-o", "BatchMode=yes"),
            *("-o", "StrictHostKeyChecking=yes"),
            *("-o", f"UserKnownHostsFile={setting.known_hosts_file}"),
            *("-o", "GlobalKnownHostsFile=/dev/null"),
            *("-o", "IdentitiesOnly=yes"),
            *("-o", f"ConnectTimeout={CONNECT_S}"),
            *("-o", "ServerAliveInterval=5"),
            *("-o", "ServerAliveCountMax=3"),
            *("-o", "LogLevel=ERROR"),
            *("-i", setting.identity_file),
            *("-p", str(setting.port)),
            *("-l", setting.user),
        ]

    def run(self, address: str, command: str, within_s: float) -> str:
        """What a command prints. Raises CommandFailedError, or StepFailedError once `within_s` seconds are over."""
        try:
            done = subprocess.run(
                self._ssh(address, command), capture_output=True, timeout=max(0.1, within_s), check=False
            )
        except subprocess.TimeoutExpired as error:
            raise StepFailedError(Failure.DEADLINE, f"{address} did not answer within {within_s:.0f} s") from error
        if done.returncode != 0:
            raise CommandFailedError(done.returncode, done.stderr.decode("utf-8", "replace"))
        return done.stdout.decode("utf-8", "replace")

    def stream(
        self, source: str, reading: str, target: str, writing: str, around: tuple[bytes, bytes], within_s: float
    ) -> Streamed:
        """Send what a command on one node prints to a command on another, between a head and a tail.

        Nothing of it is written down here. Raises StepFailedError where either end fails or time is up.
        """
        until = time.monotonic() + within_s
        with (
            subprocess.Popen(
                self._ssh(source, reading), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as reader,
            subprocess.Popen(
                self._ssh(target, writing), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as writer,
        ):
            ends = (reader, writer)
            alarm = Timer(max(0.1, until - time.monotonic()), _kill, [ends])
            alarm.start()
            try:
                return _pumped(reader, writer, around)
            except (BrokenPipeError, CommandFailedError) as error:
                _kill(ends)
                if time.monotonic() >= until:
                    raise StepFailedError(Failure.DEADLINE, f"not copied within {within_s:.0f} s") from error
                errors = [end.stderr for end in ends if end.stderr is not None]
                said = " ".join(stream.read().decode("utf-8", "replace") for stream in errors)
                raise copy_failure(said.strip() or str(error)) from error
            finally:
                alarm.cancel()
                _kill(ends)
                with suppress(BrokenPipeError):  # what is still buffered has no reader any more
                    _input(writer).close()

    def _ssh(self, address: str, command: str) -> list[str]:
        return ["ssh", *self._options, address, command]


def _pumped(reader: subprocess.Popen[bytes], writer: subprocess.Popen[bytes], around: tuple[bytes, bytes]) -> Streamed:
    """Raises BrokenPipeError where the writer ends early, CommandFailedError where either end fails."""
    assert reader.stdout is not None
    assert writer.stdout is not None
    whole, part, count = hashlib.sha256(), hashlib.sha256(), 0

    def send(chunk: bytes, into: IO[bytes]) -> None:
        whole.update(chunk)
        into.write(chunk)

    send(around[0], _input(writer))
    while chunk := reader.stdout.read(CHUNK):
        part.update(chunk)
        count += len(chunk)
        send(chunk, _input(writer))
    if reader.wait() != 0:
        raise CommandFailedError(reader.returncode, f"the copy broke off after {count} bytes")
    send(around[1], _input(writer))
    _input(writer).close()
    printed = writer.stdout.read().decode("utf-8", "replace")
    if writer.wait() != 0:
        raise CommandFailedError(writer.returncode, f"the copy could not be kept after {count} bytes")
    return Streamed(whole.hexdigest(), part.hexdigest(), count, printed)


def _kill(ends: Sequence[subprocess.Popen[bytes]]) -> None:
    for end in ends:
        with suppress(ProcessLookupError):
            if end.poll() is None:
                end.kill()


def _input(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin
