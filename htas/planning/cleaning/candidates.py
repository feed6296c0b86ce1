"""Candidates: nodes that could be given back, and why the others are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htas.model.claims import NodeClaim
from htas.model.flavours import Billing
from htas.model.nodes import SCALE_DOWN_DISABLED, Node
from htas.model.plan import KeptNode
from htas.model.pods import Pod
from htas.model.policy import EmptyRelease, NodeGroup, Policy
from htas.model.reasons import Kept
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.cleaning.utilization import is_empty, utilization


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node of ours that may be emptied."""

    node: Node
    group: NodeGroup
    claim: NodeClaim
    pods: tuple[Pod, ...]
    utilization: float
    is_empty: bool
    nanos_per_hour: int


@dataclass(frozen=True, slots=True)
class Question:
    """What judging needs beside the node: the plan's circumstances and the memory of earlier ones."""

    snapshot: ClusterSnapshot
    policy: Policy
    now: float
    is_due: bool
    queue_empty_since: float | None
    memory: Memory
    needed: frozenset[str]


def judge(node: Node, pods: Sequence[Pod], claim: NodeClaim | None, question: Question) -> Candidate | KeptNode:
    """A candidate, or the reason why the node stays."""
    policy = question.policy
    group = policy.group(node.group)
    if node.cluster != policy.cluster or group is None or claim is None:
        return KeptNode(node.name, Kept.NOT_AUTOSCALED, "no node group of this configuration owns it")
    share = utilization(node, pods, group.cleaning)
    flavour = policy.catalogue.named(claim.flavour)
    price = flavour.nanos_per_hour if flavour is not None else claim.nanos_per_hour
    candidate = Candidate(node, group, claim, tuple(pods), share, is_empty(pods), price)
    return _state_keeps(candidate, question) or _use_keeps(candidate, question) or candidate


def _state_keeps(candidate: Candidate, question: Question) -> KeptNode | None:
    """Reasons in the node's own state."""
    node, rules = candidate.node, candidate.group.cleaning
    if node.is_draining or any(drain.node == node.name for drain in question.snapshot.drains):
        return KeptNode(node.name, Kept.CURRENTLY_BEING_DELETED, "it is being emptied")
    if node.annotations.get(SCALE_DOWN_DISABLED) == "true":
        return KeptNode(node.name, Kept.SCALE_DOWN_DISABLED, f"annotated {SCALE_DOWN_DISABLED}=true")
    if not rules.enabled:
        return KeptNode(node.name, Kept.CLEANING_DISABLED, f"cleaning is off for group {candidate.group.name}")
    if not node.is_ready:
        return KeptNode(node.name, Kept.NOT_READY, "it is not Ready")
    if node.name in question.needed:
        return KeptNode(node.name, Kept.NEEDED, "this plan places work on it")
    if any(move.target == node.name for move in question.snapshot.moves):
        return KeptNode(node.name, Kept.NEEDED, "a pod is moving to it")
    age = question.now - candidate.claim.since
    if age < rules.delay_after_launch_s:
        return KeptNode(node.name, Kept.TOO_YOUNG, f"Ready for {_span(age)} of {_span(rules.delay_after_launch_s)}")
    return None


def _use_keeps(candidate: Candidate, question: Question) -> KeptNode | None:
    """Reasons in how it is used, and for how long it has been used so little."""
    name, rules = candidate.node.name, candidate.group.cleaning
    if candidate.is_empty:
        return _emptiness_keeps(candidate, question)
    if candidate.utilization > rules.utilization_threshold:
        message = f"utilisation {candidate.utilization:.0%} > {rules.utilization_threshold:.0%}"
        return KeptNode(name, Kept.NOT_UNDERUTILIZED, message)
    if not question.is_due:
        return KeptNode(name, Kept.CLEANING_NOT_DUE, "judged in the next cleaning cycle")
    low = question.now - question.memory.underutilized_since.get(name, question.now)
    if low < rules.underutilized_for_s:
        message = f"utilisation {candidate.utilization:.0%}, for {_span(low)} of {_span(rules.underutilized_for_s)}"
        return KeptNode(name, Kept.NOT_UNDERUTILIZED_LONG_ENOUGH, message)
    if question.queue_empty_since is None:
        return KeptNode(name, Kept.QUEUE_NOT_EMPTY, "work is waiting")
    quiet = question.now - question.queue_empty_since
    if quiet < rules.queue_empty_for_s:
        return KeptNode(
            name, Kept.QUEUE_NOT_EMPTY, f"queue empty for {_span(quiet)} of {_span(rules.queue_empty_for_s)}"
        )
    return None


def _emptiness_keeps(candidate: Candidate, question: Question) -> KeptNode | None:
    """An empty node goes at once, after a while, or just before it would be paid for again."""
    name, rules = candidate.node.name, candidate.group.cleaning
    if not question.is_due:
        return KeptNode(name, Kept.CLEANING_NOT_DUE, "empty; judged in the next cleaning cycle")
    empty = question.now - question.memory.empty_since.get(name, question.now)
    if empty < rules.empty_for_s:
        return KeptNode(name, Kept.NOT_EMPTY_LONG_ENOUGH, f"empty for {_span(empty)} of {_span(rules.empty_for_s)}")
    if rules.empty_release is EmptyRelease.BEFORE_BILLING:
        left = paid_for_s(candidate.claim, question.policy.catalogue.billing, question.now)
        if left > rules.release_ahead_s + question.policy.cycles.cleaning_s:
            return KeptNode(name, Kept.PAID_UNTIL_PERIOD_ENDS, f"empty, but paid for {_span(left)} more")
    return None


def paid_for_s(claim: NodeClaim, billing: Billing, now: float) -> float:
    """How long a machine is paid for already: 40 s into a minute, 20 s."""
    held = now - claim.created_at
    return billing.billed_seconds(held) - held


def _span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
