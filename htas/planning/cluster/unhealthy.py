"""Unhealthy nodes: those that bear a condition for which their group has nodes repaired (`cleaning.repair`).

Where more than a fifth of a group's nodes bear one, or are not Ready any more, none is repaired: a rack has failed or a
detector is wrong, and other machines would be no better. Pods go to what is well first all the same. As in Karpenter
the fifth is rounded up, and who bears it since a moment ago counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import Node
from htas.model.policy import NodeGroup, Policy

ONE_IN = 5
"""Of so many nodes of a group one may be unhealthy; of one to five, one."""


@dataclass(frozen=True, slots=True)
class Ailment:
    """A condition that a node bears, since when, and for how long its group lets it."""

    condition: str
    since: float
    borne_s: float

    @property
    def ends_patience_at(self) -> float:
        return self.since + self.borne_s


def ailment_of(node: Node, policy: Policy) -> Ailment | None:
    """Of the conditions that a node of ours bears and is repaired for, that which its group bears no more first."""
    group = _group_of(node, policy) if node.conditions else None
    if group is None:
        return None
    repaired = dict(group.cleaning.repair_s)
    borne = (Ailment(name, since, repaired[name]) for name, since in node.conditions if name in repaired)
    return min(borne, key=lambda each: (each.ends_patience_at, each.condition), default=None)


def ailing_nodes(nodes: Iterable[Node], policy: Policy) -> frozenset[str]:
    """Those that bear such a condition, for however long, and though too many others do: pods go there last of all."""
    if not any(group.cleaning.repair_s for group in policy.groups):
        return frozenset()
    return frozenset(node.name for node in nodes if ailment_of(node, policy) is not None)


def too_many_unhealthy(nodes: Iterable[Node], claims: Iterable[NodeClaim], policy: Policy) -> Mapping[str, str]:
    """The groups of which too many nodes bear a condition or are lost for any to be repaired: how many, in words."""
    if not any(group.cleaning.repair_s for group in policy.groups):
        return {}
    of = {claim.id: claim for claim in claims}
    sizes, unhealthy, lost = Counter[str](), Counter[str](), Counter[str]()
    for node in nodes:
        group = _group_of(node, policy)
        if group is not None:
            is_lost = _is_lost(node, of.get(node.claim or ""))
            sizes[group.name] += 1
            lost[group.name] += is_lost
            unhealthy[group.name] += is_lost or ailment_of(node, policy) is not None
    most = {name: -(-size // ONE_IN) for name, size in sizes.items()}
    return {
        name: f"{count} of {sizes[name]} nodes of group {name} are unhealthy"
        f"{f' ({lost[name]} not Ready)' if lost[name] else ''}, repaired up to {most[name]}"
        for name, count in sorted(unhealthy.items())
        if count > most[name]
    }


def _is_lost(node: Node, claim: NodeClaim | None) -> bool:
    """Whether a node is not Ready any more; not one that comes up for the first time, or that is being given back."""
    if node.is_ready or node.is_draining:
        return False
    if claim is None or claim.state is ClaimState.READY:
        return True
    return claim.ready_at is not None and claim.state is not ClaimState.DRAINING


def _group_of(node: Node, policy: Policy) -> NodeGroup | None:
    """The group of a node of ours, where machines are bought and given back."""
    group = policy.group(node.group) if node.cluster == policy.cluster else None
    return group if group is not None and group.is_elastic else None
