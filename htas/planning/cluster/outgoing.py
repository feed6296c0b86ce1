"""Outgoing nodes: those that are to go however well they are used, and what for.

To have another such rule: functions of its own, in RULES. Everything else (the order among candidates, what is bought
instead, where new work goes, what people are told) asks whether a node is outgoing, and never by which rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from htas.model.claims import NodeClaim
from htas.model.nodes import Node
from htas.model.policy import Policy
from htas.model.reasons import ProposalReason
from htas.model.versions import is_older


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Why a node goes: the reason, a sentence about the node, and the same as an attribute of it (`of a …`).

    `keeps_size`: another takes its place also in a group that has no more nodes than it must have.
    """

    reason: ProposalReason
    why: str
    which: str
    keeps_size: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """Why a node, by its claim, the policy and the time; `changes_at`: when it says so though nothing has happened."""

    why: Callable[[Node, NodeClaim | None, Policy, float], Outgoing | None]
    changes_at: Callable[[NodeClaim, Policy], float | None] = lambda claim, policy: None


def outgoing(node: Node, claim: NodeClaim | None, policy: Policy, now: float) -> Outgoing | None:
    """Why a node is to go, the first reason that there is; None: it may stay."""
    return next((found for rule in RULES if (found := rule.why(node, claim, policy, now)) is not None), None)


def outgoing_nodes(nodes: Iterable[Node], claims: Iterable[NodeClaim], policy: Policy, now: float) -> frozenset[str]:
    """The names of those that are to go."""
    of = {claim.id: claim for claim in claims}
    return frozenset(node.name for node in nodes if outgoing(node, of.get(node.claim or ""), policy, now) is not None)


def changes_of_outgoing(claims: Iterable[NodeClaim], policy: Policy) -> Iterator[float]:
    """Instants, some of them past, at which time alone makes a node outgoing."""
    for claim in claims:
        for rule in RULES:
            if (at := rule.changes_at(claim, policy)) is not None:
                yield at


def _is_of_retired_flavour(node: Node, claim: NodeClaim | None, policy: Policy, now: float) -> Outgoing | None:
    name = claim.flavour if claim is not None else node.flavour
    flavour = policy.catalogue.named(name)
    if flavour is None or not flavour.retired:
        return None
    return Outgoing(ProposalReason.RETIRED, f"flavour {name} is retired", "of a retired flavour")


def _is_expired(node: Node, claim: NodeClaim | None, policy: Policy, now: float) -> Outgoing | None:
    """A machine of ours that is older than its group allows; its age is counted from when it was rented."""
    at = expires_at(claim, policy) if claim is not None and node.cluster == policy.cluster else None
    if claim is None or at is None or now < at:
        return None
    age, most = age_text(now - claim.rented_since), age_text(at - claim.rented_since)
    return Outgoing(ProposalReason.EXPIRED, f"{age} old, {most} at most", f"older than {most}", keeps_size=True)


def expires_at(claim: NodeClaim, policy: Policy) -> float | None:
    """From when a machine is older than its group allows; None: it may be of any age."""
    group = policy.group(claim.group)
    if group is None or not group.is_elastic or group.cleaning.max_node_age_s is None:
        return None
    return claim.rented_since + group.cleaning.max_node_age_s


def _is_outdated(node: Node, claim: NodeClaim | None, policy: Policy, now: float) -> Outgoing | None:
    """A node of ours whose kubelet is older than its group asks for; one that tells no version is left alone."""
    group = policy.group(node.group)
    if group is None or not group.is_elastic or node.cluster != policy.cluster:
        return None
    least = group.cleaning.min_kubelet_version
    if least is None or not is_older(node.kubelet, least):
        return None
    why, which = f"kubelet {node.kubelet}, {least} at least", f"with a kubelet older than {least}"
    return Outgoing(ProposalReason.OUTDATED, why, which, keeps_size=True)


RULES: tuple[Rule, ...] = (Rule(_is_of_retired_flavour), Rule(_is_expired, expires_at), Rule(_is_outdated))


def age_text(seconds: float) -> str:
    """The two largest of days, hours, minutes and seconds, as the configuration has them: 30d, 1d12h, 2h5m."""
    left, parts = int(seconds), list[str]()
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, left = divmod(left, size)
        parts += [f"{count}{unit}"] if count or parts else []
    return "".join(part for part in parts[:2] if not part.startswith("0")) or "0s"
