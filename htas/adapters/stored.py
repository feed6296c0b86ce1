"""Bodies as stores and queues hold them, and what to do with those that cannot be read."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from htas.ports import PermanentError

_T = TypeVar("_T")
_Row = TypeVar("_Row")


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError, zlib.error)
"""What reading a body raises that no htas wrote, or that was damaged since: lists in lists without end, too."""
MOST_UNPACKED = 256 * 2**20
"""Bytes of a cycle, of which 50,000 pods take some 40 million: 900 KB that unpack to 900 MB took 1.8 GB."""
_log = logging.getLogger(__name__)
"""Not structlog's: where nobody has set that up, in commands, it writes among their results."""


def readable(rows: Iterable[_Row], read: Callable[[_Row], _T]) -> Iterator[_T]:
    """Rows of history, each read as it is asked for, without those that cannot be read, which the log tells: one that
    is damaged must not lose the others. Raises PermanentError of the first one where none can be read.
    """
    found = failed = 0
    why = ""  # not the error itself: its traceback would keep the body, up to 256 MiB
    for row in rows:
        try:
            record = read(row)
        except PermanentError as error:
            failed, why = failed + 1, why or str(error)
            continue
        found += 1
        yield record
        del record  # or it were held beside the next one
    if failed and not found:
        raise PermanentError(why)
    if failed:
        _log.warning("%d of %d rows of history are left out: %s", failed, failed + found, why)


def unpacked(body: bytes) -> bytes:
    """A body that zlib has packed; raises zlib.error where it is damaged or larger than MOST_UNPACKED."""
    unpacker = zlib.decompressobj()
    found = unpacker.decompress(body, MOST_UNPACKED + 1)
    if len(found) > MOST_UNPACKED:
        raise zlib.error(f"it unpacks to more than {MOST_UNPACKED:,} bytes")
    if not unpacker.eof:
        raise zlib.error("it ends too early")
    return found


def decoded(body: bytes | str, kind: type[_T]) -> _T:
    """A body of that kind; raises one of UNREADABLE where it is none."""
    return msgspec.json.decode(body, type=kind)


def name_of(kind: type[Any]) -> str:
    """What people are told of a body that cannot be read; a union has no name of its own."""
    return getattr(kind, "__name__", "Disruption")
