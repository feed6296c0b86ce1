"""Why a machine that could be bought would not take a pod, in kube-scheduler's words."""

from __future__ import annotations

from collections.abc import Sequence

from htas.model.policy import Policy
from htas.planning.cluster.classes import STORAGE_ROW, PodClass
from htas.planning.cluster.feasibility import node_groups
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.feasibility.volumes import reaches
from htas.planning.cluster.local_storage import KEY, says_no_storage
from htas.planning.cluster.offered import shortfall
from htas.planning.cluster.simulation import Simulation
from htas.planning.cluster.zones import asks_for_zones, zones_named, zones_of
from htas.planning.provision.offers import Offer


def refused_by_all(sim: Simulation, policy: Policy, offers: Sequence[Offer], cls: PodClass) -> str:
    """The reasons of new machines of these offers, the most frequent first; empty where one of them takes the pod.

    That a group is for other work is told only where nothing else is in the way: where another group takes such work it
    is no reason that anybody would mend.
    """
    with sim.fork():
        added = sim.add_nodes([offer.node(policy, f"offer-{i}") for i, offer in enumerate(offers)])
        rows = slice(added.start, added.stop)
        if sim.feasible(cls, rows).any():
            return ""
        counts = sim.diagnose(cls, rows)
    if len(counts) > 1:
        counts.pop(node_groups.reason(cls.kind), None)
    return ", ".join(sorted(counts, key=lambda reason: (-counts[reason], reason)))


def storage_missing(offer: Offer, cls: PodClass) -> str:
    """Which key of the price file a pod that asks for local disk wants; empty where the offer's disk is known."""
    if cls.requests[STORAGE_ROW] and says_no_storage(offer.flavour, offer.allocatable):
        return f"; the price file states no {KEY} for {offer.flavour.name}, and no node shows it"
    return ""


def less_than_promised(sim: Simulation, offers: Sequence[Offer], cls: PodClass) -> str:
    """Which flavour would hold a pod if its machines offered what the price file says; empty: none.

    The nodes of a flavour show what its machines offer, and from then on that counts. The cheapest flavour is named.
    """
    axis = sim.table.axis
    for offer in offers:
        promised = offer.flavour.allocatable
        free = offer.free + axis.room(promised) - axis.room(offer.allocatable)
        if offer.admits(cls) and not fits(offer.free, cls) and fits(free, cls):
            short = shortfall(offer.allocatable, promised)
            return f"; nodes of {offer.flavour.name} offer less than the price file says: {short}" if short else ""
    return ""


def zones_missing(sim: Simulation, policy: Policy, offers: Sequence[Offer], cls: PodClass) -> str:
    """What to do where a pod goes by zones, by itself or by its volumes, nodes have some, and a flavour names none.

    Empty: that is not so. The cheapest such flavour that is large enough is named. Nodes' zones are not simply taken
    for the flavour's: bought without one, a machine may come up anywhere. Nor do they help a pod that names another.
    """
    zones = zones_of(sim.table.nodes)
    by_volumes = {
        value
        for reach in reaches(sim.filter_context.volumes, cls.namespace, cls.constraints.claims)
        for term in reach.terms
        for part in term.expressions
        for value in part.values
    }
    if not zones or not (asks_for_zones(cls.constraints) or by_volumes & {*zones}):
        return ""
    named = zones_named(cls.constraints)
    if named and named.isdisjoint({*zones, *(offer.zone for offer in offers)}):
        return (
            f"; no node is in {' or '.join(sorted(named))}: HTAS launches machines there if a flavour's `zones` name it"
        )
    flavours = policy.catalogue.flavours
    for offer in offers:
        if offer.zone is None and fits(offer.free, cls):
            key = f"flavours[{[each.name for each in flavours].index(offer.flavour.name)}].zones"
            zones_told = ", ".join(zones)
            return f"; flavour {offer.flavour.name} has no zones: give it `zones: [{zones_told}]` (price file: {key})"
    return ""
