"""Placing: the pods of a class onto the best rows, pool by pool.

A pool is a run of rows with one order of preference: first the fixed capacity that is paid for anyway, then each node
group in the configuration's order.

An order gives keys for rows, compared from the first key to the last, smallest first. It is *stable* when placing a
pod on the best row never makes another row better for the next identical pod; then pods of a class are placed in
counts. The orders are those of the HTAS paper (Algorithms 1 and 2) and kube-scheduler's scoring strategies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from htas.model.packing import Packing, PackingAlgorithm, Scoring
from htas.model.pods import WorkKind
from htas.model.policy import Policy
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Bools, Ints, PodClass
from htas.planning.cluster.feasibility.resources import how_many
from htas.planning.cluster.pools import Pool
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.scoring import node_scores


class Order(Protocol):
    @property
    def is_stable(self) -> bool: ...

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        """Keys of the given rows, most significant first."""
        ...


@dataclass(frozen=True, slots=True)
class BestFit:
    """Algorithm 1: the fullest node that fits, memory before CPU since CPU can be compressed."""

    is_stable: bool = True

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        free = sim.table.free
        return free[MEMORY_ROW, rows], free[CPU_ROW, rows]


_BEYOND = np.int64(1) << 40
"""Puts lesser bins after every greater one: no cluster has a bin of 2^40 autoscaling cycles (700,000 years at 20 s)."""


@dataclass(frozen=True, slots=True)
class TimeBinBestFit:
    """Algorithm 2: nodes of the job's own time bin, then of greater bins upwards, then of lesser bins downwards.

    Stable: a pod put on a row of a lesser bin lifts that row into the job's own bin, where it is the best row.
    """

    is_stable: bool = True

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        if cls.kind is WorkKind.SERVICE:  # it has no end, and so no bin: in a group for all work it goes where it fits
            return BestFit().keys(sim, cls, rows)
        own = sim.bin_of(cls.run_length_s)
        bins = sim.bins(rows)
        rank = np.where(bins >= own, bins - own, _BEYOND + own - bins)
        free = sim.table.free
        return rank, free[MEMORY_ROW, rows], free[CPU_ROW, rows]


@dataclass(frozen=True, slots=True)
class Scored:
    """The highest score of a kube-scheduler strategy; equal scores go to the first row (kube-scheduler draws lots)."""

    scoring: Scoring
    is_stable: bool = False

    def keys(self, sim: Simulation, cls: PodClass, rows: Ints) -> tuple[Ints, ...]:
        return (-node_scores(sim, cls, rows, self.scoring),)


def order_of(packing: Packing) -> Order:
    match packing.algorithm:
        case PackingAlgorithm.TIME_BIN_BFD:
            return TimeBinBestFit()
        case PackingAlgorithm.SCORED:
            return Scored(packing.scoring)
        case PackingAlgorithm.BFD:
            return BestFit()


class Judge(Protocol):
    """What may refuse rows that have room (`Lengthening`)."""

    def worth(self, cls: PodClass, rows: Ints, count: int) -> Bools: ...

    def has_turned_away(self, cls: PodClass) -> bool: ...


class Placer:
    """Places classes over the pools it was given, on rows that its judge allows; without one wherever there is room.

    Where it `borrows`, batch work may go to what services' nodes have over.
    """

    def __init__(
        self, policy: Policy, pools: Sequence[Pool], judge: Judge | None = None, *, borrows: bool = True
    ) -> None:
        self.pools = tuple(pools)
        self.borrows = borrows
        self._policy = policy
        self._judge = judge
        self._orders: dict[str | None, Order] = {group.name: order_of(group.packing) for group in policy.groups}
        if policy.packing is not None:  # of nodes of no group
            self._orders[None] = order_of(policy.packing)
        self._taken = {
            kind: tuple(pool for pool in _in_turn(self.pools, kind) if pool.group not in closed)
            for kind in WorkKind
            for closed in ({group.name for group in policy.groups if not group.workload.takes(kind)},)
        }
        lend = {group.name for group in policy.groups if group.lends_room}
        self._lending = tuple(pool for pool in self.pools if pool.group in lend and not pool.is_coming)

    def place(self, sim: Simulation, cls: PodClass, count: int) -> int:
        """Place up to `count` pods of a class; returns how many found room.

        Where pods lack requests: with their default requests as far as that goes, else by what they state alone, as
        kube-scheduler does. No pod waits for a machine on its way while a node of the same pool would take it.
        """
        if not sim.defaults.matter or sim.defaults.are_counted:
            return self._place(sim, cls, count, self.pools)
        placed, passed = 0, list[Pool]()
        for is_coming, pools in groupby(self.pools, key=lambda pool: pool.is_coming):
            placed += self._place(sim, cls, count - placed, passed) if is_coming and placed < count else 0
            passed += pools
            with sim.defaults.counted(sim.table, cls):
                placed += self._place(sim, cls, count - placed, passed) if placed < count else 0
        return placed + (self._place(sim, cls, count - placed, passed) if placed < count else 0)

    def _place(self, sim: Simulation, cls: PodClass, count: int, among: Sequence[Pool]) -> int:
        placed, before = 0, -1
        # Spread and affinity may open a pool again once a later one has taken a pod: then once more around.
        while before < placed < count and (before < 0 or cls.is_dynamic):
            before = placed
            for pool in self._taken[cls.kind] if cls.is_ours else self.pools:
                if pool not in among:
                    continue
                if placed == count:
                    break
                placed += fill(sim, cls, count - placed, pool.rows, self._order(pool, cls), self._judge)
            borrows = self.borrows and len(among) == len(self.pools) and sim.filter_context.lent and cls.borrows_up_to
            for pool in self._lending if borrows else ():
                if placed == count:
                    break
                placed += fill(sim, cls, count - placed, pool.rows, self._order(pool, cls), self._judge, is_lent=True)
        return placed

    def has_turned_away(self, cls: PodClass) -> bool:
        """Whether a class was refused a node that has room, so far."""
        return self._judge is not None and self._judge.has_turned_away(cls)

    def on(self, pools: Sequence[Pool]) -> Placer:
        """One that places on these pools alone, by the same judge."""
        return Placer(self._policy, pools, self._judge, borrows=self.borrows)

    def anywhere(self) -> Placer:
        """One that places wherever there is room."""
        return self if self._judge is None else Placer(self._policy, self.pools, borrows=self.borrows)

    def _order(self, pool: Pool, cls: PodClass) -> Order:
        order = self._orders.get(pool.group)
        if order is None:
            return TimeBinBestFit() if cls.kind is WorkKind.BATCH else BestFit()
        return BestFit() if isinstance(order, TimeBinBestFit) and cls.kind is WorkKind.SERVICE else order


def _in_turn(pools: Sequence[Pool], kind: WorkKind) -> list[Pool]:
    """The edge comes first for services and last for batch work, which has no users to be near to.

    Where there is an edge, all that is there comes before all that is on its way: no service waits for an edge machine
    while a cloud node has room, no job for a machine of the cloud while an edge node has.
    """
    if not any(pool.is_edge for pool in pools):
        return list(pools)
    return sorted(pools, key=lambda pool: (pool.is_coming, pool.is_edge == (kind is WorkKind.BATCH)))


def fill(
    sim: Simulation,
    cls: PodClass,
    count: int,
    rows: slice,
    order: Order,
    judge: Judge | None = None,
    *,
    is_lent: bool = False,
) -> int:
    """Place up to `count` pods on rows of a slice in an order's preference; returns how many found room.

    The judge is asked for one pod at a time where the next may have to go elsewhere (spread, affinity, scores that
    change). Asked for all together, 20 jobs of ten hours that spread over nodes had two machines of 0.5479 an hour held
    ten hours longer for one job each; a machine of its own costs 0.0198.
    """
    if count > 1 and order.is_stable and not cls.is_dynamic:
        return _fill_in_counts(sim, cls, count, _rows_for(sim, cls, rows, count, judge, is_lent=is_lent), order)
    for placed in range(count):
        here = _rows_for(sim, cls, rows, 1, judge, is_lent=is_lent)
        if not len(here):
            return placed
        sim.place(cls, int(here[0]) if len(here) == 1 else best_row(here, order.keys(sim, cls, here)))
    return count


def _rows_for(
    sim: Simulation, cls: PodClass, rows: slice, count: int, judge: Judge | None, *, is_lent: bool = False
) -> Ints:
    """The rows of a slice on which one more pod of a class fits, of `count` that are to be placed."""
    here: Ints = sim.feasible(cls, rows, is_lent=is_lent).nonzero()[0]
    here += rows.start
    return here if judge is None or not len(here) else here[judge.worth(cls, here, count)]


def best_row(rows: Ints, keys: tuple[Ints, ...]) -> int:
    """The row with the smallest keys; the first of equals."""
    left = np.arange(len(rows))
    for key in keys:
        values = key[left]
        left = left[values == values.min()]
        if len(left) == 1:
            break
    return int(rows[left[0]])


def _fill_in_counts(sim: Simulation, cls: PodClass, count: int, here: Ints, order: Order) -> int:
    if not len(here):
        return 0
    if len(here) == 1:  # as on each machine bought: nothing to order, and one number to count
        row = int(here[0])
        count = min(count, int(how_many(sim.table.free[:, row : row + 1], cls)[0]))
        sim.place(cls, row, count)
        return count
    here = here[np.lexsort(order.keys(sim, cls, here)[::-1])]
    capacity = how_many(sim.table.free[:, here], cls)
    if capacity[0] >= count:  # as mostly, where few wait: the best row takes them all
        sim.place(cls, int(here[0]), count)
        return count
    before = np.cumsum(capacity) - capacity
    counts = np.minimum(np.maximum(count - before, 0), capacity)
    used = counts > 0
    sim.place_many(cls, here[used], counts[used])
    return int(counts.sum())
