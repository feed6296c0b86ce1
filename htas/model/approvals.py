"""Approvals: the proposals of a plan as questions that somebody answers with yes or no, each as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from enum import StrEnum

import msgspec

from htas.model.claims import taken_over_since
from htas.model.money import price_text
from htas.model.moves import MigrationMethod, Move
from htas.model.outcomes import CLUSTER, Action
from htas.model.plan import Carrying, Plan
from htas.model.proposals import Proposal
from htas.model.reasons import OutcomeReason, ProposalReason
from htas.model.snapshot import ClusterSnapshot


class QuestionKind(StrEnum):
    DRAIN = "drain"
    """A node is drained, and its machine deleted."""
    REPLACE = "replace"
    """Cheaper machines are launched for the pods of others, which are drained then."""
    PREEMPT = "preempt"
    """Pods of lower priority leave for one that is pending."""
    REARRANGE = "rearrange"
    """Pods leave their nodes so that more pods fit, as the optimiser found."""
    SUGGEST = "suggest"
    """Pods are moved nearer to their users."""


class Leaving(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a pod would leave its node. `target` is empty where none is reserved for it, `method` where a later plan,
    made once new machines are Ready, decides on both.
    """

    pod: str
    method: str = ""
    target: str = ""

    @property
    def how(self) -> str:
        """`evicted, restarts on n2`; `migrated to n2 by checkpoint`."""
        match self.method:
            case "":
                return "leaves once the new machines are Ready"
            case MigrationMethod.EVICT:
                return f"evicted, restarts {f'on {self.target}' if self.target else 'where it fits'}"
            case MigrationMethod.REPLACE:
                return f"replaced by a copy on {self.target}"
        return f"migrated to {self.target} by {self.method}"


class Question(msgspec.Struct, frozen=True):
    """`id` is the same for as long as the same is proposed: made of its kind and what it is done to, not of how."""

    id: str
    kind: QuestionKind
    subject: str
    pods: tuple[str, ...]
    nanos_per_hour: int = 0
    why: str = ""
    is_under_way: bool = False
    """It has been begun, and each of its steps needs the same yes."""
    moves: tuple[Leaving, ...] = ()
    """How each of the pods would leave."""

    @property
    def nodes(self) -> frozenset[str]:
        """That would be emptied."""
        return frozenset(self.subject.split() if self.kind in (QuestionKind.DRAIN, QuestionKind.REPLACE) else ())

    def gone(self, snapshot: ClusterSnapshot) -> str:
        """The first of its nodes, or the pod it is for, that is there no more; empty: all are."""
        if self.nodes:
            there = {node.name for node in snapshot.cluster.nodes}
            return next((f"node {name} is gone" for name in sorted(self.nodes) if name not in there), "")
        if self.kind is QuestionKind.PREEMPT:
            pods = [pod for pod in snapshot.cluster.pods if pod.key == self.subject]
            if not pods:
                return f"pod {self.subject} is gone"
            if pods[0].node is not None:
                return f"pod {self.subject} is no longer pending"
        return ""

    def left(self, snapshot: ClusterSnapshot) -> str:
        """Whether all that would leave has done so by itself; of what a plan proposes now that is never asked."""
        nodes, pods = self.nodes, set(self.pods)
        if not nodes or not pods:
            return ""
        are_there = any(pod.node in nodes and pod.key in pods for pod in snapshot.cluster.pods)
        return "" if are_there else "no pod that would have left is there any more"

    def told(self, currency: str) -> str:
        """`drain m1-a: 3 pods leave; underutilized, saves 0.10 USD/h`."""
        saves = f", saves {price_text(self.nanos_per_hour)} {currency}/h" if self.nanos_per_hour > 0 else ""
        leave = f"{len(self.pods)} pod{'s leave' if len(self.pods) != 1 else ' leaves'}" if self.pods else ""
        return f"{self.kind.value} {self.subject}: " + "; ".join(filter(None, (leave, self.why))) + saves


class ApprovalState(StrEnum):
    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    LAPSED = "lapsed"
    """A yes that came to nothing: what it was for is gone, or was not proposed again in time."""


class Asked(msgspec.Struct, frozen=True):
    """A question that was asked, and the answer. `who` is empty while it waits."""

    question: Question
    state: ApprovalState
    proposed_at: float
    proposed_last: float
    said_at: float | None = None
    who: str = ""
    is_used: bool = False
    """A yes is for once: what it was said to has been begun."""
    lapsed: str = ""
    """Why a yes has lapsed."""


def questions_of(plan: Plan, snapshot: ClusterSnapshot) -> list[Question]:
    """What of a plan disturbs somebody. Emptying a node without pods does not, nor what was approved and goes on:
    nodes whose replacements have been bought already, as long as nobody else would leave.
    """
    found = [question_of(proposal, snapshot) for proposal in plan.proposals]
    found.append(_carried(plan, snapshot))
    return [each for each in found if each is not None]


