"""Backups of a store that is a SQLite file: made while a daemon writes it, and restored in its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import time

from htas.adapters.owning import owned
from htas.adapters.sqlite.backup import copy, put_in_place, take_in, unfinished_beside
from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import Loaded
from htas.daemon.http.audit import note_command
from htas.daemon.wiring.stores import recorded_file, store_path
from htas.execution.taking_over import drop_intentions
from htas.model.plan_document import instant_text
from htas.ports import HTASError, PermanentError

RESTORED = "the store was restored from a backup"


def backup(loaded: Loaded, file: Path) -> str:
    """Copy the configured store into a new file; says what is in it."""
    _check_is_file(loaded, "nodetool snapshot")
    note_command(loaded, "htas store backup")
    copy(Path(recorded_file(loaded)), file)
    return f"{file}: {_content(file)}"


def restore(loaded: Loaded, file: Path, clock: Callable[[], float] = time, *, without_log: bool = False) -> str:
    """Put a backup in the store's place; says what is in it, and where what was there is kept.

    What the backup intended is dropped in it, as where another daemon has led meanwhile: launches that had not been
    asked for, drains and rearrangements. Raises PermanentError where a daemon has the store, or the backup is none;
    nothing is changed then. `without_log`: also a file that may lack what was written to it last.
    """
    _check_is_file(loaded, "the backup of its cluster")
    note_command(loaded, "htas store restore")
    path = Path(store_path(loaded))
    if not file.is_file():
        raise PermanentError(f"{file}: there is no such backup")
    if path.exists() and file.samefile(path):
        raise PermanentError(f"{file}: is the store itself, nothing is changed; name a backup")
    lock = owned(str(path), 0.0, "end every daemon that uses this store first")
    try:
        with unfinished_beside(path) as new:
            take_in(file, new, without_log=without_log)
            told = _made_ready(new, file, clock())
            aside = path.with_name(f"{path.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
            Path(f"{path}.term").unlink(missing_ok=True)  # whoever led last led by another journal
            was_there = put_in_place(new, path, aside)
    finally:
        os.close(lock)
    kept = f"\nwhat was there is kept as {aside}" if was_there else ""
    return f"{path}: restored from {file}: {told}{kept}"


def _made_ready(new: Path, file: Path, now: float) -> str:
    """Bring what was taken in up to date and drop what it intended; returns what it has. Errors name the backup."""
    try:
        store = SqliteStore(str(new))
        try:
            drop_intentions(store, (), now, RESTORED)
        finally:
            store.close()
        return _content(new)
    except HTASError as error:
        raise PermanentError(str(error).replace(str(new), str(file))) from error


def _check_is_file(loaded: Loaded, instead: str) -> None:
    if loaded.sqlite is None:
        raise PermanentError(f"store.cassandra: it is no file; use {instead}, what lies here is its buffer alone")
    if loaded.sqlite.path == ":memory:":
        raise PermanentError("store.sqlite.path: the store is in memory; there is no file to copy")


def _content(file: Path) -> str:
    """What a store has, in words; all of it is read once."""
    store = SqliteStore(str(file), only_reads=True)
    try:
        claims, bills = store.claims(), store.bills()
        newest = next(iter(store.cycles(limit=1)), None)
    finally:
        store.close()
    is_open = sum(bill.ended_at is None for bill in bills)
    at = f"the last cycle at {instant_text(newest.at)}" if newest is not None else "no cycle"
    return f"{len(claims)} machines, {len(bills)} bills ({is_open} open), {at}"
