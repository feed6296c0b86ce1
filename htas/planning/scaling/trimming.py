"""Trimming a purchase: nothing superfluous, nothing larger than it need be.

A machine is superfluous when what it would hold finds room on the others bought. A machine is too large when a cheaper
flavour of the same group and zone would hold just what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from htas.planning.classes import Ints, PodClass
from htas.planning.feasibility.resources import how_many
from htas.planning.packing.orders import BestFit
from htas.planning.packing.placing import fill
from htas.planning.scaling.limits import Allowance
from htas.planning.scaling.offers import Offer
from htas.planning.scaling.steady import NEARLY_AS_GOOD
from htas.planning.simulation import Simulation

Contents = list[tuple[PodClass, int]]


@dataclass(slots=True)
class Machine:
    """One machine of a purchase, with what it would hold."""

    offer: Offer
    row: int
    contents: Contents

    def used(self) -> Ints:
        total: Ints = np.zeros(len(self.offer.free), dtype=np.int64)
        for cls, count in self.contents:
            total += cls.requests * count
        return total


def drop_superfluous(sim: Simulation, machines: Sequence[Machine], allowance: Allowance) -> None:
    """Empty the machines whose contents find room on the others, emptiest and dearest first; changes `machines`."""
    by_row = {machine.row: machine for machine in machines}
    rows = np.array(sorted(by_row), dtype=np.int64)
    if not len(rows):
        return
    spare = sim.table.free[:, rows].sum(axis=1)
    hopeless: set[tuple[tuple[int, int], ...]] = set()
    for machine in sorted(machines, key=_least_worth):
        used, own = machine.used(), sim.table.free[:, machine.row]
        shape = tuple(sorted((id(cls), count) for cls, count in machine.contents))
        if shape in hopeless or (used > spare - own).any():
            continue
        if _rehouse(sim, machine, by_row):
            spare = spare - own - used
            allowance.take(machine.offer, -1)
            hopeless.clear()
        else:
            hopeless.add(shape)


def _least_worth(machine: Machine) -> tuple[float, int, int]:
    capacity = np.maximum(machine.offer.free[:2], 1)
    filled = float((machine.used()[:2] / capacity).max())
    return filled, -machine.offer.price, machine.row


def _rehouse(sim: Simulation, machine: Machine, by_row: dict[int, Machine]) -> bool:
    """Move a machine's contents onto the other machines of the purchase: all of it or nothing."""
    rows = slice(min(by_row), max(by_row) + 1)
    mark = len(sim.log)
    with sim.fork() as branch:
        sim.close(machine.row)
        for cls, count in machine.contents:
            sim.unplace(cls, machine.row, count)
        moved = all(fill(sim, cls, count, rows, BestFit()) == count for cls, count in machine.contents)
        if moved:
            branch.commit()
        else:
            sim.open(machine.row)
    if moved:
        machine.contents = []
        for cls, row, count in sim.assignments(mark):
            _add(by_row[row].contents, cls, count)
    return moved


def _add(contents: Contents, cls: PodClass, count: int) -> None:
    for i, (other, n) in enumerate(contents):
        if other is cls:
            contents[i] = cls, n + count
            return
    contents.append((cls, count))


def right_size(
    sim: Simulation,
    machines: Sequence[Machine],
    offers: Sequence[Offer],
    allowance: Allowance,
    worth: Callable[[Offer], float],
) -> None:
    """Give each machine the cheapest flavour that holds what it holds. `offers` are cheapest first.

    `worth` is an offer's score once more work has filled it: none much worse is taken, for what it saves now is lost
    with the next pods.
    """
    for machine in machines:
        if not machine.contents or any(_minds_flavour(sim, cls) for cls, _ in machine.contents):
            continue
        used, least = machine.used(), NEARLY_AS_GOOD * worth(machine.offer)
        allowance.take(machine.offer, -1)
        for offer in offers:
            if offer.price >= machine.offer.price:
                break
            if worth(offer) >= least and _could_replace(offer, machine, used) and allowance.bound(offer).count > 0:
                machine.offer = offer
                break
        allowance.take(machine.offer, 1)


def _minds_flavour(sim: Simulation, cls: PodClass) -> bool:
    """Whether a class spreads or is kept apart by a label that another flavour could change."""
    constraints = cls.constraints
    keys = {term.topology_key for term in (*constraints.affinity, *constraints.anti_affinity)}
    keys |= {spread.topology_key for spread in constraints.spread}
    keys |= {sim.world.tallies.topology_key(number) for number in cls.repelled_by}
    return not keys <= {HOSTNAME_LABEL, ZONE_LABEL}


def _could_replace(offer: Offer, machine: Machine, used: Ints) -> bool:
    if offer.group is not machine.offer.group or offer.zone != machine.offer.zone or (used > offer.free).any():
        return False
    return all(
        offer.could_hold(cls) and int(how_many(offer.free[:, None], cls)[0]) >= count for cls, count in machine.contents
    )