def question_of(proposal: Proposal, snapshot: ClusterSnapshot) -> Question | None:
    """The question that a proposal is; None: it disturbs nobody."""
    pods = list(map(_leaving, proposal.moves))
    why, value = proposal.message or proposal.reason.value, proposal.value
    if proposal.launches:
        nodes = _nodes(proposal)
        pods = pods or _on(proposal, snapshot)
        by = ", ".join(sorted(launch.flavour for launch in proposal.launches))
        return _question(QuestionKind.REPLACE, nodes, nodes, pods, value, f"by {by}")
    if not pods:
        return None
    if proposal.reason.empties_nodes:
        claims = " ".join(sorted(release.claim for release in proposal.releases))
        if _is_approved(proposal, snapshot):
            return None
        return _question(QuestionKind.DRAIN, _nodes(proposal), claims, pods, value, why)
    if proposal.reason is ProposalReason.PREEMPTED:
        [seat] = proposal.seats
        known_by = f"{seat.pod} {seat.uid}"  # another pod of that name is another question
        return _question(QuestionKind.PREEMPT, seat.pod, known_by, pods, 0, f"on {seat.node}")
    if proposal.reason is ProposalReason.NEARER_TO_USERS:
        return _question(QuestionKind.SUGGEST, CLUSTER, _names(pods), pods, 0, "nearer to their users")
    return _question(QuestionKind.REARRANGE, CLUSTER, _names(pods), pods, value, why)


def begun_by(proposal: Proposal) -> frozenset[tuple[Action, str]]:
    """What is done first of a proposal, and to whom: where nothing of that was, it has not been begun."""
    if proposal.launches:
        return frozenset((Action.LAUNCH, launch.claim) for launch in proposal.launches)
    if proposal.reason is ProposalReason.PREEMPTED:
        nominated = {(Action.NOMINATE, seat.pod) for seat in proposal.seats}
        return frozenset(nominated | {(Action.PREEMPT, move.pod) for move in proposal.moves})
    if proposal.releases:
        return frozenset((Action.DRAIN, release.node) for release in proposal.releases)
    return frozenset({(Action.SUGGEST, CLUSTER), (Action.REARRANGE, CLUSTER)})


def without(plan: Plan, held: Collection[str], rejected: Collection[str], snapshot: ClusterSnapshot) -> Plan:
    """The plan without the questions of these ids; a rearrangement that was rejected is cancelled."""
    out = {*held, *rejected}
    questions = [(proposal, question_of(proposal, snapshot)) for proposal in plan.proposals]
    kept = tuple(proposal for proposal, question in questions if question is None or question.id not in out)
    memory, carry, carried = plan.memory, plan.carry, _carried(plan, snapshot)
    if any(question.kind is QuestionKind.REPLACE and question.id in out for _, question in questions if question):
        # It is proposed again: it has not been done.
        memory = msgspec.structs.replace(memory, consolidated_at=snapshot.memory.consolidated_at)
    if plan.instead_of_buying is not None and plan.instead_of_buying not in kept:  # nor has that cost anything
        memory = msgspec.structs.replace(memory, room_made=snapshot.memory.room_made)
    if carried is not None and carried.id in held:
        carry = msgspec.structs.replace(carry, steps=())
    elif carried is not None and carried.id in rejected:
        carry = Carrying(cancel=OutcomeReason.REJECTED, message="it was not approved")
    return msgspec.structs.replace(plan, proposals=kept, carry=carry, memory=memory)


def _carried(plan: Plan, snapshot: ClusterSnapshot) -> Question | None:
    """The rearrangement under way, before its next steps; what a plan proposed was asked about before it was begun."""
    current = snapshot.rearrangement
    if not plan.carry.steps or current is None or current.is_suggestion or current.why:
        return None
    pods = [Leaving(slot.pod.key, slot.method, slot.node) for slot in current.slots if slot.source is not None]
    pods += [Leaving(victim.key, MigrationMethod.EVICT) for victim in current.victims]
    asked = _question(QuestionKind.REARRANGE, CLUSTER, f"{current.started_at}", pods, 0, "more pods fit then")
    return msgspec.structs.replace(asked, is_under_way=True)


def _nodes(proposal: Proposal) -> str:
    return " ".join(sorted(release.node for release in proposal.releases))


def _leaving(move: Move) -> Leaving:
    return Leaving(move.pod, move.method, move.target or "")


def _names(pods: Iterable[Leaving]) -> str:
    return " ".join(sorted(each.pod for each in pods))


def _on(proposal: Proposal, snapshot: ClusterSnapshot) -> list[Leaving]:
    """The pods that would leave with the nodes: where they go is planned once the machines are there."""
    nodes = {release.node for release in proposal.releases}
    pods = snapshot.cluster.pods
    return [Leaving(pod.key) for pod in pods if pod.node in nodes and pod.is_work]


def _is_approved(proposal: Proposal, snapshot: ClusterSnapshot) -> bool:
    """Whether it is the second half of what was said yes to: its nodes' replacements have been bought.

    As every yes, that one is for no more pods than were told. Where one has come to its node while the replacement
    started, emptying that is asked about like any other.
    """
    ordered = [taken_over_since(release.node, snapshot.claims) for release in proposal.releases]
    bought = [at for at in ordered if at is not None]
    if not proposal.is_second_half or not bought or len(bought) < len(ordered):
        return False
    leaving, agreed_at = {move.uid for move in proposal.moves}, min(bought)
    return not any(pod.uid in leaving and pod.has_come_since(agreed_at) for pod in snapshot.cluster.pods)


def _question(
    kind: QuestionKind, subject: str, known_by: str, pods: Iterable[Leaving], nanos_per_hour: int, why: str
) -> Question:
    # 128 bits: of 32, who names pods finds two names of one id in a tenth of a second, and one yes would be for both
    digest = hashlib.sha256(f"{kind.value}\0{known_by}".encode()).hexdigest()[:32]
    moves = tuple(sorted(pods, key=lambda each: each.pod))
    names = tuple(each.pod for each in moves)
    return Question(f"{kind.value}-{digest}", kind, subject, names, nanos_per_hour, why, moves=moves)
