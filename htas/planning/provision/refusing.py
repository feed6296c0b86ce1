"""Why a machine that could be bought would not take a pod, in kube-scheduler's words."""

from __future__ import annotations

from collections.abc import Sequence

from htas.model.policy import Policy
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import Simulation
from htas.planning.provision.offers import Offer


def refused_by_all(sim: Simulation, policy: Policy, offers: Sequence[Offer], cls: PodClass) -> str:
    """The reasons of new machines of these offers, the most frequent first; empty where one of them takes the pod."""
    with sim.fork():
        added = sim.add_nodes([offer.node(policy, f"offer-{i}") for i, offer in enumerate(offers)])
        rows = slice(added.start, added.stop)
        if sim.feasible(cls, rows).any():
            return ""
        counts = sim.diagnose(cls, rows)
    return ", ".join(sorted(counts, key=lambda reason: (-counts[reason], reason)))
