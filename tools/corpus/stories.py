"""What a daemon did in each story: its calls on the ports, in their order, and what its cycles say came of them."""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.cycle import CycleResult, Daemon
from htas.model.outcomes import Outcome
from htas.sandbox.announcer import SandboxAnnouncer
from htas.sandbox.cloud import SandboxCloud
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.migration import SandboxMigration

STORIES = "stories.jsonl.xz"
CALLS: dict[type, tuple[str, ...]] = {
    SandboxCluster: (
        "bind",
        "evict",
        "nominate",
        "preempt",
        "set_draining",
        "set_up_node",
        "disown_node",
        "delete_node",
    ),
    SandboxCloud: ("create", "delete"),
    SandboxMigration: ("start",),
    SandboxAnnouncer: ("mark_waiting",),
    SqliteStore: (
        "put_claim",
        "put_claims",
        "put_drain",
        "delete_drain",
        "put_rearrangement",
        "delete_rearrangement",
        "put_learned",
        "put_bill",
    ),
}
"""Those that change something."""
LONG = 400
"""Characters of a line: a journalled rearrangement can be long, and its beginning names it."""


class Told(msgspec.Struct, frozen=True):
    """A story, and its lines."""

    story: str
    lines: tuple[str, ...]


class Telling:
    """Writes down what is called and what comes of it, story by story."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._now: list[str] = []

    def next(self, story: str) -> None:
        self._now = self._lines.setdefault(story, [])
        self._now.clear()

    def told(self) -> dict[str, tuple[str, ...]]:
        return {story: tuple(lines) for story, lines in self._lines.items() if lines}

    def begin(self) -> None:
        """Look at the calls of all daemons from now on."""
        for kind, names in CALLS.items():
            for name in names:
                setattr(kind, name, self._looked_at(name, getattr(kind, name)))
        cycle = Daemon.run_cycle

        @wraps(cycle)
        def run_cycle(daemon: Daemon, *arguments: Any, **named: Any) -> CycleResult:
            result = cycle(daemon, *arguments, **named)
            for outcome in result.outcomes:
                self._now.append(f"{result.snapshot.taken_at:.3f} {_text(outcome)}"[:LONG])
            return result

        setattr(Daemon, "run_cycle", run_cycle)  # noqa: B010 - as a name of the class, mypy would forbid it

    def _looked_at(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def looked_at(port: object, *arguments: Any, **named: Any) -> Any:
            said = [_text(each) for each in (*arguments, *named.values())]
            line = len(self._now)
            self._now.append(f"  {name} {' '.join(said)}"[:LONG])
            try:
                return call(port, *arguments, **named)
            except Exception as error:
                if line < len(self._now):
                    self._now[line] += f" -> {type(error).__name__}"
                raise

        return looked_at


def _text(value: object) -> str:
    """Short: a pod by its key, a machine's node by its name, other structures whole.

    An outcome is put as the first recording had it, which knew neither reason nor target.
    """
    if isinstance(value, Outcome):
        value = msgspec.structs.replace(value, reason=None, target="")
    for name in ("key", "name"):
        known = getattr(value, name, None)
        if isinstance(value, msgspec.Struct) and isinstance(known, str) and not hasattr(value, "version"):
            return known
    if isinstance(value, str | float | int | None):
        return str(value)
    return msgspec.json.encode(value, order="deterministic").decode()


def write(path: Path, told: dict[str, tuple[str, ...]]) -> None:
    with lzma.open(path, "wb") as lines:
        for story, said in sorted(told.items()):
            lines.write(msgspec.json.encode(Told(story, said)) + b"\n")


def read(path: Path) -> dict[str, tuple[str, ...]]:
    with lzma.open(path) as lines:
        told = [msgspec.json.decode(line, type=Told) for line in lines]
    return {each.story: each.lines for each in told}


def _gist(line: str) -> str:
    """A line without how the journal puts moves, which has changed since it was recorded."""
    if line.startswith(("  put_drain", "  put_rearrangement")):
        return re.split(r',"(?:moves|method|victims)":', line, maxsplit=1)[0]
    return line


def differing(recorded: dict[str, tuple[str, ...]], now: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Each story that goes another way, and the first line at which it does."""
    for story, lines in recorded.items():
        if story not in now:
            yield story, "is not told any more"
            continue
        if lines == now[story]:
            continue
        pairs = enumerate(zip(lines, now[story], strict=False))
        index = next((i for i, (old, new) in pairs if _gist(old) != _gist(new)), None)
        if index is None and len(lines) == len(now[story]):
            continue
        if index is None:
            index = min(len(lines), len(now[story]))
        old = lines[index] if index < len(lines) else "(its end)"
        new = now[story][index] if index < len(now[story]) else "(its end)"
        yield story, f"line {index + 1} of {len(lines)}:\n      recorded {old}\n      now      {new}"
