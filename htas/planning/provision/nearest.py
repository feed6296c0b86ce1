"""What keeps a pod off every machine on offer: the volume, label, taint or resource, and where it is configured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from htas.model.constraints import untolerated
from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, Node
from htas.model.policy import Policy
from htas.model.resources import shortage_text
from htas.model.selectors import Operator, Requirement
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility import node_affinity
from htas.planning.cluster.feasibility.filter_context import FilterContext
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.feasibility.taints import UNTOLERATED
from htas.planning.cluster.feasibility.volumes import (
    AFFINITY_CONFLICT,
    BIND_CONFLICT,
    MAX_VOLUMES,
    NO_VOLUME_ZONE,
    asked_of_nodes,
    wanted_of_drivers,
)
from htas.planning.cluster.simulation import Simulation
from htas.planning.provision.offers import Offer
from htas.planning.provision.reaching import out_of_reach
from htas.planning.provision.refusing import refused_by_all, storage_missing, zones_missing

_GIVEN_ELSEWHERE = frozenset({HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL})
"""Labels that `nodeGroups[].labels` cannot give."""
MOST_TOLD = 3
_BY_VOLUMES = AFFINITY_CONFLICT, BIND_CONFLICT, NO_VOLUME_ZONE


def obstacle(sim: Simulation, policy: Policy, offers: Sequence[Offer], cls: PodClass) -> str:
    """What is in the way of every offer: a volume that none would reach, else what the closest of them lacks; and what
    to do where it is that a flavour names no zones.
    """
    advice = "" if _exceeds_attaching(sim, policy, offers, cls) else zones_missing(sim, policy, offers, cls)
    if offers and cls.constraints.claims and not any(offer.takes[cls.static_key] for offer in offers):
        told = out_of_reach(sim.filter_context.volumes, cls, [offer.node(policy, "").labels for offer in offers])
        if told is not None:
            return told.what + (advice or told.advice)
    return _closest(sim, policy, offers, cls) + advice


def _exceeds_attaching(sim: Simulation, policy: Policy, offers: Sequence[Offer], cls: PodClass) -> bool:
    """Whether it wants more volumes than any machine attaches, whichever zone that is in."""
    return any(True for _ in _attaching_told(sim.filter_context, [each.node(policy, "") for each in offers], cls))


def _closest(sim: Simulation, policy: Policy, offers: Sequence[Offer], cls: PodClass) -> str:
    """Which of the offers comes closest, and what it lacks."""
    usable = [offer for offer in offers if offer.takes[cls.static_key]]
    if not offers:
        return "the catalogue has none for its groups"
    if not usable:
        return f"every one refuses it: {_refused(sim, policy, offers, cls)}"
    large = [offer for offer in offers if fits(offer.free, cls) and not offer.takes[cls.static_key]]
    if large and (refused := _refused(sim, policy, large, cls)):
        enough = dict.fromkeys(offer.flavour.name for offer in large)
        others = f" and {len(enough) - 1} more" if len(enough) > 1 else ""
        return f"{next(iter(enough))}{others}, large enough, {'refuse' if others else 'refuses'} it: {refused}"
    nearest = max(usable, key=lambda offer: _nearness(offer, usable, cls))
    short = [
        shortage_text(name, int(cls.requests[i]), int(nearest.free[i]))
        for i, name in enumerate(sim.table.axis.names)
        if i in cls.needs and nearest.free[i] < cls.requests[i]
    ]
    advice = storage_missing(nearest, cls)
    return f"{nearest.flavour.name} has not enough {', '.join(short)}{advice}" if short else "none takes it"


def _nearness(offer: Offer, offers: Sequence[Offer], cls: PodClass) -> tuple[object, ...]:
    """The nearest offer has most of what each one is short of, then falls short of least; then it is the largest.

    By size alone, a pod that asked for two GPUs was told of a machine with none, where another has one.
    """
    needs = list(cls.needs)
    most = np.max([each.free[needs] for each in offers], axis=0)
    asked = cls.requests[needs]
    share = np.minimum(offer.free[needs] / asked, 1.0)
    return (
        float(share[most < asked].sum()),
        float(share.sum()),
        offer.free[:2].tolist(),
        offer.flavour.name,
    )


def _refused(sim: Simulation, policy: Policy, offers: Sequence[Offer], cls: PodClass) -> str:
    """Why all of some offers refuse a class, with what in the configuration would have to be other."""
    told = refused_by_all(sim, policy, offers, cls)
    if not told:
        return ""
    open_to_it = [offer for offer in offers if not cls.is_ours or offer.group.workload.takes(cls.kind)]
    nodes = [offer.node(policy, "") for offer in open_to_it]
    context = sim.filter_context
    details = [
        *(_labels_missing(nodes, cls) if node_affinity.REASON in told else ()),
        *(_taints_told(open_to_it, cls) if UNTOLERATED in told else ()),
        *(_volumes_told(context, cls) if any(reason in told for reason in _BY_VOLUMES) else ()),
        *(_attaching_told(context, nodes, cls) if MAX_VOLUMES in told else ()),
    ]
    return f"{told} ({'; '.join(details)})" if details else told


def _volumes_told(context: FilterContext, cls: PodClass) -> Iterator[str]:
    """Where each of its volumes is: no machine is in all those places, or none that the pod may be on."""
    asked = list(asked_of_nodes(context, cls))
    if asked:
        more = f"; and {len(asked) - MOST_TOLD} more" if len(asked) > MOST_TOLD else ""
        yield f"no machine would reach {'all of ' if len(asked) > 1 else ''}{'; '.join(asked[:MOST_TOLD])}{more}"


def _attaching_told(context: FilterContext, machines: Sequence[Node], cls: PodClass) -> Iterator[str]:
    """How many volumes it wants attached, and how many a machine attaches."""
    for driver, count in wanted_of_drivers(context, cls).items():
        limits = [dict(machine.attach_limits).get(driver) for machine in machines]
        most = max((limit for limit in limits if limit is not None), default=None)
        if most is not None and most < count:
            yield f"it has {count} volumes of {driver}, and a machine attaches {most}"


def _labels_missing(nodes: Sequence[Node], cls: PodClass) -> Iterator[str]:
    """Which labels that a pod asks for no machine on offer would bear; where each is borne, that none bears all."""
    asked = list(_asked(cls))
    if not asked or not nodes:
        return
    lacking = [each for each in asked if not any(each.holds_for(node.labels.get(each.key)) for node in nodes)]
    terms = [_requirement_text(each) for each in lacking or asked]
    more = f" and {len(terms) - MOST_TOLD} more" if len(terms) > MOST_TOLD else ""
    listed = ", ".join(terms[:MOST_TOLD]) + more
    if not lacking and len(asked) == 1:
        return  # some bear it, which refuse the pod for another reason
    what = "bear" if lacking else "bear together"
    key = "" if all(each.key in _GIVEN_ELSEWHERE for each in lacking or asked) else ": nodeGroups[].labels"
    yield f"no group's machines {what} {listed}{key}"


def _asked(cls: PodClass) -> Iterator[Requirement]:
    """What a pod asks of a node's labels; of alternative terms nothing, since none of them must hold."""
    for key, value in cls.constraints.node_selector:
        yield Requirement(key, Operator.IN, (value,))
    terms = cls.constraints.node_affinity or ()
    if len(terms) == 1:
        yield from (each for each in terms[0].expressions if each.is_valid)


def _requirement_text(asked: Requirement) -> str:
    """As kubectl's `--selector` has it: `disktype=nvme`, `zone In (a, b)`."""
    if asked.operator is Operator.IN and len(asked.values) == 1:
        return f"{asked.key}={asked.values[0]}"
    values = f" ({', '.join(asked.values)})" if asked.values else ""
    return f"{asked.key} {asked.operator.value}{values}"


def _taints_told(offers: Sequence[Offer], cls: PodClass) -> Iterator[str]:
    """Whose machines have a taint that keeps a pod out. Which one it is, `htas explain pod` tells.

    This is written into the pod's events as well, and those who read them may not be allowed to read nodes: hence
    kube-scheduler names no taint.
    """
    tolerations = cls.constraints.tolerations
    for what, names in (
        (
            "nodeGroups[].taints of {}",
            {each.group.name for each in offers if untolerated(each.group.taints, tolerations) is not None},
        ),
        (
            "`taints` of flavour {}",
            {each.flavour.name for each in offers if untolerated(each.flavour.taints, tolerations) is not None},
        ),
    ):
        told = sorted(names)
        if told:
            more = f" and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
            yield what.format(", ".join(told[:MOST_TOLD]) + more)
