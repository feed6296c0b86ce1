"""The what-if: place and unplace pods, add machines, and take it all back.

One mutable overlay over the frozen snapshot. Every change goes through a log, so that `with sim.fork() as branch:`
restores all of it unless `branch.commit()` was called: pods and run lengths, machines added, rows closed or given up,
room kept for nominated pods, members of classes, and what `also_undo` was told. Cost: fork and commit O(1), drop
O(changes made in it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from htas.model.holds import HoldReason
from htas.model.nodes import Node
from htas.model.pods import Pod, WorkKind
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.default_requests import DefaultRequestsSwitch
from htas.planning.cluster.feasibility import FILTERS, LENT_FILTERS, PLACEMENT_FILTERS, STATIC_FILTERS
from htas.planning.cluster.feasibility.filter_context import FilterContext, accepted
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.feasibility.volumes import attachable


class PlacedOnRow(msgspec.Struct, frozen=True, eq=False):
    """Pods of a class put on a row (a negative count: taken away). `run_until` is what the row had before.

    By far the most frequent change where pods are unique: as arrays of one row each of 200,000 took 5 µs more to make
    and to take back. A Struct, since a frozen dataclass takes 2 µs to make, this 0.1.
    """

    cls: PodClass
    row: int
    count: int
    run_until: float
    is_placement: bool
    """False for what comes with a node (its DaemonSet pods): it is no placement of waiting work."""


class PlacedOnRows(msgspec.Struct, frozen=True, eq=False):
    """The same on many rows at once."""

    cls: PodClass
    rows: Ints
    counts: Ints
    run_until: NDArray[np.float64]
    is_placement: bool


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """A hold as the simulation counts it: a pod that is not there is present on a row, though it may never come."""

    pod: Pod
    cls: PodClass
    row: int
    reason: HoldReason


@dataclass(frozen=True, slots=True)
class Growth:
    """Rows added from `start` on."""

    start: int


@dataclass(frozen=True, slots=True, eq=False)
class RowsBefore:
    """What rows were before they were closed, vacated, given up or opened."""

    rows: Ints
    is_open: Bools
    is_leaving: Bools
    is_domain: Bools


Undo = Callable[[], None]
"""Takes back what is no column of the table."""


class Branch:
    """A fork under way."""

    __slots__ = ("is_committed",)

    def __init__(self) -> None:
        self.is_committed = False

    def commit(self) -> None:
        """Keep what was done since the fork."""
        self.is_committed = True


_NOT_LENT = 2**63 - 1
"""Dearer than anything may borrow."""


class Simulation:
    """Nodes with pods on them, changeable and restorable. `now` dates every run length."""

    def __init__(
        self,
        filter_context: FilterContext,
        now: float,
        daemons: Sequence[PodClass] = (),
        defaults: DefaultRequestsSwitch | None = None,
    ) -> None:
        self.filter_context = filter_context
        self.defaults = defaults or DefaultRequestsSwitch()
        self.table = filter_context.table
        self.now = now
        self.daemons = tuple(daemons)
        self.nominees: tuple[KeptRoom, ...] = ()
        """Room of pods that name their node, in the order in which it was kept."""
        self._bin_s = filter_context.policy.cycles.autoscaling_s
        self.log: list[PlacedOnRow | PlacedOnRows | Growth | RowsBefore | Undo] = []

    # Asking.

    def allowed(self, cls: PodClass) -> Bools:
        """Rows whose nodes would take the class whatever else runs on them."""
        return self.filter_context.column(
            cls.static_key, lambda rows: accepted(self.filter_context, STATIC_FILTERS, cls, rows)
        )

    def allowed_where_lent(self, cls: PodClass) -> Bools:
        """Rows that are lent and would take batch work of a class, at what it may borrow up to (`lending.py`)."""
        context = self.filter_context

        def allowed(rows: slice) -> Bools:
            prices = (context.lent.get(node.name, _NOT_LENT) for node in self.table.nodes[rows])
            lent = np.array([price <= cls.borrows_up_to for price in prices], dtype=np.bool_)
            return lent & accepted(context, LENT_FILTERS, cls, rows)

        return context.column(("lent", cls.static_key, cls.borrows_up_to), allowed)

    def feasible(self, cls: PodClass, rows: slice | None = None, *, is_lent: bool = False) -> Bools:
        """Where one more pod of a class fits now (relative to `rows`, by default all); `is_lent`: of what is lent."""
        rows = rows if rows is not None else self.all_rows
        ok = fits(self.table.free[:, rows], cls)
        ok &= (self.allowed_where_lent(cls) if is_lent else self.allowed(cls))[rows]
        ok &= self.table.is_open[rows]
        if cls.is_dynamic and ok.any():
            ok &= self.accepted_by_pods(cls, rows)
        return ok

    def accepted_by_pods(self, cls: PodClass, rows: slice) -> Bools:
        """Where the pods that are placed accept one more of a class: its ports, volumes, spread and affinity."""
        ok = accepted(self.filter_context, PLACEMENT_FILTERS, cls, rows)
        if self.nominees and (cls.constraints.affinity or cls.constraints.spread):
            ok &= self._accepted_without_nominees(cls, rows)
        return ok

    def fits(self, cls: PodClass, row: int | None) -> bool:
        """Whether one more pod of a class fits on one node now, by every rule of feasibility; None: there is none."""
        return row is not None and bool(self.feasible(cls, slice(row, row + 1))[0])

    def could_hold(self, cls: PodClass) -> Bools:
        """Open rows whose nodes would take a pod of a class if they were empty."""
        rows = self.all_rows
        return self.would_take(cls) & self.table.is_open[rows] & fits(self.table.allocatable[:, rows], cls)

    def would_take(self, cls: PodClass) -> Bools:
        """Rows whose nodes would take a pod of a class if they were empty, room aside."""
        allowed = self.allowed(cls)
        return allowed & attachable(self.filter_context, cls, self.all_rows) if cls.constraints.claims else allowed

    def _accepted_without_nominees(self, cls: PodClass, rows: slice) -> Bools:
        """kube-scheduler's second pass: what is near a pod that is to come must hold without it as well."""
        with self.fork():
            for nominee in self.nominees:
                self.unplace(nominee.cls, nominee.row)
            return accepted(self.filter_context, PLACEMENT_FILTERS, cls, rows)

    def keep_room(self, *rooms: KeptRoom) -> None:
        """Count pods as present on rows, whether or not they fit there yet: what is in the way may have to leave first,
        so that a row may have less than nothing left."""
        for room in rooms:
            self._put(room.cls, room.row, 1, is_placement=False)
        if nominees := tuple(room for room in rooms if room.reason is HoldReason.NOMINATED):
            self._set_nominees((*self.nominees, *nominees))

    def drop_room(self, *rooms: KeptRoom) -> None:
        """Keep room no more for some of those it is kept for."""
        for room in rooms:
            self.unplace(room.cls, room.row)
        if any(room.reason is HoldReason.NOMINATED for room in rooms):
            self._set_nominees(tuple(each for each in self.nominees if each not in rooms))

    def _set_nominees(self, nominees: tuple[KeptRoom, ...]) -> None:
        before, self.nominees = self.nominees, nominees

        def restore() -> None:
            self.nominees = before

        self.also_undo(restore)

    def diagnose(self, cls: PodClass, rows: slice | None = None) -> dict[str, int]:
        """Why each open node refuses a class, counted as kube-scheduler counts: by the first filter that refuses."""
        rows = rows or self.all_rows
        left = self.table.is_open[rows].copy()
        counts: dict[str, int] = {}
        for refuse in FILTERS:
            accepted_rows = left
            for refusal in refuse(self.filter_context, cls, rows):
                where = refusal.where & left
                if many := int(np.count_nonzero(where)):
                    counts[refusal.reason] = counts.get(refusal.reason, 0) + many
                    accepted_rows = accepted_rows & ~where
            if accepted_rows is not left and not accepted_rows.any():
                break
            left = accepted_rows
        return counts

    def open_rows(self, rows: slice | None = None) -> int:
        """How many rows take pods: the number of nodes in kube-scheduler's "0/N nodes are available"."""
        return int(self.table.is_open[rows or self.all_rows].sum())

    @property
    def all_rows(self) -> slice:
        return slice(0, len(self.table))

    def bins(self, rows: slice | Ints) -> Ints:
        """Time bins of rows: remaining run length ÷ autoscaling cycle, rounded down (HTAS paper 5.1)."""
        left = np.maximum(self.table.run_until[rows] - self.now, 0.0)
        return np.floor_divide(left, self._bin_s).astype(np.int64)

    def bin_of(self, run_length_s: float) -> int:
        return int(run_length_s // self._bin_s)

    # Changing.

    def place(self, cls: PodClass, row: int, count: int = 1) -> None:
        """Put pods of a class on a row; the caller has asked whether they fit."""
        self._put(cls, row, count, is_placement=True)

    def place_many(self, cls: PodClass, rows: Ints, counts: Ints, *, is_placement: bool = True) -> None:
        """Put `counts[i]` pods of a class on `rows[i]` (each row once)."""
        change = PlacedOnRows(cls, rows, counts, self.table.run_until[rows], is_placement)
        self._count_on_rows(cls, rows, counts)
        if cls.kind is WorkKind.BATCH and is_placement:
            ends = np.where(counts > 0, self.now + cls.run_length_s, 0.0)
            self.table.run_until[rows] = np.maximum(change.run_until, ends)
        self.log.append(change)

    def unplace(self, cls: PodClass, row: int, count: int = 1) -> None:
        """Take pods of a class off a row."""
        self._put(cls, row, -count, is_placement=False)

    def close(self, *rows: int) -> None:
        """Let rows take no more pods."""
        self.table.is_open[self._noted(rows)] = False

    @contextmanager
    def closed(self, rows: Iterable[int]) -> Iterator[None]:
        """Rows take no pods meanwhile. What else is done stays; those that were vacated meanwhile stay closed."""
        were_open = [row for row in rows if self.table.is_open[row]]
        self.close(*were_open)
        try:
            yield
        finally:
            noted = self._noted(were_open)
            self.table.is_open[noted] = ~self.table.is_leaving[noted]

    def vacate(self, row: int) -> None:
        """Close a row as its node is when it is emptied, with the taint for that."""
        noted = self._noted((row,))
        self.table.is_open[noted] = False
        self.table.is_leaving[noted] = True

    def give_up(self, row: int) -> None:
        """Close a row as if it had never been: pods spread over it no more."""
        noted = self._noted((row,))
        self.table.is_open[noted] = False
        self.table.is_domain[noted] = False

    def _noted(self, rows: Sequence[int]) -> Ints:
        """The rows as an index, how they stand noted in the log."""
        table, index = self.table, np.array(rows, dtype=np.int64)
        self.log.append(RowsBefore(index, table.is_open[index], table.is_leaving[index], table.is_domain[index]))
        return index

    def set_members(self, cls: PodClass, pods: list[Pod]) -> None:
        """Have other pods of a class wait than those that did."""
        before, cls.pods = cls.pods, pods

        def restore() -> None:
            cls.pods = before

        self.also_undo(restore)

    def also_undo(self, undo: Undo) -> None:
        """Something beside the simulation was changed: `undo` takes it back if the fork is dropped."""
        self.log.append(undo)

    def add_nodes(self, nodes: Sequence[Node]) -> range:
        """Add machines with the DaemonSet pods that would run on them; returns their rows."""
        start = len(self.table)
        self.log.append(Growth(start))
        rows = self.table.append(nodes)
        self.filter_context.counts.grow(self.table.free.shape[1])
        if self.filter_context.cap is not None:
            self.filter_context.cap.append(rows)
        self.add_daemons(np.arange(rows.start, rows.stop))
        return rows

    def add_daemons(self, rows: Ints, daemons: Sequence[PodClass] | None = None) -> None:
        """Put on rows the DaemonSet pods that would run there (of all DaemonSets, or of those given)."""
        for daemon in self.daemons if daemons is None else daemons:
            here = rows[self.allowed(daemon)[rows]]
            here = here[fits(self.table.free[:, here], daemon)]  # one that does not fit will not run there either
            if len(here):
                self.place_many(daemon, here, np.ones(len(here), dtype=np.int64), is_placement=False)

    def _put(self, cls: PodClass, row: int, count: int, *, is_placement: bool) -> None:
        run_until = self.table.run_until
        change = PlacedOnRow(cls, row, count, run_until.item(row), is_placement)
        self._count_on_row(cls, row, count)
        if cls.kind is WorkKind.BATCH and is_placement:
            run_until[row] = max(change.run_until, self.now + cls.run_length_s if count > 0 else 0.0)
        self.log.append(change)

    def _count_on_row(self, cls: PodClass, row: int, count: int) -> None:
        self.table.free[:, row] -= cls.asked if count == 1 else cls.asked * count
        if any(cls.missing):
            self._count_missing(cls, np.array([row]), np.array([count]))
        if any(cls.assumed):
            self.table.assumed[:, row] += np.multiply(cls.assumed, count)
        if self.filter_context.cap is not None:
            self.filter_context.cap.count(cls, np.array([row]), np.array([count]))
        if cls.watches or cls.is_dynamic:
            self.filter_context.counts.add(cls, row, count)

    def _count_on_rows(self, cls: PodClass, rows: Ints, counts: Ints) -> None:
        for resource in cls.needs:
            self.table.free[resource, rows] -= cls.asked[resource] * counts
        if any(cls.missing):
            self._count_missing(cls, rows, counts)
        if any(cls.assumed):
            self.table.assumed[:, rows] += np.outer(cls.assumed, counts)
        if self.filter_context.cap is not None:
            self.filter_context.cap.count(cls, rows, counts)
        if cls.watches or cls.is_dynamic:
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
                self.filter_context.counts.add(cls, row, count)

    def _count_missing(self, cls: PodClass, rows: Ints, counts: Ints) -> None:
        missing = np.outer(cls.missing, counts)
        self.table.missing[:, rows] += missing
        if self.defaults.are_counted:
            self.table.free[:2, rows] -= missing

    # Taking back.

    @contextmanager
    def fork(self) -> Iterator[Branch]:
        """Whatever is done inside is undone at the end, unless it was committed."""
        mark = len(self.log)
        branch = Branch()
        try:
            yield branch
        finally:
            if not branch.is_committed:
                self._rewind(mark)

    def _rewind(self, mark: int) -> None:
        while len(self.log) > mark:
            entry = self.log.pop()
            if isinstance(entry, PlacedOnRow):
                self._count_on_row(entry.cls, entry.row, -entry.count)
                self.table.run_until[entry.row] = entry.run_until
            elif isinstance(entry, Growth):
                self.filter_context.truncate(entry.start)
            elif isinstance(entry, RowsBefore):
                self.table.is_open[entry.rows] = entry.is_open
                self.table.is_leaving[entry.rows] = entry.is_leaving
                self.table.is_domain[entry.rows] = entry.is_domain
            elif isinstance(entry, PlacedOnRows):
                self._count_on_rows(entry.cls, entry.rows, -entry.counts)
                self.table.run_until[entry.rows] = entry.run_until
            else:
                entry()

    # Telling.

    def assignments(self, since: int = 0) -> Iterator[tuple[PodClass, int, int]]:
        """(class, row, count) of the work placed since a mark in the log."""
        for entry in self.log[since:]:
            if isinstance(entry, PlacedOnRow):
                if entry.is_placement:
                    yield entry.cls, entry.row, entry.count
            elif isinstance(entry, PlacedOnRows) and entry.is_placement:
                for row, count in zip(entry.rows.tolist(), entry.counts.tolist(), strict=True):
                    yield entry.cls, row, count


Placements = Mapping[int, Sequence[Pod]]
"""Waiting pods by the row they were given."""


def pods_by_row(assignments: Iterable[tuple[PodClass, int, int]]) -> dict[int, list[Pod]]:
    """Which waiting pods go to which row: members of a class are handed out in order; empty rows are left out."""
    taken: dict[int, int] = {}
    result: dict[int, list[Pod]] = {}
    for cls, row, count in assignments:
        start = taken.get(id(cls), 0)
        taken[id(cls)] = start + count
        if pods := cls.pods[start : start + count]:
            result.setdefault(row, []).extend(pods)
    return result
