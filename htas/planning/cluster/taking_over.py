"""Machines that were bought to take over from nodes: how long they wait for their pods, and which keep others out."""

from __future__ import annotations

from collections.abc import Container

from htas.model.claims import ClaimState, NodeClaim
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot


def is_open(claim: NodeClaim, policy: Policy, now: float) -> bool:
    """A replacement waits for its pods for a while, from when it is Ready; then it is a node like others."""
    group = policy.group(claim.group)
    if group is None or claim.is_coming:
        return group is not None
    return claim.state is ClaimState.READY and now - claim.since < group.cleaning.consolidation.within_s


def kept_for_urgent(snapshot: ClusterSnapshot, policy: Policy, now: float, urgent: Container[str]) -> frozenset[str]:
    """Replacements of nodes that are urgently to go and not being emptied yet, by the names of their rows.

    Where work never ceases to come, jobs had each of them before its pods could move there. Once these leave, those
    that are evicted are waiting work themselves, and it takes pods like any other.
    """
    draining = {drain.node for drain in snapshot.drains}
    waiting = {node.name for node in snapshot.cluster.nodes if node.name in urgent and not node.is_draining} - draining
    claims = [claim for claim in snapshot.claims if not waiting.isdisjoint(claim.replaces)] if waiting else []
    return frozenset(
        claim.id if claim.is_coming or claim.node is None else claim.node
        for claim in claims
        if is_open(claim, policy, now)
    )
