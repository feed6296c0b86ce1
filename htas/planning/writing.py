"""Writing the plan down: the simulation's placements as binds, nominations and launches, and what all of it costs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeGuard

import msgspec

from htas.model.holds import Hold, HoldReason, hold
from htas.model.launches import Launches
from htas.model.nodes import Node
from htas.model.plan import Bind, Cost, Plan, UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.proposals import Launch
from htas.model.reasons import Unplaced
from htas.model.reservations import Reservation
from htas.model.resources import NOTHING
from htas.model.search_failures import SearchFailure
from htas.model.snapshot import ClusterSnapshot, RoomMade
from htas.planning.cluster.declined import declined_after, told_declined
from htas.planning.cluster.default_requests import lacking_requests
from htas.planning.cluster.feasibility.volumes import reaches
from htas.planning.cluster.initialization import Registered, in_words, still_awaited
from htas.planning.cluster.simulation import Placements, pods_by_row
from htas.planning.costing import cost_of
from htas.planning.disrupt.cleaning.cleaner import ScaleDown
from htas.planning.disrupt.edge.rebalance import EdgeMoves
from htas.planning.disrupt.fallback import Preemptions
from htas.planning.disrupt.making_room.instead import holds, proposal
from htas.planning.disrupt.making_room.thrift import remembered
from htas.planning.disrupt.rearrangement.advance import RearrangementSteps
from htas.planning.place.context import PlanContext
from htas.planning.place.deletion_costs import DeletionCosts
from htas.planning.place.queue import SchedulingQueue
from htas.planning.provision.launch_record import with_launched
from htas.planning.provision.purchase import BoughtMachine
from htas.planning.schedule import Scheduled


def write_plan(
    context: PlanContext,
    scheduled: Scheduled,
    edge_moves: EdgeMoves,
    scale_down: ScaleDown,
    placements: Mapping[int, list[Pod]],
    steps: RearrangementSteps,
) -> Plan:
    """The plan that the stages came to."""
    snapshot, preemptions = context.snapshot, scheduled.preemptions
    bought, placed_at_first = scheduled.scale_up.bought, scheduled.placed_at_first
    costs = DeletionCosts(snapshot, context.policy)
    given = [*_given(context, placements, placed_at_first, bought, costs), *steps.waiting]
    given += [_bind_or_hold(pod, node, snapshot, context.policy, costs) for pod, node in steps.seated]
    given += holds(scheduled.room, context) if scheduled.room is not None else []
    made_room = (proposal(scheduled.room, context),) if scheduled.room is not None else ()
    bind, nominate = _by_kind(given)
    filled = [(item, placements.get(item.row, [])) for item in bought.values()]
    launch = tuple(_launch(item, pods) for item, pods in filled)
    proposals = (*preemptions.proposals, *made_room, *edge_moves.proposals, *scale_down.proposals)
    return Plan(
        taken_at=snapshot.taken_at,
        cost=cost_of(context, launch, proposals),
        bind=bind,
        nominate=nominate,
        launch=launch,
        proposals=proposals,
        optimize=preemptions.optimize,
        carry=steps.carrying,
        unplaced=_unplaced(context, preemptions),
        kept=scale_down.kept,
        lacking=lacking_requests(snapshot.cluster.pods, context.policy.default_requests),
        memory=msgspec.structs.replace(
            scale_down.memory,
            reservations=_reservations(context, bought, placements, given),
            room_made=_room_made(context, scheduled),
            states_costs=tuple(sorted(costs.stating)),
            launches=_launches(context, scheduled, filled, given),
        ),
        failures=tuple(context.searches.failures),
    )


def place_only(context: PlanContext, failures: Sequence[SearchFailure]) -> Plan:
    """A plan that binds pods to nodes that are there and does nothing else: for the cycle in which the rest failed."""
    snapshot, policy = context.snapshot, context.policy
    waiting = [pod for demand in SchedulingQueue(context).place() for pod in demand.youngest(demand.count)]
    placements = pods_by_row(context.simulated.sim.assignments())
    placed = {pod.key for pods in placements.values() for pod in pods}
    bind, nominate = _by_kind(_given(context, placements, placed, (), DeletionCosts(snapshot, policy)))
    missing = dict.fromkeys(defect.step.value for defect in snapshot.defects)
    where = f" while these fail: {', '.join(missing)}" if missing else ""
    why = f"no node has room for it, and nothing is launched{where}: see the log"
    preemptions = Preemptions([UnplacedPod(pod.key, Unplaced.PLANNING_FAILED, why) for pod in waiting])
    return Plan(
        taken_at=snapshot.taken_at,
        cost=Cost(policy.catalogue.currency),
        bind=bind,
        nominate=nominate,
        unplaced=_unplaced(context, preemptions),
        memory=snapshot.memory,
        failures=tuple(failures),
    )


def _launches(
    context: PlanContext,
    scheduled: Scheduled,
    filled: Sequence[tuple[BoughtMachine, Sequence[Pod]]],
    given: Sequence[Bind | Hold],
) -> Launches:
    """What is remembered of launches, and of room that other schedulers do not use."""
    simulated, snapshot, policy = context.simulated, context.snapshot, context.policy
    launched = [(item.claim, item.offer.group.name, item.offer.flavour.name, pods) for item, pods in filled]
    record = with_launched(scheduled.launches.record, launched, context)
    others = [pod for pod in simulated.waiting if pod.scheduler != policy.scheduler_name]
    with_room = {each.pod for each in given if isinstance(each, Hold) and each.reason is HoldReason.OTHER_SCHEDULER}
    waiting = (*others, *simulated.declined)
    declined = declined_after(waiting, with_room, snapshot, policy, context.now)
    return msgspec.structs.replace(record, declined=declined)


def _room_made(context: PlanContext, scheduled: Scheduled) -> dict[str, RoomMade]:
    """What moves made instead of purchases have cost and saved, by the node they left."""
    before = context.snapshot.memory.room_made
    news = scheduled.room.remembered if scheduled.room is not None else {}
    if not before and not news:
        return {}
    nodes = [node.name for node in context.snapshot.cluster.nodes]
    return remembered(before, news, nodes, context.now, buys=bool(scheduled.scale_up.bought))


def _unplaced(context: PlanContext, preemptions: Preemptions) -> tuple[UnplacedPod, ...]:
    simulated = context.simulated
    surplus = "its controller has all the pods it wants, and will delete it"
    nominees = [each.pod for each in simulated.sim.nominees if each.pod.key not in preemptions.nominated]
    unplaced = [
        *preemptions.unplaced,
        *(UnplacedPod(p.key, Unplaced.SCHEDULING_GATED, f"has gates: {', '.join(p.gates)}") for p in simulated.gated),
        *told_declined(simulated.declined, context.snapshot, context.policy),
        *(UnplacedPod(p.key, Unplaced.SURPLUS, surplus) for p in simulated.surplus),
        *(
            UnplacedPod(p.key, Unplaced.SEARCH_UNDER_WAY, "the optimiser is searching for it")
            for p in simulated.withheld
        ),
        *(UnplacedPod(p.key, Unplaced.NOMINATED, f"nominated to {p.nominated_node}") for p in nominees),
    ]
    return tuple(sorted(unplaced, key=lambda unplaced: unplaced.pod))


def _reservations(
    context: PlanContext, bought: Collection[int], placements: Placements, given: Sequence[Bind | Hold]
) -> dict[str, Reservation]:
    """Pods of ours with room on a machine to come, by pod; the row of a machine to come bears its claim as its name.

    A pod that cannot be bound yet to its machine that is Ready keeps its reservation, as after a bind that failed.
    """
    simulated, names = context.simulated, context.simulated.sim.table.nodes
    coming = [row for row in placements if row in bought or names[row].name in simulated.coming]
    reserved = {pod.key: names[row].claim or names[row].name for row in coming for pod in placements[row]}
    before = context.snapshot.memory.reservations
    if before:
        claims = {node.name: node.claim for node in names}
        held = {each.pod: claims.get(each.node) for each in given if isinstance(each, Hold)}
        reserved |= {pod: claim for pod, claim in held.items() if claim and _is_same(before.get(pod), claim)}
    return {
        pod: known if _is_same(known := before.get(pod), claim) else Reservation(claim, context.now)
        for pod, claim in reserved.items()
    }


def _is_same(known: Reservation | None, claim: str) -> TypeGuard[Reservation]:
    return known is not None and known.claim == claim


def _by_kind(given: Sequence[Bind | Hold]) -> tuple[tuple[Bind, ...], tuple[Hold, ...]]:
    """The binds and the holds, each by node."""
    ordered = sorted(given, key=_by_node)
    binds = tuple(each for each in ordered if isinstance(each, Bind))
    return binds, tuple(each for each in ordered if isinstance(each, Hold))


def _by_node(given: Bind | Hold) -> tuple[str, str]:
    return given.node, given.pod


def _given(
    context: PlanContext,
    placements: Placements,
    placed_at_first: Collection[str],
    bought: Collection[int],
    costs: DeletionCosts,
) -> list[Bind | Hold]:
    """What becomes of each pod that was given room."""
    simulated = context.simulated
    given: list[Bind | Hold] = []
    nodes: list[Node] = simulated.sim.table.nodes
    registered = _registered(context)
    for row, pods in placements.items():
        if row in bought:
            continue
        name = nodes[row].name
        if name in simulated.coming:
            given += _on_machine_coming(context, row, pods, registered.get(name), placed_at_first, costs)
            continue
        for pod in pods:
            if pod.key not in placed_at_first:
                given.append(hold(pod.key, name, HoldReason.LAUNCH_FIRST))
            elif name in simulated.awaited and _awaits_driver(context, pod, name):
                given.append(hold(pod.key, name, HoldReason.DRIVER_COMING))
            else:
                given.append(_bind_or_hold(pod, name, context.snapshot, context.policy, costs))
    return given


def _registered(context: PlanContext) -> dict[str, tuple[Node, tuple[str, ...]]]:
    """Ready nodes behind rows that are coming, as they are now, and what each lacks, by row."""
    policy, learned = context.policy, context.snapshot.learned
    claims = {claim.id: claim for claim in context.snapshot.claims if claim.is_coming}
    nodes = context.snapshot.cluster.nodes if claims else ()
    found = {name: (late.node, late.awaited) for name, late in context.simulated.starting.items()}
    for node in nodes:
        if node.is_ready and node.claim in claims:
            found[node.claim] = node, still_awaited(claims[node.claim], node, policy, learned)
    return found


def _on_machine_coming(
    context: PlanContext,
    row: int,
    pods: Sequence[Pod],
    registered: tuple[Node, tuple[str, ...]] | None,
    placed_at_first: Collection[str],
    costs: DeletionCosts,
) -> list[Bind | Hold]:
    """Pods wait for their machine, but for those that its registered node can run as it is."""
    promised = context.simulated.sim.table.nodes[row]
    node, awaited = registered if registered is not None else (promised, ())
    if not awaited:
        return [hold(pod.key, promised.name, HoldReason.MACHINE_STARTING) for pod in pods]
    running = context.simulated.running.get(row, ())
    now = Registered(node, promised, sum((pod.requests for pod in running), NOTHING))
    why = f"its machine is {in_words(awaited)}"
    return [
        _bind_or_hold(pod, node.name, context.snapshot, context.policy, costs)
        if pod.key in placed_at_first and now.take(pod)
        else Hold(pod.key, promised.name, HoldReason.MACHINE_STARTING, why)
        for pod in pods
    ]


def _bind_or_hold(pod: Pod, node: str, snapshot: ClusterSnapshot, policy: Policy, costs: DeletionCosts) -> Bind | Hold:
    """What becomes of a pod that may have its node now: it is bound, unless that failed a moment ago or is another's
    to do."""
    if snapshot.held_back.get(pod.key, 0.0) > snapshot.taken_at:
        return hold(pod.key, node, HoldReason.BIND_FAILED)
    if pod.scheduler != policy.scheduler_name:
        return hold(pod.key, node, HoldReason.OTHER_SCHEDULER, f" {pod.scheduler}")
    return Bind(pod.key, node, costs.of(pod, node))


def _awaits_driver(context: PlanContext, pod: Pod, node: str) -> bool:
    """Whether a pod fits a node of `awaited` only because of a label that its volumes' driver is still to give it."""
    awaited = context.simulated.awaited[node]
    asked = reaches(context.simulated.sim.filter_context.volumes, pod.namespace, pod.constraints.claims)
    return any(each.key in awaited for reach in asked for term in reach.terms for each in term.expressions)


def _launch(item: BoughtMachine, pods: Sequence[Pod]) -> Launch:
    offer = item.offer
    why = "" if pods else f"for work expected soon, or to bring group {offer.group.name} to its minimum size"
    return Launch(
        claim=item.claim,
        group=offer.group.name,
        flavour=offer.flavour.name,
        zone=offer.zone,
        nanos_per_hour=offer.price,
        pods=tuple(sorted(pod.key for pod in pods)),
        why=why,
    )
