"""Recorded work: what stays say of the work itself, apart from the machines that it ran on.

A job that was moved twice has three stays and is one piece of work. A job has a length, which it keeps on any machine;
a service runs until an instant, whenever it started.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from htas.model.pods import WorkKind
from htas.model.record import Bill, Run
from htas.model.resources import NOTHING, Resources

DAEMON_SET = "DaemonSet/"
ON_MOST = 0.5
"""A DaemonSet counts for every machine of a group if it ran on this share of its machines or more."""


class Work(msgspec.Struct, frozen=True):
    """One piece of work in a node group. `ends_at`: of a service, or of work that still runs (inf); else `length_s`.

    `was_running`: it ran already when the record begins. `waited_s`: how long it waited for its first start; None: not
    on record.
    """

    name: str
    group: str
    kind: WorkKind
    requests: Resources
    arrives_at: float
    length_s: float
    ends_at: float = math.inf
    was_running: bool = False
    waited_s: float | None = None


class RecordedWork(msgspec.Struct, frozen=True):
    """The work of a window, and by group what the DaemonSets of each machine ask for."""

    work: Sequence[Work]
    daemons: Mapping[str, Resources]


def recorded_work(stays: Iterable[Run], bills: Iterable[Bill], since: float, until: float) -> RecordedWork:
    """The work that ran on machines of HTAS between two instants."""
    groups = {bill.claim: bill.group for bill in bills}
    of_daemons: dict[str, list[Run]] = defaultdict(list)
    chains: dict[tuple[object, ...], list[list[Run]]] = defaultdict(list)
    machines: dict[str, set[str]] = defaultdict(set)
    for run in sorted(stays, key=lambda run: (run.came_at, run.uid)):
        group = groups.get(run.claim)
        if group is None:
            continue
        machines[group].add(run.claim)
        if run.owner.startswith(DAEMON_SET):
            of_daemons[group].append(run)
        else:
            _chain(chains, run)
    work = [_work(chain, groups[chain[0].claim], since, until) for found in chains.values() for chain in found]
    daemons = {group: _each_asks(runs, len(machines[group])) for group, runs in of_daemons.items()}
    return RecordedWork(sorted(work, key=lambda each: (each.arrives_at, each.name)), daemons)


def _chain(chains: dict[tuple[object, ...], list[list[Run]]], run: Run) -> None:
    """Add a stay to the work that it continues: of the same owner, size and start, the one that left its node first."""
    key = run.namespace, run.owner, run.began_at, run.cpu_m, run.memory_bytes, run.extended
    alike = chains[key]
    if run.began_at < run.came_at and alike:
        min(alike, key=lambda chain: chain[-1].ended_at).append(run)
    else:
        alike.append([run])


def _work(chain: Sequence[Run], group: str, since: float, until: float) -> Work:
    first, last = chain[0], chain[-1]
    was_running = first.came_at <= since or first.began_at < since
    moved_in = first.began_at < first.came_at  # from a machine that is not ours
    is_known = bool(first.created_at) and not was_running and not moved_in
    still_runs = last.ended_at >= until
    is_batch = first.kind is WorkKind.BATCH
    return Work(
        name=f"{first.namespace}/{first.pod}",
        group=group,
        kind=first.kind,
        requests=requests_of(first),
        arrives_at=max(since, min(first.created_at, first.came_at)) if is_known else first.came_at,
        length_s=math.inf if still_runs or not is_batch else last.ended_at - first.came_at,
        ends_at=math.inf if still_runs or is_batch else last.ended_at,
        was_running=was_running,
        waited_s=first.came_at - max(since, min(first.created_at, first.came_at)) if is_known else None,
    )


def requests_of(run: Run) -> Resources:
    """What a pod asked for during a stay."""
    return Resources(run.cpu_m, run.memory_bytes, pods=1, extended=run.extended)


def _each_asks(runs: Iterable[Run], machines: int) -> Resources:
    """What the DaemonSets that are on most machines ask for together."""
    of_owner: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        of_owner[run.namespace, run.owner].append(run)
    asked = NOTHING
    for found in of_owner.values():
        if len({run.claim for run in found}) >= ON_MOST * machines:
            most = NOTHING
            for run in found:
                most = most.at_least(requests_of(run))
            asked += most
    return asked
