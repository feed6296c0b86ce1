"""Orders of preference among the nodes that fit.

An order gives keys for rows, compared from the first key to the last, smallest first. It is *stable* when placing a
pod on the best row never makes another row better for the next identical pod; then pods of a class are placed in
counts. The orders are those of the HTAS paper (Algorithms 1 and 2) and kube-scheduler's scoring strategies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from htas.model.packing import Packing, PackingAlgorithm, Scoring
from htas.model.pods import WorkKind
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Ints, PodClass
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
