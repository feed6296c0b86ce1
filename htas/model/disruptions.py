"""Disruptions: what a plan would do to pods that run, as the things that somebody approves or rejects as a whole."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator
from enum import StrEnum

import msgspec

from htas.model.money import price_text
from htas.model.moves import Move
from htas.model.outcomes import CLUSTER
from htas.model.plan import Carrying, Launch, Plan, Removing
from htas.model.reasons import OutcomeReason, Removal
from htas.model.snapshot import ClusterSnapshot


class DisruptionKind(StrEnum):
    DRAIN = "drain"
    """A node is emptied of pods, and returned."""
    REPLACE = "replace"
    """Cheaper machines are bought for the pods of others, which are emptied then."""
    PREEMPT = "preempt"
    """Pods of lower priority leave for one that waits."""
    REARRANGE = "rearrange"
    """Pods leave their nodes so that more work has room, as the optimiser found."""
    SUGGEST = "suggest"
    """Pods are moved nearer to their users."""


class Disruption(msgspec.Struct, frozen=True):
    """`id` is the same for as long as the same is proposed: made of its kind and what it is done to, not of how."""

    id: str
    kind: DisruptionKind
    subject: str
    pods: tuple[str, ...]
    nanos_per_hour: int = 0
    why: str = ""

    def told(self, currency: str) -> str:
        """`drain m1-a: 3 pods leave; underutilized, saves 0.10 USD/h`."""
        saves = f", saves {price_text(self.nanos_per_hour)} {currency}/h" if self.nanos_per_hour > 0 else ""
        leave = f"{len(self.pods)} pod{'s leave' if len(self.pods) != 1 else ' leaves'}" if self.pods else ""
        return f"{self.kind.value} {self.subject}: " + "; ".join(filter(None, (leave, self.why))) + saves


class ApprovalState(StrEnum):
    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"


class Asked(msgspec.Struct, frozen=True):
    """A disruption that was proposed, and what was said about it. `who` is empty while it waits."""

    disruption: Disruption
    state: ApprovalState
    proposed_at: float
    proposed_last: float
    said_at: float | None = None
    who: str = ""


def disruptions_of(plan: Plan, snapshot: ClusterSnapshot) -> list[Disruption]:
    """What of a plan disturbs somebody. Emptying a node without pods does not, nor what was approved and goes on:
    nodes whose replacements have been bought already.
    """
    return [*_drains(plan, snapshot), *_replacements(plan), *_preemptions(plan), *_carried(plan, snapshot)]


def without(plan: Plan, held: Collection[str], rejected: Collection[str], snapshot: ClusterSnapshot) -> Plan:
    """The plan without the disruptions of these ids; a rearrangement that was rejected is cancelled."""
    out = {each.id: each for each in disruptions_of(plan, snapshot) if each.id in held or each.id in rejected}
    if not out:
        return plan
    of_kind: dict[DisruptionKind, set[str]] = defaultdict(set)
    for each in out.values():
        of_kind[each.kind].add(each.subject)
    drained = of_kind[DisruptionKind.DRAIN]
    carry = plan.carry
    if of_kind[DisruptionKind.SUGGEST]:
        carry = msgspec.structs.replace(carry, suggest=())
    if of_kind[DisruptionKind.REARRANGE]:
        carry = msgspec.structs.replace(carry, steps=())
        if any(each.kind is DisruptionKind.REARRANGE and each.id in rejected for each in out.values()):
            carry = Carrying(cancel=OutcomeReason.REJECTED, message="it was not approved")
    replaced = of_kind[DisruptionKind.REPLACE]
    memory = plan.memory
    if replaced:  # it is proposed again: it has not been done
        memory = msgspec.structs.replace(memory, consolidated_at=snapshot.memory.consolidated_at)
    return msgspec.structs.replace(
        plan,
        remove=tuple(item for item in plan.remove if item.node not in drained),
        migrate=tuple(move for move in plan.migrate if move.source not in drained),
        launch=tuple(item for item in plan.launch if not item.replaces or _replaced(item) not in replaced),
        preempt=tuple(move for move in plan.preempt if move.beneficiary not in of_kind[DisruptionKind.PREEMPT]),
        carry=carry,
        memory=memory,
    )


def _drains(plan: Plan, snapshot: ClusterSnapshot) -> Iterator[Disruption]:
    leaving: dict[str, list[str]] = defaultdict(list)
    for move in plan.migrate:
        leaving[move.source].append(move.pod)
    bought_for = {node for claim in snapshot.claims for node in claim.replaces}
    for item in plan.remove:
        is_approved = item.reason is Removal.CONSOLIDATED and item.node in bought_for
        if leaving[item.node] and not is_approved:
            yield _drain(item, leaving[item.node])


def _drain(item: Removing, pods: list[str]) -> Disruption:
    why = item.message or item.reason.value
    return _disruption(DisruptionKind.DRAIN, item.node, item.claim, pods, item.savings_nanos_per_hour, why)


def _replacements(plan: Plan) -> Iterator[Disruption]:
    bought: dict[str, list[Launch]] = defaultdict(list)
    for launch in plan.launch:
        if launch.replaces:
            bought[_replaced(launch)].append(launch)
    for nodes, launches in bought.items():
        pods = [pod for launch in launches for pod in launch.pods]
        what = f"by {', '.join(sorted(launch.flavour for launch in launches))}"
        yield _disruption(DisruptionKind.REPLACE, nodes, nodes, pods, 0, what)


def _replaced(launch: Launch) -> str:
    return " ".join(sorted(launch.replaces))


def _preemptions(plan: Plan) -> Iterator[Disruption]:
    victims: dict[str, list[Move]] = defaultdict(list)
    for move in plan.preempt:
        victims[move.beneficiary].append(move)
    for beneficiary, moves in victims.items():
        pods = [move.pod for move in moves]
        yield _disruption(DisruptionKind.PREEMPT, beneficiary, beneficiary, pods, 0, f"on {moves[0].source}")


def _carried(plan: Plan, snapshot: ClusterSnapshot) -> Iterator[Disruption]:
    current = snapshot.rearrangement
    if plan.carry.steps and current is not None and not current.is_suggestion:
        pods = [slot.pod.key for slot in current.slots if slot.source is not None]
        pods += [victim.key for victim in current.victims]
        since = f"{current.started_at}"
        yield _disruption(DisruptionKind.REARRANGE, CLUSTER, since, pods, 0, "more work has room then")
    if plan.carry.suggest:
        pods = [move.pod for move in plan.carry.suggest]
        yield _disruption(DisruptionKind.SUGGEST, CLUSTER, " ".join(sorted(pods)), pods, 0, "nearer to their users")


def _disruption(
    kind: DisruptionKind, subject: str, known_by: str, pods: list[str], nanos_per_hour: int, why: str
) -> Disruption:
    digest = hashlib.sha256(f"{kind.value}\0{known_by}".encode()).hexdigest()[:8]
    return Disruption(f"{kind.value}-{digest}", kind, subject, tuple(sorted(pods)), nanos_per_hour, why)
