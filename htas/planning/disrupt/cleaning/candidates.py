"""Candidates: nodes that could be given back, and why the others are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from htas.model.billing import Price
from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import CLUSTER_LABEL, SCALE_DOWN_DISABLED, Node
from htas.model.plan import KeptNode
from htas.model.plan_document import instant_text
from htas.model.pods import Pod
from htas.model.policy import CleaningRules, EmptyRelease, NodeGroup, Policy
from htas.model.reasons import Kept
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.cluster.initialization import in_words, still_awaited
from htas.planning.cluster.outgoing import Grounds, Outgoing, outgoing, why_not_repaired
from htas.planning.cluster.whereabouts import moves_under_way
from htas.planning.disrupt.cleaning.utilization import gpus_of, is_empty, utilization
from htas.planning.eligibility.drain_rules import cannot_be_read
from htas.planning.rental.bills import RunningBill


@dataclass(frozen=True, slots=True)
class DrainCandidate:
    """A node of ours that may be emptied. `whole_price` is what the catalogue has now, for its zone.

    `outgoing`: why it goes however well it is used; None: only where it is not worth its price.
    """

    node: Node
    group: NodeGroup
    claim: NodeClaim
    pods: tuple[Pod, ...]
    utilization: float
    is_empty: bool
    whole_price: Price
    outgoing: Outgoing | None = None

    @property
    def rank(self) -> tuple[object, ...]:
        """Empty ones first, since they would else be filled; then outgoing ones; then the least used, dearest first."""
        return not self.is_empty, self.outgoing is None, self.utilization, -self.price, self.node.name

    @property
    def is_urgent(self) -> bool:
        """Whether it goes whatever is paid of it, whatever work waits, and however soon its own ends."""
        return self.outgoing is not None and self.outgoing.is_urgent

    @property
    def work(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.is_work]

    @property
    def price(self) -> int:
        """Billionths an hour."""
        return self.whole_price.nanos_per_hour

    def bill(self, policy: Policy) -> RunningBill:
        """What it costs until it is given back."""
        return RunningBill(self.price, self.claim.rented_since, policy.catalogue.billing, self.whole_price.cap)

    def paid_s(self, policy: Policy, now: float) -> float:
        """How long it may be kept before its bill grows."""
        return policy.catalogue.billing.paid_s(self.whole_price, self.claim.rented_since, now)


class Circumstances:
    """What judging needs beside the node: the plan's circumstances and the memory of earlier ones."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        policy: Policy,
        now: float,
        memory: Memory,
        *,
        is_due: bool,
        needed: frozenset[str],
    ) -> None:
        self.policy = policy
        self.now = now
        self.grounds = Grounds.of(snapshot, policy, now)
        self.memory = memory
        self.is_due = is_due
        self.needed = needed
        self.cloud_problem = snapshot.cloud_problem
        self.between_s = _between_s(snapshot.memory.cleaned_at, policy.cycles.cleaning_s, now)
        self.release_s = snapshot.machine_times.release_s(policy.timeouts.release_s)
        self.move_times = snapshot.move_times
        self.store_problem = snapshot.store_problem
        self.unread = snapshot.cluster.unread
        self.learned = snapshot.learned
        self.failed = {failed.node: failed for failed in snapshot.failed_moves if now < failed.until}
        self.draining = {drain.node for drain in snapshot.drains}
        # A pod evicted from a draining node is gone for some seconds before its successor waits: its target is kept.
        self.receiving = {move.target for move in moves_under_way(snapshot)}


class Exceptions(Protocol):
    """Nodes that are judged otherwise: those being replaced by others, and those others."""

    def is_replaced(self, node: str) -> bool: ...

    def keeps(self, candidate: DrainCandidate) -> KeptNode | None: ...


