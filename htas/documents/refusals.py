"""Which flavours would not take a waiting pod, and why: each as the node it would become, judged by the planner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from htas.documents.words import some, taint_text
from htas.model.constraints import untolerated
from htas.model.flavours import Flavour
from htas.model.money import price_text
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.feasibility import node_groups
from htas.planning.cluster.feasibility.taints import UNTOLERATED
from htas.planning.cluster.local_storage import KEY
from htas.planning.cluster.simulated import open_simulation
from htas.planning.provision.offers import Offer, offers_of
from htas.planning.provision.refusing import refused_by_all, storage_missing


class FlavourRefusal(msgspec.Struct, frozen=True):
    """A flavour of a node group. `why` is in kube-scheduler's words; empty: it would take the pod."""

    group: str
    flavour: str
    price_per_hour: str
    why: str


def refusals(pod: Pod, snapshot: ClusterSnapshot, policy: Policy) -> Sequence[FlavourRefusal]:
    """Every flavour that some group may buy; those that would take the pod first, then by price."""
    return sorted(
        _judged(pod, snapshot, policy), key=lambda each: (bool(each.why), float(each.price_per_hour), each.flavour)
    )


def told_by_reason(found: Sequence[FlavourRefusal]) -> Iterator[str]:
    """The same in lines, flavours with the same reason in one; nothing where there is no flavour."""
    takers = [each.flavour for each in found if not each.why]
    if takers:
        yield f"would fit on a new {some(list(dict.fromkeys(takers)))}"
    reasons = list(dict.fromkeys(each.why for each in found if each.why))
    others = [why for why in reasons if not why.startswith(node_groups.OTHER_WORK)]
    for why in others if takers or others else reasons:  # a group for other work stands in nobody's way beside others
        names = list(dict.fromkeys(each.flavour for each in found if each.why == why))
        yield f"does not fit on a new {some(names)}: {why}"


def taints_on(pod: Pod, snapshot: ClusterSnapshot) -> str:
    """Taints of nodes that a pod does not tolerate, which kube-scheduler does not name: ` {team=red:NoSchedule}`."""
    kept_out = (
        untolerated(node.taints, pod.constraints.tolerations) for node in snapshot.cluster.nodes if node.takes_pods
    )
    texts = list(dict.fromkeys(taint_text(taint) for taint in kept_out if taint is not None))
    return f" {{{some(texts)}}}" if texts else ""


def _judged(pod: Pod, snapshot: ClusterSnapshot, policy: Policy) -> Iterator[FlavourRefusal]:
    opening = open_simulation(snapshot, policy, snapshot.taken_at)
    cls = opening.book.class_of(pod)
    offers = offers_of(opening.sim, policy, snapshot, [cls])
    for group in policy.groups:
        for flavour in policy.flavours_of(group):
            mine = [each for each in offers if (each.group.name, each.flavour.name) == (group.name, flavour.name)]
            if not group.is_elastic:
                why = f"group {group.name} launches no machines"
            elif not (cls.is_ours or group.workload.takes(pod.kind)):
                why = f"its group runs only {group.workload.value} pods"
            elif not mine:
                why = "the cloud does not have it"
            else:
                why = refused_by_all(opening.sim, policy, mine, cls)
                taint = untolerated(mine[0].node(policy, "").taints, pod.constraints.tolerations)
                why = why.replace(UNTOLERATED, f"{UNTOLERATED} {{{taint_text(taint)}}}") if taint is not None else why
                if storage_missing(mine[0], cls):
                    why += f" (the price file states no {KEY} for it, and no node shows it)"
            yield FlavourRefusal(group.name, flavour.name, price_text(_cheapest(mine, flavour)), why)


def _cheapest(offers: Sequence[Offer], flavour: Flavour) -> int:
    """Its price where it is sold for this group: that of its cheapest zone."""
    return min((offer.price for offer in offers), default=flavour.nanos_per_hour)
