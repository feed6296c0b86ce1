"""Levelling: pods that spread are where kube-scheduler would let them be once all machines bought are there.

Machines are added one after another: the first one of 20 places takes 20 pods, as the only domain there is. Beside a
second one that takes the last five it may keep six (maxSkew 1). So those who counted on fewer domains, or on pods that
have left, are taken off and placed anew.
"""

from __future__ import annotations

from collections.abc import Iterable

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import Simulation

Placed = dict[tuple[int, int], tuple[PodClass, int, int]]
"""(class, row, count) by the class's identity and the row."""


def placed_since(sim: Simulation, mark: int) -> Placed:
    """Who has been placed since a mark in the log and is still there."""
    found: Placed = {}
    for cls, row, count in sim.assignments(mark):
        key = id(cls), row
        found[key] = cls, row, found.get(key, (cls, row, 0))[2] + count
    return {key: each for key, each in found.items() if each[2]}


def may_stay(sim: Simulation, cls: PodClass, row: int) -> bool:
    """Whether a pod of a class that is on a row would be let onto it now."""
    with sim.fork():
        sim.unplace(cls, row)
        return sim.fits(cls, row)


def take_off(sim: Simulation, placed: Iterable[tuple[PodClass, int, int]]) -> list[tuple[PodClass, int]]:
    """Take off their rows those who may not stay; returns how many of each class."""
    off = []
    for cls, row, count in placed:
        gone = 0
        while cls.constraints.spread and gone < count and not may_stay(sim, cls, row):
            sim.place(cls, row, -1)  # work placed and taken back: what is placed stays what the log adds up to
            gone += 1
        if gone:
            off.append((cls, gone))
    return off
