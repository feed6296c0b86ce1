"""Who asked for what, a line of JSON each: over HTTP, and by command.

Nobody waits for it: lines go through a queue to a thread of their own. One that does not fit into the queue is counted,
and the next line says how many went (`dropped`). No control character is left as it is, so that no path makes a second
line, obeys a terminal or turns the line round; no header and no body is written down, and of a query no value that is
called a secret. The address is that of the connection: what a header says of another, anybody may say.
"""

from __future__ import annotations

import getpass
import queue
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlencode

import msgspec
import structlog

from htas.config.audit import Audited
from htas.config.loader import Loaded
from htas.model.shown import literal_json

log = structlog.get_logger()

LONGEST = 500
"""Of each text in a line."""
MOST_WAITING = 2_000
_SECRET = re.compile(r"token|secret|password|once|key", re.IGNORECASE)
READING = frozenset({"GET", "HEAD"})


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line. `who` is a user of the API server, `http.tokenFile` for who showed that token, or the user of the machine
    where a command was given; empty: nobody who is known. `source` is the address that it came from.
    """

    at: str
    how: str
    who: str = ""
    source: str = ""
    method: str = ""
    path: str = ""
    query: str = ""
    status: int = 0
    took_ms: int = 0
    agent: str = ""
    said: str = ""
    dropped: int = 0


class AuditLog:
    """Written by a thread from `start` to `close`. `path` None: standard output."""

    def __init__(self, path: Path | None, what: Audited, max_bytes: int) -> None:
        self._path = path
        self._what = what
        self._max_bytes = max_bytes
        self._lines: queue.Queue[AuditEntry | None] = queue.Queue(MOST_WAITING)
        self._dropped = 0
        self._complained = False
        self._thread = Thread(target=self._run, name="audit", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """What waits is written."""
        self._lines.put(None)
        if self._thread.is_alive():
            self._thread.join(5.0)

    def request(self, entry: AuditEntry) -> None:
        """A request was answered; one that only read is passed over where changes alone are asked for."""
        if self._what is Audited.CHANGES and entry.method in READING and entry.status not in (401, 403):
            return
        self.put(entry)

    def put(self, entry: AuditEntry) -> None:
        try:
            self._lines.put_nowait(entry)
        except queue.Full:
            self._dropped += 1

    def _run(self) -> None:
        while (entry := self._lines.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            self.write(msgspec.structs.replace(entry, dropped=dropped) if dropped else entry)

    def write(self, entry: AuditEntry) -> None:
        """Write a line now. A disk that is full is told once, and stops nobody."""
        line = f"{literal_json(msgspec.json.encode(entry).decode())}\n".encode()
        try:
            if self._path is None:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            else:
                self._append(self._path, line)
            self._complained = False
        except (OSError, ValueError) as error:
            if not self._complained:
                log.warning("the audit log cannot be written", error=str(error))
            self._complained = True

    def _append(self, path: Path, line: bytes) -> None:
        if path.exists() and path.stat().st_size + len(line) > self._max_bytes:
            path.replace(path.with_name(f"{path.name}.1"))
        is_new = not path.exists()
        with path.open("ab") as stream:
            stream.write(line)
        if is_new:
            path.chmod(0o600)


def audit_of(loaded: Loaded) -> AuditLog | None:
    """As configured; None: nobody asked for it."""
    setting = loaded.settings.audit
    if setting.to is None:
        return None
    path = None if setting.to == "-" else loaded.directory / setting.to
    return AuditLog(path, setting.what, setting.max_bytes)


def note_command(loaded: Loaded, command: str, said: str = "") -> None:
    """A command that changes something is about to: one line, where the audit log is a file."""
    if loaded.settings.audit.to in (None, "-"):
        return
    made = audit_of(loaded)
    if made is not None:
        made.write(AuditEntry(instant(time.time()), "command", getpass.getuser(), path=command, said=cut(said)))


def instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def plain_query(query: str) -> str:
    """A query without the values that are secrets, in case somebody sends one so."""
    pairs = parse_qsl(query[: 4 * LONGEST], keep_blank_values=True)
    return cut(urlencode([(name, "*" if _SECRET.search(name) else value) for name, value in pairs], safe="*/"))
