"""That the audit log has its file for itself: its lines are appended to whatever is there, and it is begun anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

from htas.config.document import Document, Steps, key_text
from htas.config.store import BufferSetting, SqliteSetting
from htas.model.snapshot import Problem

_BESIDE = ("-wal", "-shm", "-journal")
"""What begins with a store's name and one of these is of that store, too: SQLite's own."""


def shared_audit_file(document: Document) -> Iterator[Problem]:
    """Where another key names the file that the audit log goes to, or the one (FILE.1) that it leaves its past in."""
    to = document.at(("audit", "to"))
    if not _is_path(to) or to == "-":
        return
    written = {_real(document, to), _real(document, f"{to}.1")}
    for steps, value in _files(document):
        there = _real(document, value)
        beside = tuple(there + end for end in _BESIDE) if steps[:1] == ("store",) else ()
        if there in written or any(each.startswith(beside) for each in written):
            what = f"is a file of {key_text(steps) or 'the configuration itself'}; name one that nothing else uses"
            yield Problem(document.place(("audit", "to")), what)
            return


def _files(document: Document) -> Iterator[tuple[Steps, str]]:
    """Every path that a configuration names, or leaves at its default, and its own."""
    yield (), document.file
    store = document.at(("store",))
    is_remote = isinstance(store, dict) and "cassandra" in store
    steps: Steps = ("store", "cassandra", "buffer", "path") if is_remote else ("store", "sqlite", "path")
    default = (BufferSetting if is_remote else SqliteSetting).model_fields["path"].default
    named = document.at(steps)
    yield steps, named if _is_path(named) else default
    yield from _named((), document.raw)


def _named(steps: Steps, value: object) -> Iterator[tuple[Steps, str]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        within: Steps = (*steps, key)
        if _is_of_a_file(key) and _is_path(each):
            yield within, each
        else:
            yield from _named(within, each)


def _is_of_a_file(key: str | int) -> bool:
    return isinstance(key, str) and (key in ("file", "path", "template", "flavours") or key.endswith("File"))


def _is_path(value: object) -> TypeGuard[str]:
    """What is none is told elsewhere."""
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def _real(document: Document, path: str) -> str:
    """Where it leads, links followed; the configuration's own name is where it was read."""
    return os.path.realpath(path if path == document.file else Path(document.file).parent / path)
