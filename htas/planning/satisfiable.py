"""Whether there is hope for what waits: only work that somebody may yet have room for holds back emptying."""

from __future__ import annotations

from collections.abc import Sequence

from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.feasibility import NEIGHBOUR_FILTERS
from htas.planning.cluster.feasibility.filter_context import accepted
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.provision.offers import Offer, offers_of
from htas.planning.provision.refusing import refused_by_all


def is_satisfiable(context: PlanContext, demands: Sequence[Demand]) -> bool:
    """Whether some node would take a pod of some demand if it had room, or some machine on offer would.

    A pod of 64 cores where the largest machine has 32 waits for ever, and so does one with a selector that no node and
    no flavour meets, or with a required affinity to pods that nobody runs: were they counted as a queue, one such pod
    would keep every half-empty node of the cluster. Whether a limit or a quota allows a machine is not asked: that may
    change at any time. Nor is whether buying is due, so that the answer does not change from cycle to cycle.
    """
    sim = context.simulated.sim
    if any(_would_take_with_room(sim, demand.cls).any() for demand in demands):
        return True
    bought_for = [demand for demand in demands if demand.count]  # others have had a machine come in vain
    if not bought_for:
        return False
    offers = offers_of(sim, context.policy, context.snapshot, [demand.cls for demand in bought_for])
    return any(_is_on_sale(context, demand.cls, offers) for demand in bought_for)


def _would_take_with_room(sim: Simulation, cls: PodClass) -> Bools:
    """Rows that lack nothing but room for a pod of a class; its neighbours, near and far, are those of now."""
    rows = sim.could_hold(cls)
    if cls.is_dynamic and rows.any():
        rows &= accepted(sim.filter_context, NEIGHBOUR_FILTERS, cls, sim.all_rows)
    return rows


def _is_on_sale(context: PlanContext, cls: PodClass, offers: Sequence[Offer]) -> bool:
    """Whether a new machine would let a pod of a class in: the question that its NoFlavourFits answers."""
    holding = [offer for offer in offers if offer.could_hold(cls)]
    if not cls.is_dynamic or not holding:
        return bool(holding)
    return not refused_by_all(context.simulated.sim, context.policy, holding, cls)
