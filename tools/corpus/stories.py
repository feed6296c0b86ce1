"""What a daemon did in each story: its calls on the ports, in their order, and what its cycles say came of them."""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.cycle import CycleResult, Daemon
from htas.model.claims import NodeClaim
from htas.model.outcomes import Outcome
from htas.sandbox.announcer import SandboxAnnouncer
from htas.sandbox.cloud import SandboxCloud
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.migration import SandboxMigration
from tools.corpus.documents import code_of
from tools.corpus.earlier import FORMER

STORIES = "stories.jsonl.xz"
Stories = Mapping[str, tuple[str, ...]]
"""The lines of each, by the name of its test."""
CALLS: Mapping[type, tuple[str, ...]] = {
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
        "put_disruption",
        "delete_disruption",
        "put_learned",
        "put_bill",
    ),
}
"""Those that change something."""
ON_THE_WORLD: Mapping[type, tuple[str, ...]] = {kind: names for kind, names in CALLS.items() if kind is not SqliteStore}
"""Without the journal, which a daemon writes for itself."""
LONG = 400
"""Characters of a line: a journalled rearrangement can be long, and its beginning names it."""


class Told(msgspec.Struct, frozen=True):
    """A story, and its lines."""

    story: str
    lines: tuple[str, ...]


@contextmanager
def listening(calls: Mapping[type, tuple[str, ...]] = CALLS) -> Iterator[list[str]]:
    """Lines of what daemons call and what comes of it, from now until the end of the block."""
    lines: list[str] = []
    with ExitStack() as undone:
        for kind, names in calls.items():
            for name in names:
                call = getattr(kind, name)
                undone.callback(setattr, kind, name, call)
                setattr(kind, name, _looked_at(lines, name, call))
        undone.callback(setattr, Daemon, "run_cycle", Daemon.run_cycle)
        setattr(Daemon, "run_cycle", _followed(lines, Daemon.run_cycle))  # noqa: B010 - mypy forbids it as an attribute
        yield lines


def _followed(lines: list[str], cycle: Callable[..., CycleResult]) -> Callable[..., CycleResult]:
    @wraps(cycle)
    def run_cycle(*arguments: Any, **named: Any) -> CycleResult:
        result = cycle(*arguments, **named)
        at = f"{result.snapshot.taken_at:.3f}"
        lines.extend(f"{at} {_text(outcome)}"[:LONG] for outcome in result.outcomes)
        return result

    return run_cycle


def _looked_at(lines: list[str], name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def looked_at(port: object, *arguments: Any, **named: Any) -> Any:
        said = [_text(each) for each in (*arguments, *named.values())]
        line = len(lines)
        lines.append(f"  {name} {' '.join(said)}"[:LONG])
        try:
            return call(port, *arguments, **named)
        except Exception as error:
            lines[line] += f" -> {type(error).__name__}"
            raise

    return looked_at


def _text(value: object) -> str:
    """Short: a pod by its key, a machine's node by its name, other structures whole.

    An outcome is put as the first recording had it, which knew neither reason nor target.
    """
    if isinstance(value, NodeClaim):  # its marks of owners are digests, which any new field of constraints changes
        value = msgspec.structs.replace(value, launched_for=())
    if isinstance(value, list | tuple) and any(isinstance(each, NodeClaim) for each in value):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, Outcome):
        value = msgspec.structs.replace(value, reason=None, target="")
    for name in ("key", "name"):
        known = getattr(value, name, None)
        if isinstance(value, msgspec.Struct) and isinstance(known, str) and not hasattr(value, "version"):
            return known
    if isinstance(value, str | float | int | None):
        return str(value)
    return msgspec.json.encode(value, order="deterministic").decode()


def write(path: Path, told: Stories) -> None:
    with lzma.open(path, "wb") as lines:
        for story, said in sorted(told.items()):
            lines.write(msgspec.json.encode(Told(story, said)) + b"\n")


def read(path: Path) -> dict[str, tuple[str, ...]]:
    with lzma.open(path) as lines:
        told = [msgspec.json.decode(line, type=Told) for line in lines]
    return {each.story: each.lines for each in told}


def differing(recorded: Stories, now: Stories) -> Iterator[tuple[str, str]]:
    """Each story that goes another way, and the first line at which it does."""
    for story, lines in recorded.items():
        if story not in now:
            yield story, "is not told any more"
            continue
        how = first_difference(lines, now[story])
        if how:
            yield story, how


def first_difference(recorded: Sequence[str], now: Sequence[str]) -> str:
    """In words, with what came just before; empty: there is none. Sentences for people are not compared."""
    for index, (old, new) in enumerate(zip_longest(recorded, now, fillvalue="(its end)")):
        if old != new and _done(old) != _done(new):
            before = "".join(f"\n               {line}" for line in recorded[max(0, index - 2) : index])
            return f"line {index + 1} of {len(recorded)}:{before}\n      recorded {old}\n      now      {new}"
    return ""


_MESSAGE = re.compile(r'"message":"((?:[^"\\]|\\.)*)"?')
_MARKED = re.compile(r"(  mark_waiting \S+).*")
_VERB = re.compile(r'"verb":"([\w-]+)"')


def _done(line: str) -> str:
    """What a line says was done: of its message the reason, by its name today."""
    line = _MESSAGE.sub(lambda found: f'"message":"{code_of(found[1])}"', line)
    line = _VERB.sub(lambda found: f'"verb":"{FORMER.get(found[1], found[1])}"', line)
    return _MARKED.sub(r"\1", line)
