"""Whether a rearrangement is valid and worth it on the cluster as it is: before it is journalled, and at each step.

It is worth it by parts: pods that leave a node make room for those that come to it, and nobody leaves for a part that
gains nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from htas.model.edge import Tier
from htas.model.moves import Move, MoveReason
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.proposals import Proposal
from htas.model.rearrangement import NOBODY, OpenRearrangement, Slot
from htas.model.reasons import Invalid, OutcomeReason, ProposalReason
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulated import SimulatedCluster, open_simulation
from htas.planning.cluster.slots import Reservation, identity, in_order
from htas.planning.cluster.whereabouts import is_pending, node_of
from htas.planning.eligibility.disruption_policy import DisruptionKind, DisruptionPolicy

LOST = "another party has bound or deleted one of its pods"


def open_rearrangement(
    found: Proposal, snapshot: ClusterSnapshot, policy: Policy, now: float
) -> OpenRearrangement | Invalid:
    """What is proposed, as it is to be journalled, if it is valid and better on this snapshot still; else why not.

    Pods that have left their nodes meanwhile need no move: their room is free, or about to be.
    """
    is_suggestion = found.reason is ProposalReason.NEARER_TO_USERS
    pods = {pod.uid: pod for pod in snapshot.cluster.pods}
    moves = [move for move in found.moves if _still_runs(pods.get(move.uid), move.source)]
    seats = [Slot(pods[each.uid], each.node) for each in found.seats if _still_waits(pods.get(each.uid), snapshot)]
    if is_suggestion and len(moves) < len(found.moves):
        return Invalid(OutcomeReason.CONTRADICTED, "one of the pods that were to move has left its node")
    if not seats and not is_suggestion:
        return Invalid(OutcomeReason.NOTHING_GAINED, "none of the pods that it was made for is pending any more")
    slots = (*seats, *(_slot(move, pods[move.uid], move.target) for move in moves if move.target is not None))
    opened = OpenRearrangement(
        started_at=now,
        priority=max((slot.pod.priority for slot in seats), default=NOBODY),
        slots=slots,
        victims=tuple(pods[move.uid] for move in moves if move.target is None),
        settled=_settled(slots, pods),
        is_suggestion=is_suggestion,
        why=found.message,
    )
    return _refused(opened, snapshot, policy, now) or opened


def after_detour(
    current: OpenRearrangement, targets: Mapping[str, str | None], pods: Iterable[Pod]
) -> OpenRearrangement:
    """The rearrangement with other nodes for the slots of some pods (by uid)."""
    slots = tuple(msgspec.structs.replace(slot, node=targets.get(slot.pod.uid) or slot.node) for slot in current.slots)
    settled = set(_settled(slots, {pod.uid: pod for pod in pods}))
    return msgspec.structs.replace(current, slots=slots, settled=tuple(sorted(settled.union(current.settled))))


def _refused(opened: OpenRearrangement, snapshot: ClusterSnapshot, policy: Policy, now: float) -> Invalid | None:
    snapshot = msgspec.structs.replace(snapshot, rearrangement=opened)
    simulated = open_simulation(snapshot, policy, now)
    for each in simulated.reservations:
        each.lift(simulated.sim)
    why = refusal(simulated, opened, snapshot, policy, now)
    if why is not None:
        return why
    leaving = [(slot.pod.uid, slot.node) for slot in opened.slots if slot.source is not None]
    return forbidden(
        [*leaving, *((victim.uid, None) for victim in opened.victims)], opened.priority, snapshot, policy, now
    )


def _slot(move: Move, pod: Pod, node: str) -> Slot:
    return Slot(pod, node, move.source, move.method, is_aim=move.reason is MoveReason.NEARER_TO_USERS)


def _still_runs(pod: Pod | None, source: str) -> bool:
    return pod is not None and pod.node == source and not pod.is_terminating


def _still_waits(pod: Pod | None, snapshot: ClusterSnapshot) -> bool:
    return pod is not None and is_pending(pod, node_of(pod, snapshot)) and not pod.nominated_node


def _settled(slots: Iterable[Slot], pods: Mapping[str, Pod]) -> tuple[str, ...]:
    """Pods on the slots' nodes that look like those to come, and stay."""
    own = {slot.pod.uid for slot in slots}
    wanted = {(identity(slot.pod), slot.node) for slot in slots}
    nodes = {slot.node for slot in slots}
    found = (pod for uid, pod in pods.items() if pod.node in nodes and uid not in own)
    return tuple(sorted(pod.uid for pod in found if (identity(pod), pod.node) in wanted))


def refusal(
    simulated: SimulatedCluster, current: OpenRearrangement, snapshot: ClusterSnapshot, policy: Policy, now: float
) -> Invalid | None:
    """What makes a rearrangement wrong now; None: nothing. Its reservations have been lifted from the simulation."""
    if current.lost:
        return Invalid(OutcomeReason.CONTRADICTED, LOST)
    if now - current.started_at >= policy.timeouts.drain_s:
        return _too_late(current, snapshot, policy)
    return (
        _closed(simulated)
        or _no_longer_near(current, simulated, policy)
        or _nothing_gained(simulated, current)
        or _taken(simulated, current, snapshot)
    )


def _too_late(current: OpenRearrangement, snapshot: ClusterSnapshot, policy: Policy) -> Invalid:
    patience_s = policy.timeouts.drain_s
    starting = [pod for pod in snapshot.cluster.pods if pod.uid in current.starting]
    if not starting:
        return Invalid(OutcomeReason.TIMED_OUT, f"not complete after {patience_s:g} s")
    where = ", ".join(sorted(f"{pod.key} on {pod.node}" for pod in starting))
    return Invalid(OutcomeReason.NOT_READY, f"after {patience_s:g} s not Ready: {where}")