def judge(
    node: Node,
    pods: Sequence[Pod],
    claim: NodeClaim | None,
    question: Circumstances,
    exceptions: Exceptions | None = None,
) -> DrainCandidate | KeptNode:
    """A candidate, or the reason why the node stays. One that is replaced goes however well it is used."""
    policy = question.policy
    group = policy.group(node.group)
    if group is None and is_empty(pods, question.now):  # its group is removed: nothing but emptiness has it deleted
        group = NodeGroup(node.group or "")
    if node.cluster != policy.cluster or group is None or claim is None:
        return KeptNode(node.name, Kept.NOT_AUTOSCALED, _not_ours(node, policy))
    candidate = candidate_of(node, pods, group, claim, question)
    kept = next(_states(candidate, question), None)
    if exceptions is not None and kept is None:
        kept = exceptions.keeps(candidate)
        if kept is None and exceptions.is_replaced(node.name) and question.is_due:
            return candidate
    return kept or _use_keeps(candidate, question) or candidate


def every_reason(candidate: DrainCandidate, question: Circumstances) -> list[KeptNode]:
    """All that keeps a node by its state and use; `judge` tells the first."""
    used = _use_keeps(candidate, question)
    return [*_states(candidate, question), *([used] if used is not None else [])]


def candidate_of(
    node: Node, pods: Sequence[Pod], group: NodeGroup, claim: NodeClaim, question: Circumstances
) -> DrainCandidate:
    """A node of ours with what a decision about it needs."""
    share = utilization(node, pods, group.cleaning, question.now)
    price = question.policy.catalogue.price(claim.flavour, node.zone or claim.zone) or claim.price
    going = outgoing(node, claim, question.grounds)
    return DrainCandidate(node, group, claim, tuple(pods), share, is_empty(pods, question.now), price, going)


def is_quiet(question: Circumstances, rules: CleaningRules) -> bool:
    """Whether no work has waited for as long as the rules ask."""
    since = question.memory.queue_empty_since
    return since is not None and question.now - since >= rules.queue_empty_for_s


def kept_by(annotation: str) -> Kept:
    """The reason of a node that one of HOLDING keeps."""
    return Kept.SCALE_DOWN_DISABLED if annotation == SCALE_DOWN_DISABLED else Kept.DO_NOT_DISRUPT


def _not_ours(node: Node, policy: Policy) -> str:
    if node.cluster != policy.cluster:
        return f"it has no label {CLUSTER_LABEL}={policy.cluster}: HTAS did not launch it"
    if policy.group(node.group) is None:
        return f"its node group {node.group or '(none)'} is not in the configuration: it is deleted once it is empty"
    return f"no claim {node.claim or '(no label)'} is known for it"


def _states(candidate: DrainCandidate, question: Circumstances) -> Iterator[KeptNode]:
    """Reasons in the node's own state, that which counts first."""
    node, claim, rules = candidate.node, candidate.claim, candidate.group.cleaning
    if node.is_draining or node.name in question.draining or claim.state is ClaimState.DRAINING:
        yield KeptNode(node.name, Kept.CURRENTLY_BEING_DELETED, "it is being drained")
    if claim.state in (ClaimState.FAILED, ClaimState.RELEASED):
        yield KeptNode(node.name, Kept.CURRENTLY_BEING_DELETED, f"its claim is {claim.state}")
    if node.held_by is not None:
        yield KeptNode(node.name, kept_by(node.held_by), f"annotated {node.held_by}=true")
    if not candidate.group.is_elastic:
        yield KeptNode(node.name, Kept.NOT_ELASTIC, f"group {candidate.group.name} of the edge is not elastic")
    if not rules.enabled:
        yield KeptNode(node.name, Kept.CLEANING_DISABLED, f"cleaning is off for group {candidate.group.name}")
    yield from _unsure(candidate, question)
    if question.cloud_problem or question.store_problem:
        yield _kept_by_outage(node, question)
    if node.name in question.needed:
        yield KeptNode(node.name, Kept.NEEDED, "this plan places work on it")
    if node.name in question.receiving:
        yield KeptNode(node.name, Kept.NEEDED, "a pod is moving to it")
    age = question.now - claim.since
    if age < rules.delay_after_launch_s:
        yield KeptNode(node.name, Kept.TOO_YOUNG, f"Ready for {span(age)} of {span(rules.delay_after_launch_s)}")


