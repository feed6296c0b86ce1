"""What a daemon does in each story: its calls on cluster and cloud in order, and outcomes that no call shows.

Sentences for people are left out, and so are calls that only repeat them: words may change, deeds may not.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from htas.daemon.loops.cycle import CycleResult, Daemon
from htas.model.claims import NodeClaim
from htas.model.constraints import Taint
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.pods import Pod
from htas.sandbox.announcer import SandboxAnnouncer
from htas.sandbox.cloud import SandboxCloud
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.migration import SandboxMigration

STORIES = "stories.jsonl"
Stories = Mapping[str, tuple[str, ...]]
"""The lines of each, by the name of its test."""
CALLS: Mapping[type, Mapping[str, tuple[str, ...]]] = {
    SandboxCluster: {
        "bind": ("pod", "node", "deletion_cost"),
        "evict": ("pod", "grace_s"),
        "nominate": ("pod", "node"),
        "preempt": ("pod",),
        "set_draining": ("node", "draining"),
        "set_up_node": ("node", "labels", "taints"),
        "disown_node": ("node",),
        "delete_node": ("node",),
    },
    SandboxCloud: {"create": ("claim",), "delete": ("instance_id",)},
    SandboxMigration: {"start": ("pod", "target", "method")},
    SandboxAnnouncer: {"mark_waiting": ("pod",)},
}
"""Those that change the world, and the arguments that are compared; the first one names what the call is about."""
AS_CALLED = frozenset(
    {
        Action.BIND,
        Action.NOMINATE,
        Action.PREEMPT,
        Action.LAUNCH,
        Action.DELETE,
        Action.DELETE_NODE,
        Action.DRAIN,
        Action.UNDO_DRAIN,
        Action.EVICT,
    }
)
"""Where such an action is done, its call says so."""
ONCE = frozenset({"mark_waiting"})
"""Calls of which only a pod's first one counts: the next ones bring another sentence."""
HEAD = 120
"""Lines of a story that are kept as they are; the others are counted, and compared by their digest."""


@contextmanager
def listening() -> Iterator[list[str]]:
    """Lines of what daemons call and what comes of it, from now until the end of the block."""
    ear = _Ear()
    with ExitStack() as undone:
        for kind, calls in CALLS.items():
            for name, compared in calls.items():
                call = getattr(kind, name)
                undone.callback(setattr, kind, name, call)
                setattr(kind, name, ear.hearing(name, compared, call))
        undone.callback(setattr, Daemon, "run_cycle", Daemon.run_cycle)
        setattr(Daemon, "run_cycle", ear.following(Daemon.run_cycle))  # noqa: B010 - mypy forbids it as an attribute
        yield ear.lines
        ear.write({})


class _Ear:
    """Calls are written once their cycle has ended, with its time in seconds since the first cycle."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._began: float | None = None
        self._once: set[tuple[str, Any]] = set()

    def hearing(self, name: str, compared: Sequence[str], call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, heard."""
        signature = inspect.signature(call)

        @wraps(call)
        def heard(port: object, *arguments: Any, **named: Any) -> Any:
            given = signature.bind(port, *arguments, **named).arguments
            line = _call(name, compared, given)
            if name not in ONCE or (name, line[name]) not in self._once:
                self._once.add((name, line[name]))
                self._calls.append(line)
            try:
                return call(port, *arguments, **named)
            except Exception as error:
                line["raises"] = type(error).__name__
                raise

        return heard

    def following(self, cycle: Callable[..., CycleResult]) -> Callable[..., CycleResult]:
        """The same cycle, of which calls and outcomes are written."""

        @wraps(cycle)
        def run_cycle(*arguments: Any, **named: Any) -> CycleResult:
            result = cycle(*arguments, **named)
            taken_at = result.snapshot.taken_at
            self._began = taken_at if self._began is None else self._began
            self._calls += [_outcome(each) for each in result.outcomes if not _is_as_called(each)]
            self.write({"at": _short(round(taken_at - self._began, 3))})
            return result

        return run_cycle

    def write(self, at: Mapping[str, Any]) -> None:
        """What was heard since the last line."""
        self.lines.extend(msgspec.json.encode({**at, **line}).decode() for line in self._calls)
        self._calls.clear()


def _call(name: str, compared: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    first, *others = compared
    line = {name: _plain(given[first])}
    if isinstance(claim := given[first], NodeClaim):
        line |= {"group": claim.group, "flavour": claim.flavour, "zone": claim.zone, "replaces": list(claim.replaces)}
    line |= {each: _plain(given.get(each)) for each in others}
    return {key: value for key, value in line.items() if key == name or value not in (None, [], {})}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    line = {
        "came": outcome.action.value,
        "of": outcome.subject,
        "status": outcome.status.value if outcome.status is not OutcomeStatus.DONE else None,
        "reason": outcome.reason.value if outcome.reason is not None else None,
        "target": outcome.target or None,
    }
    return {key: value for key, value in line.items() if value is not None}


def _is_as_called(outcome: Outcome) -> bool:
    return outcome.status is OutcomeStatus.DONE and outcome.action in AS_CALLED


def _plain(value: Any) -> Any:
    """A pod by its key, a claim by its id, a taint as kubectl writes it."""
    if isinstance(value, Pod):
        return value.key
    if isinstance(value, NodeClaim):
        return value.id
    if isinstance(value, Taint):
        return f"{value.key}:{value.effect}"
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return dict(sorted(value.items()))
    return _short(value) if isinstance(value, float) else value


def _short(number: float) -> float | int:
    return int(number) if number.is_integer() else number


def shortened(lines: Sequence[str]) -> tuple[str, ...]:
    """A long story's beginning, and of the rest how many calls of each kind there are, and a digest."""
    rest = lines[HEAD:]
    if not rest:
        return tuple(lines)
    kinds = Counter(next(key for key in msgspec.json.decode(line) if key != "at") for line in rest)
    digest = hashlib.sha256("\n".join(rest).encode()).hexdigest()[:16]
    return *lines[:HEAD], msgspec.json.encode({"then": dict(sorted(kinds.items())), "digest": digest}).decode()


def write(path: Path, told: Stories) -> None:
    """A line that names the story, and its lines below."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for story, lines in sorted(told.items()):
            file.writelines(f"{line}\n" for line in (msgspec.json.encode({"story": story}).decode(), *lines))


def read(path: Path) -> dict[str, tuple[str, ...]]:
    """The lines of each story."""
    told: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith('{"story":'):
            lines = told.setdefault(msgspec.json.decode(line)["story"], [])
        else:
            lines.append(line)
    return {story: tuple(each) for story, each in told.items()}


def differing(recorded: Stories, now: Stories) -> Iterator[tuple[str, str]]:
    """Each story that goes another way, and the first line at which it does."""
    for story, lines in recorded.items():
        how = first_difference(lines, now[story]) if story in now else "is not told any more"
        if how:
            yield story, how


def first_difference(recorded: Sequence[str], now: Sequence[str]) -> str:
    """The first line that differs, with what came just before; empty: there is none."""
    for index, (old, new) in enumerate(zip_longest(recorded, now, fillvalue="(its end)")):
        if old != new:
            before = "".join(f"\n               {line}" for line in recorded[max(0, index - 2) : index])
            return f"line {index + 1} of {len(recorded)}:{before}\n      recorded {old}\n      now      {new}"
    return ""