def _no_longer_near(current: OpenRearrangement, simulated: SimulatedCluster, policy: Policy) -> Invalid | None:
    """A node may have been given another tier meanwhile: then its pods would be moved for nothing."""
    nodes = simulated.sim.table.nodes
    for each in simulated.reservations:
        slot = each.slot
        if slot.is_aim and each.row is not None and policy.tier_of(nodes[each.row]) is not Tier.EDGE:
            return Invalid(
                OutcomeReason.NODE_CLOSED, f"{slot.node}, which is to take {each.key}, is on the edge no more"
            )
    return None


def _closed(simulated: SimulatedCluster) -> Invalid | None:
    table = simulated.sim.table
    for each in simulated.reservations:
        name = each.slot.node
        if each.row is None or not table.is_open[each.row] or table.nodes[each.row].is_unschedulable:
            return Invalid(
                OutcomeReason.NODE_CLOSED, f"{name}, which is to take {each.key}, is gone, closed or not Ready"
            )
    return None


def _nothing_gained(simulated: SimulatedCluster, current: OpenRearrangement) -> Invalid | None:
    parts = components(current, simulated.reservations)
    if any(part.disturbs for part in parts) and not any(part.gains for part in parts):
        return Invalid(OutcomeReason.NOTHING_GAINED, "the work it was made for is gone or placed")
    return None


def _taken(simulated: SimulatedCluster, current: OpenRearrangement, snapshot: ClusterSnapshot) -> Invalid | None:
    """Whether everything would fit once all who leave have left, by every rule of feasibility."""
    sim, rows = simulated.sim, simulated.sim.table.row_of
    names = current.nodes
    leaving = {each.slot.pod.uid for each in simulated.reservations if not each.slot.is_away}
    leaving |= {victim.uid for victim in current.victims}
    with sim.fork():
        for pod in snapshot.cluster.pods:
            if pod.node in names and (pod.uid in leaving or pod.is_terminating) and pod.node in rows:
                sim.unplace(simulated.book.class_of(pod), rows[pod.node])
        slots = [each for each in simulated.reservations if not each.is_moving]
        come = {each.pod.key for each in in_order(sim, [each.transfer(rows, has_left=True) for each in slots])}
    left = next((each for each in slots if each.key not in come), None)
    if left is None:
        return None
    slot = left.slot
    return Invalid(OutcomeReason.ROOM_TAKEN, f"{slot.node} has no room for {left.example.key} any more")


def forbidden(
    leaving: Iterable[tuple[str, str | None]],
    priority: int,
    snapshot: ClusterSnapshot,
    policy: Policy,
    now: float,
) -> Invalid | None:
    """A promise that forbids disturbing one of the pods (uid and target) for work of a priority; None: none does."""
    wanted = dict(leaving)
    if not wanted:
        return None
    disturbing = DisruptionPolicy(snapshot.cluster, policy, now)
    for pod in snapshot.cluster.pods:
        if pod.uid in wanted and not pod.is_terminating:
            target = wanted[pod.uid]
            terms = disturbing.terms(pod, DisruptionKind.MOVE if target is not None else DisruptionKind.EVICT, target)
            if not terms.allow(pod, priority):
                return Invalid(OutcomeReason.PROTECTED, terms.why or f"{pod.key} may not be disrupted for that")
    return None


@dataclass(frozen=True, slots=True)
class Component:
    """Nodes between which pods go, directly or over others.

    `gains`: more is placed when it is done than now, priority by priority from the highest; or a move that a suggestion
    is made for is still to come. `disturbs`: pods are still to leave their nodes for it.
    """

    nodes: frozenset[str]
    gains: bool
    disturbs: bool


def components(current: OpenRearrangement, reservations: Sequence[Reservation]) -> list[Component]:
    """The components, in the order of their nodes' names."""
    slots = [each.slot for each in reservations]
    groups = _joined(
        [
            *([node for node in (slot.source, slot.node) if node is not None] for slot in slots),
            *([victim.node] for victim in current.victims if victim.node is not None),
        ]
    )
    found = []
    for nodes in groups:
        placed: Counter[int] = Counter()
        for each in reservations:
            placed[each.slot.pod.priority] += each.slot.node in nodes and _is_awaited(each)
        placed.subtract(victim.priority for victim in current.victims if victim.node in nodes)
        disturbs = any(victim.node in nodes for victim in current.victims) or any(
            not slot.is_away and slot.node in nodes for slot in slots
        )
        is_aimed_at = any(slot.is_aim and slot.node in nodes for slot in slots)
        found.append(Component(nodes, is_aimed_at or _is_gain(placed), disturbs))
    return found


def _is_awaited(each: Reservation) -> bool:
    """Whether somebody is placed when the slot is filled; of a pod that was moved its owner makes another."""
    slot = each.slot
    return slot.is_away and (each.pod is not None or slot.source is not None)


def _is_gain(placed: Counter[int]) -> bool:
    return next((placed[priority] > 0 for priority in sorted(placed, reverse=True) if placed[priority]), False)


def _joined(edges: Iterable[Sequence[str]]) -> list[frozenset[str]]:
    """Sets of names that edges connect."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        leader.setdefault(name, name)
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for edge in edges:
        for name in edge:
            leader[find(name)] = find(edge[0])
    groups: dict[str, set[str]] = {}
    for name in leader:
        groups.setdefault(find(name), set()).add(name)
    return sorted((frozenset(group) for group in groups.values()), key=min)
