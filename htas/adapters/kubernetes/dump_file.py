"""The bytes of a dump: from a file or standard input, compressed or not, and no more than memory holds.

What cannot be a dump is refused by its first bytes, however long it is.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from pathlib import Path
from typing import IO, cast

from htas.adapters.kubernetes.dump import COMMAND, DumpError
from htas.files import RefusedFileError, opened

STDIN = "-"
MOST_BYTES = 2 * 2**30
"""A pod is 4 to 12 KiB of JSON: a cluster of 150,000 pods and more."""
_HEAD_BYTES = 64 * 2**10
_GZIP = b"\x1f\x8b"
_OTHERS = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ\x00": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"\x89PNG": "an image",
    b"\x7fELF": "a program",
}
_KUBECTL_SAYS = (
    "error: ",
    "Error from server",
    "Unable to connect",
    "The connection to the server",
    "No resources found",
)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_WORDS = (b"apiVersion", b"kind", b"items")
"""One of these stands near the beginning of every Kubernetes object."""


def read_bytes(path: Path) -> bytes:
    """The text of a dump. Raises OSError, and DumpError on what is none, by its first 64 KiB, or too long."""
    if str(path) == STDIN:
        if sys.stdin.isatty():
            raise DumpError(f"-: nothing is sent to standard input; write: {COMMAND} | htas … --from -")
        return _read(sys.stdin.buffer, STDIN)
    try:
        with opened(path, takes_pipes=True) as file:
            return _read(cast("IO[bytes]", file), str(path))
    except RefusedFileError as error:
        raise DumpError(f"{path}: {error.why}, such as of: {COMMAND} > dump.json") from None


def _read(file: IO[bytes], name: str) -> bytes:
    head = _upto(file, _HEAD_BYTES)
    if head.startswith(_GZIP):
        return _unpacked(_Rest(head, file), name)
    refuse(head, name)
    return _whole(head, file, name)


def _unpacked(file: _Rest, name: str) -> bytes:
    """Of a gzip file, which may unpack to anything: no more than is allowed is unpacked."""
    try:
        with gzip.open(cast("IO[bytes]", file)) as unpacked:
            stream = cast("IO[bytes]", unpacked)
            head = _upto(stream, _HEAD_BYTES)
            refuse(head, name)
            return _whole(head, stream, name)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DumpError(f"{name}: begins as a gzip file and is none: {error}") from None


class _Rest:
    """A file whose head was read already."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._head = head
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._file.read(size)
        part = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(part) :]
        return part + self._file.read() if size < 0 else part


def _upto(file: IO[bytes], size: int) -> bytes:
    """So many bytes, or all there are: a pipe gives fewer at a time."""
    parts, left = [], size
    while left and (part := file.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _whole(head: bytes, file: IO[bytes], name: str) -> bytes:
    rest = _upto(file, MOST_BYTES - len(head) + 1)
    if len(head) + len(rest) > MOST_BYTES:
        raise DumpError(f"{name}: is longer than {MOST_BYTES // 2**30} GiB; is it what kubectl printed? {COMMAND}")
    return head + rest


def refuse(head: bytes, name: str) -> None:
    """Raises DumpError where a text that begins so is no dump, with what it looks like."""
    for magic, what in _OTHERS.items():
        if head.startswith(magic):
            raise DumpError(f"{name}: is {what}; a dump is JSON or YAML, or either by gzip: {COMMAND} > dump.json")
    if b"\0" in head and not head.startswith(_UTF_16):
        raise DumpError(f"{name}: is no text; a dump is JSON or YAML, or either by gzip: {COMMAND} > dump.json")
    first = head.lstrip()[:300].split(b"\n", 1)[0].decode(errors="replace").strip()
    if first.startswith(_KUBECTL_SAYS):
        raise DumpError(f"{name}: is no dump, but an error of kubectl: {first[:160]!r}. Write it with: {COMMAND}")
    if head.startswith((b"NAME ", b"NAMESPACE ", b"NAME\t")):
        raise DumpError(f"{name}: is the table that kubectl prints for people; write it with -o json: {COMMAND}")
    if len(head) == _HEAD_BYTES and not head.startswith(_UTF_16) and not any(word in head for word in _WORDS):
        first = head.split(b"\n", 1)[0][:60].decode(errors="replace").strip()
        raise DumpError(f"{name}: holds no Kubernetes objects; it begins {first!r}. Write it with: {COMMAND}")
