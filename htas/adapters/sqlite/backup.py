"""Copies of a store's SQLite file: whole while a daemon writes it, checked, and put in place at once."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from htas.adapters.sqlite.errors import primary_code, translated
from htas.adapters.sqlite.schema import lacking, version_of
from htas.ports import PermanentError, TransientError

BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file. A stale one would be played into another file of that name."""
_MAGIC, _WRITE_VERSION, _WAL = b"SQLite format 3\0", 18, 2
"""How a SQLite file begins, and the byte of its header that tells its journal mode: 2 while a log belongs to it."""
_OF_TARGET = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR}
)
"""What goes wrong with the file that is written, while one is copied into another."""


def copy(source: Path, target: Path) -> None:
    """Copy a store into one new file, by SQLite's online backup: nothing that was committed is missing.

    Raises PermanentError where the source is no store of htas or damaged, or the target is there or its folder is not;
    TransientError where the disk is full. The target appears whole or not at all.
    """
    _check_is_new(target)
    with unfinished_beside(target) as unfinished, _told_of(target):
        with (
            _translating(source),
            closing(_opened(source, "rw")) as old,
            _translating(target),
            closing(_opened(unfinished, "rwc")) as new,
        ):
            with _translating(source):
                _check_holds_something(source, version_of(old, str(source)))
            try:
                old.backup(new)
            except sqlite3.Error as error:
                raise translated(str(target if primary_code(error) in _OF_TARGET else source), error) from error
            _check_whole(new, source)
        _flush(unfinished)
        os.link(unfinished, target)  # unlike a rename it never replaces a file
        _flush(target.parent)


def take_in(backup: Path, new: Path, *, without_log: bool = False) -> None:
    """Copy a backup into a new file and check that it is a whole store; the backup and what is beside it stay as found.

    A file that a daemon has open, or had when it was killed, is whole only with its log (`-wal`) beside it.
    `without_log`: it is taken without. Raises PermanentError where it is no whole store; the new file is none then.
    """
    with _told_of(backup):
        with backup.open("rb") as file:
            header = file.read(100)
        parts = [""]
        if header and not header.startswith(_MAGIC):
            raise PermanentError(f"{backup}: is no SQLite database; name a backup made by htas store backup")
        has_log = Path(f"{backup}-wal").is_file() and Path(f"{backup}-wal").stat().st_size > 0
        if header[_WRITE_VERSION : _WRITE_VERSION + 1] != bytes([_WAL]):
            parts += ["-journal"]  # a log beside it is of another file
        elif has_log:
            parts += ["-wal"]
        elif not without_log:
            raise PermanentError(
                f"{backup}: may lack what was written last: a daemon had it open, and its log {backup.name}-wal is not"
                " beside it; put the log there, or name a backup made by htas store backup, or add --without-log to"
                " restore what is in this file alone"
            )
        for part in parts:
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{backup}{part}", f"{new}{part}")
    with _translating(backup), closing(_opened(new, "rw")) as connection:
        _check_holds_something(backup, version_of(connection, str(backup)))
        _check_whole(connection, backup)


def put_in_place(new: Path, path: Path, aside: Path) -> bool:
    """Put a checked file where the store is, at once; what was there is kept as `aside`. Returns whether anything was.

    Whoever dies on the way leaves the old store or the new one: the old one's log goes first, once it is kept aside.
    """
    with _told_of(path):
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


def _check_is_new(target: Path) -> None:
    if not target.parent.is_dir():
        raise PermanentError(f"{target}: create the folder {target.parent}")
    for name in ("", *BESIDE):
        there = Path(f"{target}{name}")
        if there.exists():
            raise PermanentError(f"{there}: is there already; name a new file, nothing is overwritten")


def _check_holds_something(path: Path, version: int) -> None:
    if version == 0:
        what = "a plain copy of the file of a running daemon lacks what is in its log; make one by htas store backup"
        raise PermanentError(f"{path}: holds nothing; {what}")


def _check_whole(connection: sqlite3.Connection, source: Path) -> None:
    """Make a copy one file that may be copied as it is, and check it; `source` is what it was made of."""
    connection.execute("PRAGMA journal_mode = DELETE")
    [(found,)] = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if found != "ok":
        raise PermanentError(f"{source}: is damaged ({found}); nothing was written")
    missing = lacking(connection)
    if missing:
        raise PermanentError(f"{source}: is no whole store of htas; it lacks {', '.join(missing)}; nothing was written")


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=10.0)


@contextmanager
def _translating(path: Path) -> Iterator[None]:
    """SQLite's errors in HTAS's terms, naming a file."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(str(path), error) from error


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """What the system refuses, in HTAS's terms, naming a file."""
    try:
        yield
    except OSError as error:
        raise TransientError(f"{path}: {error.strerror or error}") from error


def _flush(path: Path) -> None:
    """Have a file, or a folder's names, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
