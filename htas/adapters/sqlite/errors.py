"""SQLite's errors in HTAS's terms: what may pass by itself is transient, the rest says what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from htas.ports import PermanentError, TransientError

PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
    }
)
"""Another process is writing, or the disk is full or fails for now: the same call may succeed in the next cycle."""

_MAY_NOT_WRITE = "give the user that runs htas the right to write the file and its folder"
ADVICE = {
    sqlite3.SQLITE_READONLY: _MAY_NOT_WRITE,
    sqlite3.SQLITE_PERM: _MAY_NOT_WRITE,
    sqlite3.SQLITE_NOTADB: "it is no SQLite database: name another file, or move this one away",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: stop htas, move it away and start again; pods and machines are found"
    " in the cluster and the cloud, only history is lost",
}


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code: 5 (busy) for 261 (busy in recovery). Python's own errors have none: 1 (error)."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def translated(path: str, error: sqlite3.Error) -> TransientError | PermanentError:
    """The error to raise in place of SQLite's, naming the file."""
    code = primary_code(error)
    if code in PASSING:
        return TransientError(f"{path}: {error}")
    advice = _how_to_open(Path(path)) if code == sqlite3.SQLITE_CANTOPEN else ADVICE.get(code)
    return PermanentError(f"{path}: {error}" + (f"; {advice}" if advice else ""))


def _how_to_open(path: Path) -> str:
    if path.is_dir():
        return "it is a folder: name a file in it"
    if not path.parent.is_dir():
        return f"create the folder {path.parent}"
    return _MAY_NOT_WRITE