def _unsure(candidate: DrainCandidate, question: Circumstances) -> Iterator[KeptNode]:
    """Reasons in what is not known of it: how it is, or how much it is used."""
    node, claim = candidate.node, candidate.claim
    if not node.is_ready:
        yield KeptNode(node.name, Kept.NOT_READY, "it is not Ready")
    if node.name in question.unread:
        yield KeptNode(node.name, Kept.UNREADABLE_POD, cannot_be_read(question.unread[node.name]))
    if claim.is_coming:
        awaited = still_awaited(claim, node, question.policy, question.learned)
        if awaited and node.is_ready:
            yield KeptNode(node.name, Kept.NOT_INITIALIZED, in_words(awaited))
        else:
            yield KeptNode(node.name, Kept.NOT_READY, f"its claim is {claim.state} and not yet seen Ready")


def _kept_by_outage(node: Node, question: Circumstances) -> KeptNode:
    """The cloud could not be asked for the machine's end, or its end not be written down."""
    if question.cloud_problem:
        return KeptNode(node.name, Kept.CLOUD_UNREACHABLE, f"the cloud does not answer: {question.cloud_problem}")
    return KeptNode(node.name, Kept.STORE_UNWRITABLE, f"the journal cannot be written: {question.store_problem}")


def _use_keeps(candidate: DrainCandidate, question: Circumstances) -> KeptNode | None:
    """Reasons in how it is used, and for how long it has been used so little."""
    if candidate.is_empty:
        return _emptiness_keeps(candidate, question)
    name, rules, now = candidate.node.name, candidate.group.cleaning, question.now
    used = f"utilisation {percent(candidate.utilization)}{_of_gpus(candidate.node)}"
    if candidate.outgoing is not None:
        used = f"{candidate.outgoing.why}, {used}"
    elif candidate.utilization > rules.utilization_threshold:
        unrepaired = why_not_repaired(candidate.node, question.grounds)
        if unrepaired is not None:
            return KeptNode(name, Kept.TOO_MANY_UNHEALTHY, unrepaired)
        return KeptNode(name, Kept.NOT_UNDERUTILIZED, f"{used} > {percent(rules.utilization_threshold)}")
    failed = question.failed.get(name)
    if failed is not None:
        left = span(failed.until - now)
        return KeptNode(name, Kept.MIGRATION_FAILED, f"{failed.pod} could not be moved: {failed.why}; again in {left}")
    low = now - question.memory.underutilized_since.get(name, now)
    so_far = used
    if candidate.outgoing is None:
        so_far += f", under-utilised for {span(low)} of {span(rules.underutilized_for_s)}"
    if not question.is_due:
        return KeptNode(name, Kept.CLEANING_NOT_DUE, f"{so_far}; judged in the next cleaning cycle")
    if candidate.outgoing is None and low < rules.underutilized_for_s:
        return KeptNode(name, Kept.NOT_UNDERUTILIZED_LONG_ENOUGH, so_far)
    if candidate.is_urgent:
        return None
    if not is_quiet(question, rules):
        return KeptNode(name, Kept.QUEUE_NOT_EMPTY, f"{used}, but {_not_quiet(question, rules)}")
    if is_paid_for_longer(candidate, question):
        paid_s = candidate.paid_s(question.policy, now)
        message = (
            f"{used}, but paid for until {instant_text(now + paid_s)}; drained shortly before ({span(paid_s)} left)"
        )
        return KeptNode(name, Kept.DRAINS_BEFORE_PERIOD_ENDS, message)
    return None


def _not_quiet(question: Circumstances, rules: CleaningRules) -> str:
    since = question.memory.queue_empty_since
    if since is None:
        return "pods are pending"
    return f"the queue has been empty for only {span(question.now - since)} of {span(rules.queue_empty_for_s)}"


