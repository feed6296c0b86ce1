"""Whether a rearrangement is still valid and still worth it, on the cluster as it is now."""

from __future__ import annotations

from collections.abc import Iterable

from htas.model.edge import Tier
from htas.model.policy import Policy
from htas.model.rearrangement import OpenRearrangement
from htas.model.reasons import Invalid, OutcomeReason
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.cluster.slots import in_order
from htas.planning.disrupt.rearrangement.components import components
from htas.planning.eligibility.disruption_policy import DisruptionKind, DisruptionPolicy

LOST = "somebody else has placed one of its pods elsewhere, or taken it away"


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
        slot = each.held.slot
        if slot.is_aim and each.row is not None and policy.tier_of(nodes[each.row]) is not Tier.EDGE:
            return Invalid(
                OutcomeReason.NODE_CLOSED, f"{slot.node}, which is to take {each.key}, is on the edge no more"
            )
    return None


def _closed(simulated: SimulatedCluster) -> Invalid | None:
    table = simulated.sim.table
    for each in simulated.reservations:
        name = each.held.slot.node
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
    leaving = {each.held.slot.pod.uid for each in simulated.reservations if not each.held.slot.is_away}
    leaving |= {victim.uid for victim in current.victims}
    with sim.fork():
        for pod in snapshot.cluster.pods:
            if pod.node in names and (pod.uid in leaving or pod.is_terminating) and pod.node in rows:
                sim.unplace(simulated.book.class_of(pod), rows[pod.node])
        slots = [each for each in simulated.reservations if not each.is_moving]
        come = {each.key for each in in_order(sim, [each.transfer(rows, has_left=True) for each in slots])}
    left = next((each for each in slots if each.key not in come), None)
    if left is None:
        return None
    slot = left.held.slot
    return Invalid(OutcomeReason.ROOM_TAKEN, f"{slot.node} has no room for {left.held.example.key} any more")


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
                return Invalid(OutcomeReason.PROMISED, terms.why or f"{pod.key} may not be disturbed for that")
    return None
