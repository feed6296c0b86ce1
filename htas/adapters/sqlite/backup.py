"""Copies of a store's SQLite file: whole while a daemon writes it, checked, and put in place at once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from htas.adapters.sqlite.errors import translated
from htas.adapters.sqlite.schema import version_of
from htas.ports import PermanentError

BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file. A stale one would be played into another file of that name."""


def copy(source: Path, target: Path) -> None:
    """Copy a store into one new file, by SQLite's online backup: nothing that was committed is missing.

    Raises PermanentError where the source is no store of htas or damaged, or the target is there; TransientError where
    the disk is full. The target appears whole or not at all.
    """
    if target.exists():
        raise PermanentError(f"{target}: is there already; name a new file, nothing is overwritten")
    with unfinished_beside(target) as unfinished:
        try:
            _copied(source, unfinished)
        except sqlite3.Error as error:
            raise translated(str(source), error) from error
        _flush(unfinished)
        os.link(unfinished, target)  # unlike a rename it never replaces a file
        _flush(target.parent)


def put_in_place(new: Path, path: Path, aside: Path) -> bool:
    """Put a checked file where the store is, at once; what was there is kept as `aside`. Returns whether anything was.

    Whoever dies on the way leaves the old store or the new one: the old one's log goes first, once it is kept aside.
    """
    _flush(new)
    was_there = path.exists()
    if was_there:
        os.link(path, aside)
    for name in BESIDE:
        with suppress(FileNotFoundError):
            os.link(f"{path}{name}", f"{aside}{name}")
    _flush(path.parent)
    for name in BESIDE:
        Path(f"{path}{name}").unlink(missing_ok=True)
    new.replace(path)
    _flush(path.parent)
    return was_there


@contextmanager
def unfinished_beside(path: Path) -> Iterator[Path]:
    """A name beside a file's own, for what is not finished; nothing of it stays."""
    unfinished = path.with_name(f"{path.name}.unfinished-{os.getpid()}")
    try:
        yield unfinished
    finally:
        for name in ("", *BESIDE):
            Path(f"{unfinished}{name}").unlink(missing_ok=True)


def _copied(source: Path, target: Path) -> None:
    with closing(_opened(source, "ro")) as old, closing(_opened(target, "rwc")) as new:
        if version_of(old, str(source)) == 0:
            what = (
                "a plain copy of the file of a running daemon lacks what is in its log; make one by htas store backup"
            )
            raise PermanentError(f"{source}: holds nothing; {what}")
        old.backup(new)
        new.execute("PRAGMA journal_mode = DELETE")  # one file, that may be copied as it is
        [(found,)] = new.execute("PRAGMA integrity_check(1)").fetchall()
        if found != "ok":
            raise PermanentError(f"{source}: is damaged ({found}); nothing was written")


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=10.0)


def _flush(path: Path) -> None:
    """Have a file, or a folder's names, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
