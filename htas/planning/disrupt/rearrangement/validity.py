"""Whether a rearrangement is still valid and still worth it, on the cluster as it is now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from htas.model.edge import Tier
from htas.model.policy import Policy
from htas.model.rearrangement import OpenRearrangement
from htas.model.reasons import Cancelled
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.holds.reservations import Reservation
from htas.planning.cluster.opening import Opening
from htas.planning.disrupt.rearrangement.components import components
from htas.planning.eligibility.disturbing import Disturbance, Disturbing

LOST = "somebody else has placed one of its pods elsewhere, or taken it away"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a rearrangement is not begun, or not gone on with."""

    reason: Cancelled
    message: str


def refusal(
    opening: Opening, current: OpenRearrangement, snapshot: ClusterSnapshot, policy: Policy, now: float
) -> Refusal | None:
    """What makes a rearrangement wrong now; None: nothing. Its reservations have been lifted from the simulation."""
    if current.lost:
        return Refusal(Cancelled.CONTRADICTED, LOST)
    if now - current.started_at >= policy.timeouts.drain_s:
        return _too_late(current, snapshot, policy)
    return (
        _closed(opening)
        or _no_longer_near(current, opening, policy)
        or _nothing_gained(opening, current)
        or _taken(opening, current, snapshot)
    )


def _too_late(current: OpenRearrangement, snapshot: ClusterSnapshot, policy: Policy) -> Refusal:
    patience_s = policy.timeouts.drain_s
    starting = [pod for pod in snapshot.cluster.pods if pod.uid in current.starting]
    if not starting:
        return Refusal(Cancelled.TIMED_OUT, f"not complete after {patience_s:g} s")
    where = ", ".join(sorted(f"{pod.key} on {pod.node}" for pod in starting))
    return Refusal(Cancelled.NOT_READY, f"after {patience_s:g} s not Ready: {where}")


def _no_longer_near(current: OpenRearrangement, opening: Opening, policy: Policy) -> Refusal | None:
    """A node may have been given another tier meanwhile: then its pods would be moved for nothing."""
    nodes = opening.sim.table.nodes
    for each in opening.reservations:
        slot = each.held.slot
        if slot.is_aim and each.row is not None and policy.tier_of(nodes[each.row]) is not Tier.EDGE:
            return Refusal(Cancelled.NODE_CLOSED, f"{slot.node}, which is to take {each.key}, is on the edge no more")
    return None


def _closed(opening: Opening) -> Refusal | None:
    table = opening.sim.table
    for each in opening.reservations:
        name = each.held.slot.node
        if each.row is None or not table.is_open[each.row] or table.nodes[each.row].is_unschedulable:
            return Refusal(Cancelled.NODE_CLOSED, f"{name}, which is to take {each.key}, is gone, closed or not Ready")
    return None


def _nothing_gained(opening: Opening, current: OpenRearrangement) -> Refusal | None:
    parts = components(current, opening.reservations)
    if any(part.disturbs for part in parts) and not any(part.gains for part in parts):
        return Refusal(Cancelled.NOTHING_GAINED, "the work it was made for is gone or placed")
    return None


def _taken(opening: Opening, current: OpenRearrangement, snapshot: ClusterSnapshot) -> Refusal | None:
    """Whether everything would fit once all who leave have left, by every rule of feasibility."""
    sim, rows = opening.sim, opening.sim.table.row_of
    names = current.nodes
    leaving = {each.held.slot.pod.uid for each in opening.reservations if not each.held.slot.is_away}
    leaving |= {victim.pod.uid for victim in current.victims}
    with sim.fork():
        for pod in snapshot.cluster.pods:
            if pod.node in names and (pod.uid in leaving or pod.is_terminating) and pod.node in rows:
                sim.unplace(opening.book.class_of(pod), rows[pod.node])
        left = _without_room(opening, [each for each in opening.reservations if not each.is_moving])
    if left is None:
        return None
    slot = left.held.slot
    return Refusal(Cancelled.ROOM_TAKEN, f"{slot.node} has no room for {left.held.example.key} any more")


def _without_room(opening: Opening, reservations: Iterable[Reservation]) -> Reservation | None:
    """A slot that finds no room. Round by round: by affinity, say, one pod may need another one to be there first."""
    left = list(reservations)
    while left:
        placed = []
        for each in left:
            if each.fits(opening.sim):
                each.keep(opening.sim)
                placed.append(each)
        if not placed:
            return left[0]
        left = [each for each in left if each not in placed]
    return None


def forbidden(
    leaving: Iterable[tuple[str, str | None]],
    priority: int,
    snapshot: ClusterSnapshot,
    policy: Policy,
    now: float,
) -> Refusal | None:
    """A promise that forbids disturbing one of the pods (uid and target) for work of a priority; None: none does."""
    wanted = dict(leaving)
    if not wanted:
        return None
    disturbing = Disturbing(snapshot.cluster, policy, now)
    for pod in snapshot.cluster.pods:
        if pod.uid in wanted and not pod.is_terminating:
            target = wanted[pod.uid]
            terms = disturbing.terms(pod, Disturbance.MOVE if target is not None else Disturbance.EVICT, target)
            if not terms.allow(pod, priority):
                return Refusal(Cancelled.PROMISED, terms.why or f"{pod.key} may not be disturbed for that")
    return None