def _of_gpus(node: Node) -> str:
    gpus = gpus_of(node)
    return f" of {', '.join(gpus)}" if gpus else ""


def _emptiness_keeps(candidate: DrainCandidate, question: Circumstances) -> KeptNode | None:
    """An empty node goes at once, as an urgent one always does, after a while, or just before it is to be paid again.

    With `before-next-billing-period` it goes in the last cleaning cycle that still comes `release_ahead_s` before the
    period's end: hourly billing, cycles of 20 s and a release of 10 s mean 50 s to 30 s before the hour is full.
    """
    name, rules, policy = candidate.node.name, candidate.group.cleaning, question.policy
    if not question.is_due:
        return KeptNode(name, Kept.CLEANING_NOT_DUE, "empty; judged in the next cleaning cycle")
    if candidate.is_urgent:
        return None
    empty = question.now - question.memory.empty_since.get(name, question.now)
    if empty < rules.empty_for_s:
        return KeptNode(name, Kept.NOT_EMPTY_LONG_ENOUGH, f"empty for {span(empty)} of {span(rules.empty_for_s)}")
    if rules.empty_release is EmptyRelease.BEFORE_BILLING:
        left = candidate.paid_s(policy, question.now)
        if left > rules.ahead_s(policy.cycles, question.release_s) + question.between_s:
            return KeptNode(name, Kept.PAID_UNTIL_PERIOD_ENDS, f"empty, but paid for {span(left)} more")
    return None


DRAIN_MARGIN_S = 120.0
"""What emptying a node may take beyond what is expected: an hour too late by a second is paid in full."""


def is_paid_for_longer(candidate: DrainCandidate, question: Circumstances, before_s: float = 0.0) -> bool:
    """Whether a node with work on it is paid for longer than it takes to empty it and to give it back.

    Emptied 35 minutes before its hour was full, a node saved nothing by that, and its pods had been moved for a room
    that was paid for. `before_s` is what has to come first, such as the start of what replaces it. Billed by the
    minute this never holds: to empty a node takes longer.
    """
    rules, policy = candidate.group.cleaning, question.policy
    if rules.empty_release is not EmptyRelease.BEFORE_BILLING or candidate.is_urgent:
        return False
    left = candidate.paid_s(policy, question.now)
    ahead = rules.ahead_s(policy.cycles, question.release_s) + question.between_s + _drain_s(candidate, question)
    return left > before_s + ahead


def _drain_s(candidate: DrainCandidate, question: Circumstances) -> float:
    """What emptying a node may take: its pods one after another as budgets may have it, the longest grace, a margin.

    A pod's move as measured of the group's method, else as configured; no longer in all than a drain may take.
    """
    rules, policy = candidate.group.cleaning, question.policy
    times = question.move_times.get(rules.migration.value)
    is_known = times is not None and times.are_known and rules.migration.makes_twin
    moves = (
        times.expected_s(pod.requests.memory_bytes) if times is not None and is_known else rules.migration_seconds
        for pod in candidate.work
    )
    grace = max((min(pod.grace_s, rules.max_grace_s) for pod in candidate.work), default=0.0)
    return min(policy.timeouts.drain_s, grace + sum(moves)) + DRAIN_MARGIN_S


LONGEST_BETWEEN_S = 600.0
"""A longer pause was an outage, and tells nothing of the next."""


def _between_s(before: float | None, meant_s: float, now: float) -> float:
    """How long it may be until the next cleaning cycle, by the last one.

    With cycles of 90 s where 20 s are meant, the last one within a paid hour was never known as such, and an empty
    machine was kept for eleven hours.
    """
    passed_s = now - before if before is not None else 0.0
    return max(meant_s, passed_s if passed_s <= LONGEST_BETWEEN_S else 0.0)


def span(seconds: float) -> str:
    """Whole seconds as people read them: 45s, 2m10s."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def percent(share: float) -> str:
    """A share to a tenth of a percent, so that 50.4% is not told as 50%; whole ones without the zero."""
    return f"{100 * share:.1f}".removesuffix(".0") + "%"
