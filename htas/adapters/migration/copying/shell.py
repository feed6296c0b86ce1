"""Shell commands on nodes by ssh: one command and what it prints, or a stream from one node to another."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Timer

import msgspec

from htas.adapters.migration.method import StepFailedError, copy_failure, shortened
from htas.model.migrations import Failure, SecureCopy

CHUNK = 1 << 20
CONNECT_S = 10
LONGEST_LINE = 65_536
"""Bytes: a node that was taken over says no more than this at once."""
PATIENCE_S = 5.0
"""For the end of a stream to tidy up before it is killed."""
UNREACHED = 255
"""What ssh itself ends with where it cannot log in, or loses its connection."""


class CommandFailedError(Exception):
    """A command on a node ended with another code than 0; `said` is what it wrote to its standard error."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"exit code {code}: {shortened(said)}")
        self.code, self.said = code, said


class Streamed(msgspec.Struct, frozen=True):
    """What came through a stream: what the source announced, and how many bytes it then sent."""

    announced: str
    size: int


class Session:
    """A command on a node that is talked with line by line; its standard input stays open until `end`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def say(self, *lines: str) -> None:
        """Raises OSError where it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self._process.stdin.flush()

    def hear(self) -> str:
        """The next line; empty where it has ended, or says an empty one."""
        assert self._process.stdout is not None
        return self._process.stdout.readline(LONGEST_LINE).decode("utf-8", "replace").strip()

    def wait(self) -> int:
        """Its exit code, once it has ended by itself or its time is up."""
        return self._process.wait()

    def end(self) -> int:
        """Close its standard input, give it a while to tidy up, and then no longer; returns its exit code."""
        _close(self._process)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_S)
        _kill([self._process])
        return self._process.wait()

    def ended(self) -> tuple[int, str]:
        """The exit code, and what it wrote to its standard error; it is ended where it has not."""
        return self.end(), _said(self._process)


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
            *("-o", "Ciphers=^aes128-gcm@openssh.com"),  # several times as fast as the default where AES is in hardware
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
        self,
        source: str,
        reading: str,
        target: str,
        writing: str,
        around: Callable[[str], tuple[bytes, bytes]],
        within_s: float,
    ) -> Streamed:
        """Send what a command on one node prints to a command on another.

        The first line that is read announces what follows; `around` tells by it what is sent before and after. Nothing
        is written down or hashed on the way: that is for the ends. Raises StepFailedError where either end fails or
        time is up.
        """
        with self._open(source, reading) as reader, self._open(target, writing) as writer:
            alarm = Timer(max(0.1, within_s), _kill, [(reader, writer)])
            began = time.monotonic()
            alarm.start()
            try:
                return _pumped(reader, writer, around)
            except (OSError, ValueError, CommandFailedError) as error:
                _close(writer)  # its end of the file is where the importer gives up and tidies
                _kill([reader])
                if time.monotonic() - began >= within_s:
                    raise StepFailedError(Failure.DEADLINE, f"not copied within {within_s:.0f} s") from error
                said = " ".join(_said(end) for end in (reader, writer)).strip()
                raise copy_failure(f"{error}: {said}" if said else str(error)) from error
            finally:
                alarm.cancel()
                _close(writer)
                with suppress(subprocess.TimeoutExpired):
                    writer.wait(PATIENCE_S)
                _kill((reader, writer))

    @contextmanager
    def session(self, address: str, command: str, within_s: float) -> Iterator[Session]:
        """Talk with a command on a node; its connection is cut after so many seconds, and when the context ends."""
        with self._open(address, command) as process:
            session = Session(process)
            alarm = Timer(max(0.1, within_s), _kill, [[process]])
            alarm.start()
            try:
                yield session
            finally:
                alarm.cancel()
                session.end()

    def _open(self, address: str, command: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self._ssh(address, command), stdin=pipe, stdout=pipe, stderr=pipe)

    def _ssh(self, address: str, command: str) -> list[str]:
        return ["ssh", *self._options, "--", address, command]


def _pumped(
    reader: subprocess.Popen[bytes], writer: subprocess.Popen[bytes], around: Callable[[str], tuple[bytes, bytes]]
) -> Streamed:
    """Raises OSError where the writer ends early, CommandFailedError where either end fails."""
    assert reader.stdout is not None
    assert writer.stdin is not None
    _close(reader)
    announced = reader.stdout.readline().decode("utf-8", "replace")
    if not announced:
        raise CommandFailedError(reader.wait(), "nothing was read")
    head, tail = around(announced)
    writer.stdin.write(head)
    size = 0
    while chunk := reader.stdout.read(CHUNK):
        size += len(chunk)
        writer.stdin.write(chunk)
    if reader.wait() != 0:
        raise CommandFailedError(reader.returncode, f"the copy broke off after {size} bytes")
    writer.stdin.write(tail)
    writer.stdin.close()
    if writer.wait() != 0:
        raise CommandFailedError(writer.returncode, f"the image was refused after {size} bytes")
    return Streamed(announced, size)


def _said(process: subprocess.Popen[bytes]) -> str:
    """What it wrote to its standard error, once it has ended."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE_S)
    _kill([process])
    assert process.stderr is not None
    os.set_blocking(process.stderr.fileno(), False)  # a child that it left behind may hold it open for long
    return (process.stderr.read() or b"").decode("utf-8", "replace").strip()


def _close(process: subprocess.Popen[bytes]) -> None:
    """Its standard input; what is still buffered has no reader where it has ended."""
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


def _kill(ends: Sequence[subprocess.Popen[bytes]]) -> None:
    for end in ends:
        with suppress(ProcessLookupError):
            if end.poll() is None:
                end.kill()
