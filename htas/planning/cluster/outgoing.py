"""Outgoing nodes: those that are to go however well they are used, and what for.

To have another such rule: functions of its own, in RULES. Everything else (the order among candidates, what is bought
instead, where new work goes, what people are told) asks whether a node is outgoing, or urgently so, and never by which
rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from htas.model.claims import NodeClaim
from htas.model.nodes import Node
from htas.model.policy import Policy
from htas.model.reasons import ProposalReason
from htas.model.snapshot import ClusterSnapshot
from htas.model.versions import is_older
from htas.planning.cluster.unhealthy import Ailment, ailment_of, too_many_unhealthy


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Why a node goes: the reason, a sentence about the node, and the same as an attribute of it (`of a …`).

    `keeps_size`: another takes its place also in a group that has no more nodes than it must have. `is_urgent`: it
    takes no new pods meanwhile, and goes whatever is paid of it, whatever work waits, and however soon its own work
    seems to end.
    """

    reason: ProposalReason
    why: str
    which: str
    keeps_size: bool = False
    is_urgent: bool = False


@dataclass(frozen=True, slots=True)
class Grounds:
    """What rules go by beside a node and its claim: the policy, the time, and the groups of which too many nodes are
    unhealthy for any to be repaired, with how many.
    """

    policy: Policy
    now: float
    unrepaired: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, policy: Policy, now: float) -> Grounds:
        return cls(policy, now, too_many_unhealthy(snapshot.cluster.nodes, snapshot.claims, policy))

    def at(self, instant: float) -> Grounds:
        """The same at another time."""
        return replace(self, now=instant)


@dataclass(frozen=True, slots=True)
class Rule:
    """Why a node, by its claim and the grounds; when it says so though nothing has happened, by claim or by node."""

    why: Callable[[Node, NodeClaim | None, Grounds], Outgoing | None]
    claim_changes_at: Callable[[NodeClaim, Policy], float | None] = lambda claim, policy: None
    node_changes_at: Callable[[Node, Policy], float | None] = lambda node, policy: None


def outgoing(node: Node, claim: NodeClaim | None, grounds: Grounds) -> Outgoing | None:
    """Why a node is to go, the first reason that there is; None: it may stay."""
    return next((found for rule in RULES if (found := rule.why(node, claim, grounds)) is not None), None)


def outgoing_nodes(nodes: Iterable[Node], claims: Iterable[NodeClaim], grounds: Grounds) -> dict[str, Outgoing]:
    """Those that are to go by name, and why."""
    of = {claim.id: claim for claim in claims}
    found = ((node.name, outgoing(node, of.get(node.claim or ""), grounds)) for node in nodes)
    return {name: going for name, going in found if going is not None}


def changes_of_outgoing(nodes: Iterable[Node], claims: Iterable[NodeClaim], policy: Policy) -> Iterator[float]:
    """Instants, some of them past, at which time alone makes a node outgoing."""
    of_claims = (rule.claim_changes_at(claim, policy) for claim in claims for rule in RULES)
    of_nodes = (rule.node_changes_at(node, policy) for node in nodes for rule in RULES)
    return (at for at in chain(of_claims, of_nodes) if at is not None)


def _is_unhealthy(node: Node, claim: NodeClaim | None, grounds: Grounds) -> Outgoing | None:
    """A node of ours that has borne a condition for longer than its group lets it, unless too many others do, too."""
    ailment = ailment_of(node, grounds.policy)
    if ailment is None or grounds.now < ailment.ends_patience_at or node.group in grounds.unrepaired:
        return None
    why = _ails(ailment, grounds.now)
    return Outgoing(ProposalReason.UNHEALTHY, why, f"with {ailment.condition}", keeps_size=True, is_urgent=True)


def why_not_repaired(node: Node, grounds: Grounds) -> str | None:
    """Of a node that would be outgoing were fewer nodes of its group unhealthy: so, in words."""
    ailment, others = ailment_of(node, grounds.policy), grounds.unrepaired.get(node.group or "")
    if ailment is None or others is None or grounds.now < ailment.ends_patience_at:
        return None
    return f"{_ails(ailment, grounds.now)}, but {others}"


def _ails(ailment: Ailment, now: float) -> str:
    return f"{ailment.condition} for {age_text(now - ailment.since)}, {age_text(ailment.borne_s)} at most"


def _ends_patience_at(node: Node, policy: Policy) -> float | None:
    ailment = ailment_of(node, policy)
    return ailment.ends_patience_at if ailment is not None else None


def _is_of_retired_flavour(node: Node, claim: NodeClaim | None, grounds: Grounds) -> Outgoing | None:
    name = claim.flavour if claim is not None else node.flavour
    flavour = grounds.policy.catalogue.named(name)
    if flavour is None or not flavour.retired:
        return None
    return Outgoing(ProposalReason.RETIRED, f"flavour {name} is retired", "of a retired flavour")


def _is_expired(node: Node, claim: NodeClaim | None, grounds: Grounds) -> Outgoing | None:
    """A machine of ours that is older than its group allows; its age is counted from when it was rented."""
    policy, now = grounds.policy, grounds.now
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


def _is_outdated(node: Node, claim: NodeClaim | None, grounds: Grounds) -> Outgoing | None:
    """A node of ours whose kubelet is older than its group asks for; one that tells no version is left alone."""
    policy = grounds.policy
    group = policy.group(node.group)
    if group is None or not group.is_elastic or node.cluster != policy.cluster:
        return None
    least = group.cleaning.min_kubelet_version
    if least is None or not is_older(node.kubelet, least):
        return None
    why, which = f"kubelet {node.kubelet}, {least} at least", f"with a kubelet older than {least}"
    return Outgoing(ProposalReason.OUTDATED, why, which, keeps_size=True)


RULES: tuple[Rule, ...] = (
    Rule(_is_unhealthy, node_changes_at=_ends_patience_at),
    Rule(_is_of_retired_flavour),
    Rule(_is_expired, claim_changes_at=expires_at),
    Rule(_is_outdated),
)
"""What is urgent first."""


def age_text(seconds: float) -> str:
    """The two largest of days, hours, minutes and seconds, as the configuration has them: 30d, 1d12h, 2h5m."""
    left, parts = int(seconds), list[str]()
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, left = divmod(left, size)
        parts += [f"{count}{unit}"] if count or parts else []
    return "".join(part for part in parts[:2] if not part.startswith("0")) or "0s"
