"""Which machines are ours and have no place in the configuration. Pure.

A machine whose metadata name another cluster of HTAS is ours only by evidence: our journal has it, or a node of our
Kubernetes cluster runs on it. Every other one is that cluster's business.
"""

from __future__ import annotations

from collections.abc import Iterable

from htas.execution.identity import is_strange
from htas.model.claims import ClaimState, Instance, InstanceState, NodeClaim
from htas.model.nodes import Node
from htas.model.orphans import Orphan, OrphanReason
from htas.model.policy import Policy

_OVER = frozenset({ClaimState.WANTED, ClaimState.FAILED, ClaimState.RELEASED})


def orphans(
    nodes: Iterable[Node], claims: Iterable[NodeClaim], instances: Iterable[Instance], policy: Policy
) -> tuple[Orphan, ...]:
    """By machine. What the cloud does not list is judged by the journal alone."""
    open_claims = [claim for claim in claims if claim.state not in _OVER and claim.instance is not None]
    by_machine = {claim.instance or "": claim for claim in open_claims}
    ids = {claim.id for claim in open_claims}
    node_of = {node.machine: node.name for node in nodes if node.provider_id}
    found: dict[str, Orphan] = {}
    listed = set()
    for instance in instances:
        listed.add(instance.id)
        claim = by_machine.get(instance.id)
        if instance.state is InstanceState.DELETING:
            continue
        if is_strange(instance, policy.cluster):
            is_ours = claim is not None or instance.claim in ids or instance.id in node_of
            reason = OrphanReason.OTHER_CLUSTER if is_ours else None
        elif claim is not None or (instance.cluster == policy.cluster and instance.claim is not None):
            reason = _unplaced(claim.group if claim is not None else instance.group, instance.flavour, policy)
        else:
            continue
        if reason is not None:
            node = node_of.get(instance.id) or (claim.node if claim is not None else None)
            group = claim.group if claim is not None else instance.group
            found[instance.id] = Orphan(
                instance.id,
                reason,
                instance.claim or "",
                node or "",
                group or "",
                instance.flavour,
                instance.cluster or "",
            )
    for claim in open_claims:
        if claim.instance not in listed and claim.instance is not None:
            reason = _unplaced(claim.group, claim.flavour, policy)
            if reason is not None:
                found[claim.instance] = Orphan(
                    claim.instance, reason, claim.id, claim.node or "", claim.group, claim.flavour, policy.cluster
                )
    return tuple(found[machine] for machine in sorted(found))


def _unplaced(group: str | None, flavour: str, policy: Policy) -> OrphanReason | None:
    if policy.group(group) is None:
        return OrphanReason.UNKNOWN_GROUP
    return OrphanReason.UNKNOWN_FLAVOUR if policy.catalogue.named(flavour) is None else None
