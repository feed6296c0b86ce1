"""How values are put into rows and found again: shards, days, instants and bodies."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from cassandra.util import Date

from htas.adapters import stored
from htas.adapters.cassandra.session import Write
from htas.model.record import DAY_S
from htas.ports import PermanentError

_T = TypeVar("_T")
BATCH = 50
"""Rows of one partition in one write: some 5 KB of profile rows."""


def shard_of(name: str, shards: int) -> int:
    """The same for a name for ever: changing it would hide what is stored."""
    return zlib.crc32(name.encode()) % shards


def day_of(instant: float) -> int:
    """Days since the epoch (UTC)."""
    return math.floor(instant / DAY_S)


def date_of(day: int) -> Any:
    """The value of a column of type date."""
    return Date(day)


def millis(instant: float) -> int:
    """The value of a column of type timestamp."""
    return round(instant * 1000)


def first_millis(since: float) -> int:
    """Nothing at or after `since` has an earlier timestamp."""
    return math.floor(since * 1000)


def instant_of(stamp: datetime) -> float:
    """A timestamp as the driver gives it (UTC, without saying so)."""
    return stamp.replace(tzinfo=UTC).timestamp()


def body_of(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


def decoded(body: str | bytes, kind: type[_T]) -> _T:
    """A stored body; raises PermanentError where another version of htas wrote it."""
    try:
        return stored.decoded(body, kind)
    except stored.UNREADABLE as error:
        raise PermanentError(
            f"Cassandra: a stored {stored.name_of(kind)} cannot be read: {error};"
            " it was written by another version of htas, use that one or name another keyspace"
        ) from error


def batches(writes: Iterable[tuple[Any, Write]]) -> Iterator[list[Write]]:
    """Writes, each with its partition, as batches of one partition each; within a partition in their order."""
    partitions: dict[Any, list[Write]] = {}
    for partition, write in writes:
        partitions.setdefault(partition, []).append(write)
    for group in partitions.values():
        for i in range(0, len(group), BATCH):
            yield group[i : i + BATCH]
