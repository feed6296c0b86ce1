"""What the same work would have cost otherwise (HTAS paper, section 6.2): on machines of one flavour that come and go
with it, and on as many of them as its peak needs, rented all the time.

`single_flavour` is the one definition of the comparison: the demo, `htas cost --against`, the Money page and the API
print its figure. It plays the recorded work in its node groups, with the planner's own order of placement, a start
delay, and the groups' rules for empty machines. Nothing is moved.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import count

import msgspec
import numpy as np

from htas.model.billing import Price
from htas.model.flavours import Flavour
from htas.model.nodes import Node
from htas.model.pods import Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import EmptyRelease, NodeGroup, Policy
from htas.model.record import Bill
from htas.model.resources import NOTHING, Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.simulated import open_simulation
from htas.planning.place.placing import best_row, order_of
from htas.profiler.recorded_work import RecordedWork, Work

ALTERNATIVE = "alternative"


class Terms(msgspec.Struct, frozen=True):
    """What a play goes by beside the work: the rules of the groups, and what machines of this cloud take and offer.

    `offered`: by flavour what its nodes were seen to offer; of the others the price file says it.
    """

    policy: Policy
    since: float
    until: float
    start_s: float
    release_s: float
    offered: Mapping[str, Resources] = {}


class Played(msgspec.Struct, frozen=True):
    """The bills of the play, and how long its pods waited for their first start; None: nothing arrived."""

    bills: Sequence[Bill]
    mean_wait_s: float | None

    @property
    def most_at_once(self) -> int:
        """How many machines ran at one time at most."""
        steps = [(bill.started_at, 1) for bill in self.bills]
        steps += [(bill.ended_at, -1) for bill in self.bills if bill.ended_at is not None]
        most = running = 0
        for _, step in sorted(steps):
            running += step
            most = max(most, running)
        return most


def too_large_for(recorded: RecordedWork, flavour: Flavour, terms: Terms) -> list[Work]:
    """The work that no machine of a flavour holds beside its DaemonSets."""
    rooms = {group: _room(recorded, flavour, terms, group) for group in {work.group for work in recorded.work}}
    return [work for work in recorded.work if not work.requests.fits_in(rooms[work.group])]


def at_least(recorded: RecordedWork, flavour: Flavour, terms: Terms) -> float:
    """What the same work costs on machines of one flavour at least, were it fluid: price × seconds.

    0 where a month's cap may make it cheaper.
    """
    if flavour.cap is not None:
        return 0.0
    asked: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for work in recorded.work:
        began = work.arrives_at + (0.0 if work.was_running else terms.start_s)
        held_s = max(0.0, min(work.length_s, min(work.ends_at, terms.until) - began))
        for name, amount in work.requests.amounts().items():
            asked[work.group][name] += amount * held_s
    return flavour.nanos_per_hour * sum(
        max(amount / room[name] for name, amount in sums.items() if amount)
        for group, sums in asked.items()
        for room in (_room(recorded, flavour, terms, group).amounts(),)
        if any(sums.values())
    )


def single_flavour(recorded: RecordedWork, flavour: Flavour, terms: Terms) -> Played:
    """The same work on machines of one flavour, which has to hold every pod (`too_large_for`)."""
    by_group: dict[str, list[Work]] = defaultdict(list)
    for work in recorded.work:
        by_group[work.group].append(work)
    minimal = [group.name for group in terms.policy.groups if group.min_nodes]
    bills: list[Bill] = []
    waits: list[float] = []
    for name in sorted({*by_group, *minimal}):
        group = terms.policy.group(name) or NodeGroup(name)
        play = _Play(group, flavour, _room(recorded, flavour, terms, name), terms)
        bills += play.run(by_group[name])
        waits += play.waits
    return Played(bills, sum(waits) / len(waits) if waits else None)


def fixed_peak(played: Played, flavour: Flavour, terms: Terms) -> list[Bill]:
    """As many machines of one flavour as a play needs at one time, rented from its beginning to its end."""
    if not played.bills:
        return []
    start = min(bill.started_at for bill in played.bills)
    ends = [bill.ended_at for bill in played.bills]
    end = None if None in ends else max(at for at in ends if at is not None)
    return [_bill(i, ALTERNATIVE, flavour, start, end) for i in range(played.most_at_once)]


def _room(recorded: RecordedWork, flavour: Flavour, terms: Terms, group: str) -> Resources:
    """What a machine offers to work."""
    return terms.offered.get(flavour.name, flavour.allocatable) - recorded.daemons.get(group, NOTHING)


def _bill(number: int, group: str, flavour: Flavour, start: float, end: float | None) -> Bill:
    price, name = flavour.nanos_per_hour, flavour.name
    return Bill(f"{group}-{name}-{number}", group, name, price, start, end, cap=flavour.cap)


class _Event(IntEnum):
    """What happens at one instant happens in this order: room is freed before it is asked for."""

    END = 0
    READY = 1
    ARRIVAL = 2
    DELETE = 3


@dataclass(slots=True)
class _Machine:
    """A row of the play while a machine stands behind it. `emptied` counts how often it became empty or filled."""

    number: int
    launched_at: float
    ready_at: float
    pods: int = 0
    emptied: int = 0
    is_ready: bool = False


class _Play:
    """One group's work on machines of one flavour. `waits`: how long each pod that arrived waited for its start."""

    def __init__(self, group: NodeGroup, flavour: Flavour, room: Resources, terms: Terms) -> None:
        self.waits: list[float] = []
        self._group, self._flavour, self._room, self._terms = group, flavour, room, terms
        self._policy = terms.policy
        empty = ClusterSnapshot(0.0, ClusterView(), expects_more=False)
        opened = open_simulation(empty, msgspec.structs.replace(terms.policy, groups=(group,)), 0.0)
        self._sim, self._book, self._order = opened.sim, opened.book, order_of(group.packing)
        self._machines: dict[int, _Machine] = {}
        self._spare: list[int] = []
        self._bills: list[Bill] = []
        self._numbers = count()
        self._events: list[tuple[float, _Event, int, int, int]] = []
        self._sequence = count()
        self._row_of: dict[int, int] = {}
        self._waiting: dict[int, int] = {}
        """The row of work that starts once its machine is ready, in the order it arrived."""
        self._classes: list[PodClass] = []
        self._ready = np.zeros(0, dtype=np.bool_)

    def run(self, work: Sequence[Work]) -> list[Bill]:
        """The bills; those of machines that still run at the end of the record are open."""
        self._classes = [self._book.class_of(_pod(each, self._policy)) for each in work]
        since, until = self._terms.since, self._terms.until
        for _ in range(self._group.min_nodes):
            self._launch(max(since, min((each.arrives_at for each in work), default=since)), ready_in=0.0)
        for i, each in enumerate(work):
            self._push(each.arrives_at, _Event.ARRIVAL, i)
        while self._events and self._events[0][0] < until:
            at = self._events[0][0]
            self._sim.now = at
            arrived: list[int] = []
            while self._events and self._events[0][0] == at:
                _, event, _, which, token = heapq.heappop(self._events)
                match event:
                    case _Event.END:
                        self._end(which, at, work)
                    case _Event.READY:
                        self._become_ready(which, at, work)
                    case _Event.ARRIVAL:
                        arrived.append(which)
                    case _Event.DELETE:
                        if arrived:  # it may be filled yet: looked at once more, after them
                            self._push(at, _Event.DELETE, which, token)
                            break
                        self._delete(which, at, token)
            self._place(sorted(arrived, key=self._largest_first), at, work)
            self._sim.log.clear()
        self._bills += [self._billed(machine, None) for machine in self._machines.values()]
        return self._bills

    def _push(self, at: float, event: _Event, which: int, token: int = 0) -> None:
        heapq.heappush(self._events, (at, event, next(self._sequence), which, token))

    # Work.

    def _largest_first(self, i: int) -> tuple[int, int, int]:
        memory, cpu = self._classes[i].size
        return -memory, -cpu, i

    def _place(self, arrived: Iterable[int], at: float, work: Sequence[Work]) -> None:
        for i in arrived:
            each = work[i]
            if each.ends_at <= at:
                continue
            row = self._best(i, self._ready)
            if row is not None:
                self._put(i, row)
                self._start(i, at, work)
                continue
            row = self._best(i, ~self._ready)
            if row is None:
                row = self._launch(at, ready_in=0.0 if each.was_running else self._terms.start_s)
            self._put(i, row)
            if self._machines[row].is_ready:
                self._start(i, at, work)
                continue
            self._waiting[i] = row
            if math.isfinite(each.ends_at):
                self._push(each.ends_at, _Event.END, i)

    def _best(self, i: int, among: Bools) -> int | None:
        """The row that the group's order prefers, of those that hold one more pod."""
        rows = (self._sim.feasible(self._classes[i]) & among).nonzero()[0]
        if not len(rows):
            return None
        return best_row(rows, self._order.keys(self._sim, self._classes[i], rows)) if len(rows) > 1 else int(rows[0])

    def _put(self, i: int, row: int) -> None:
        self._sim.place(self._classes[i], row)
        self._row_of[i] = row
        self._machines[row].pods += 1
        self._machines[row].emptied += 1

    def _start(self, i: int, at: float, work: Sequence[Work]) -> None:
        each = work[i]
        if not each.was_running:
            self.waits.append(at - each.arrives_at)
        end = min(at + each.length_s, each.ends_at)
        if math.isfinite(end):
            self._push(end, _Event.END, i)

    def _end(self, i: int, at: float, work: Sequence[Work]) -> None:
        row = self._row_of.pop(i, None)
        if row is None:
            return
        self._waiting.pop(i, None)
        self._take_off(i, row, at)
        self._bring_forward(row, at, work)

    def _take_off(self, i: int, row: int, at: float) -> None:
        machine = self._machines[row]
        self._sim.unplace(self._classes[i], row)
        machine.pods -= 1
        if not machine.pods and machine.is_ready:
            self._became_empty(row, at)

    def _bring_forward(self, freed: int, at: float, work: Sequence[Work]) -> None:
        """Room was freed on a machine that is ready: work that waits for one to start gets it, the oldest first."""
        if not self._waiting or not self._machines[freed].is_ready:
            return
        only = np.zeros(len(self._ready), dtype=np.bool_)
        only[freed] = True
        for i, row in list(self._waiting.items()):
            if self._best(i, only) is not None:
                del self._waiting[i]
                self._take_off(i, row, at)
                self._put(i, freed)
                self._start(i, at, work)

    # Machines.

    def _launch(self, at: float, ready_in: float) -> int:
        if self._spare:
            row = self._spare.pop()
            self._sim.table.is_open[row] = True
            self._sim.table.run_until[row] = 0.0
        else:
            row = len(self._sim.table)
            self._sim.add_nodes([Node(str(row), self._room)])
            self._ready = np.append(self._ready, np.False_)
        self._machines[row] = _Machine(next(self._numbers), at, at + ready_in)
        if ready_in:
            self._push(at + ready_in, _Event.READY, row)
        else:
            self._machines[row].is_ready = self._ready[row] = True
        return row

    def _become_ready(self, row: int, at: float, work: Sequence[Work]) -> None:
        machine = self._machines[row]
        machine.is_ready = self._ready[row] = True
        for i in [i for i, its in self._waiting.items() if its == row]:
            del self._waiting[i]
            self._start(i, at, work)
        if not machine.pods:
            self._became_empty(row, at)

    def _became_empty(self, row: int, at: float) -> None:
        """Note when the group's rules delete the machine, unless it is used again before."""
        machine, rules = self._machines[row], self._group.cleaning
        machine.emptied += 1
        if not (rules.enabled and self._group.is_elastic):
            return
        goes = max(at + rules.empty_for_s, machine.ready_at + rules.delay_after_launch_s)
        if rules.empty_release is EmptyRelease.BEFORE_BILLING:
            price = Price(self._flavour.nanos_per_hour, self._flavour.cap)
            paid_until = goes + self._policy.catalogue.billing.paid_s(price, machine.launched_at, goes)
            ahead_s = rules.ahead_s(self._policy.cycles, self._terms.release_s) + self._policy.cycles.cleaning_s
            goes = max(goes, paid_until - ahead_s)
        self._push(goes, _Event.DELETE, row, machine.emptied)

    def _delete(self, row: int, at: float, token: int) -> None:
        machine = self._machines.get(row)
        if machine is None or machine.emptied != token or len(self._machines) <= self._group.min_nodes:
            return
        self._bills.append(self._billed(machine, at))
        del self._machines[row]
        self._ready[row] = self._sim.table.is_open[row] = False
        self._spare.append(row)

    def _billed(self, machine: _Machine, end: float | None) -> Bill:
        return _bill(machine.number, self._group.name, self._flavour, machine.launched_at, end)


def _pod(work: Work, policy: Policy) -> Pod:
    """A pod that the planner's order can judge. How long it runs is known, since it has run."""
    length = None
    if work.kind is WorkKind.BATCH and math.isfinite(work.length_s):
        length = RunLength(work.length_s, RunLengthSource.ANNOTATION)
    requests = work.requests
    return Pod("", work.name, requests, kind=work.kind, scheduler=policy.scheduler_name, run_length=length)
