"""Limits of namespaces, before anything is launched: pods for whom their namespace can pay no machine are held back.

Such pods count as no pending work: a namespace at its limit keeps no node that the cleaner would drain.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from htas.model.plan import UnplacedPod
from htas.model.reasons import Unplaced
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.provision.limits import UNLIMITED
from htas.planning.provision.offers import Offer, offers_of


def hold_back_beyond_limits(context: PlanContext, demands: Sequence[Demand]) -> tuple[list[Demand], list[UnplacedPod]]:
    """(what is left; pods whose namespace could pay for no machine that would hold them, with the reason)."""
    sim, told = context.simulated.sim, list[UnplacedPod]()
    limited = [demand for demand in demands if demand.cls.charged_to]
    if not limited:
        return list(demands), told
    with sim.defaults.counted(sim.table):  # as where machines are chosen
        offers = offers_of(sim, context.policy, context.snapshot, [demand.cls for demand in limited])
        holding = [[offer for offer in offers if offer.could_hold(demand.cls)] for demand in limited]
    for demand, mine in zip(limited, holding, strict=True):
        if mine and not affordable(sim, mine, demand.cls):
            pods, refusals = demand.youngest(demand.count), sim.diagnose(demand.cls)
            why = reason_of_limit(sim, demand.cls)
            told += [UnplacedPod(pod.key, Unplaced.NAMESPACE_LIMIT, why, refusals) for pod in pods]
            demand.leave_out(sim, pods)
    return [demand for demand in demands if demand.count or not demand.cls.charged_to], told


def limited_namespaces(sim: Simulation) -> Collection[str]:
    """Namespaces whose limits are in reach."""
    return sim.filter_context.cap.names if sim.filter_context.cap is not None else ()


def affordable(sim: Simulation, offers: Sequence[Offer], cls: PodClass) -> list[Offer]:
    """The offers of which one more machine may be launched for the namespace of a class."""
    return [offer for offer in offers if machines_left(sim, offer, cls.charged_to or "") > 0]


def machines_left(sim: Simulation, offer: Offer, namespace: str) -> int:
    """How many machines of an offer a namespace with a limit may still have; empty: any other."""
    cap = sim.filter_context.cap
    return UNLIMITED if cap is None else cap.machines_left(namespace, offer.allocatable.cpu_m, offer.price)


def reason_of_limit(sim: Simulation, cls: PodClass) -> str:
    """Why nothing is launched for a class at its namespace's limit."""
    cap = sim.filter_context.cap
    return cap.reason(cls.charged_to) if cap is not None and cls.charged_to else ""
