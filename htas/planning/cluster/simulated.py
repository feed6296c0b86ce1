"""Opening a simulation on a snapshot: rows for nodes and machines on their way, pods counted or found waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import msgspec
import numpy as np

from htas.model.claims import ClaimState
from htas.model.holds import HoldReason
from htas.model.moves import MigrationMethod
from htas.model.nodes import Node
from htas.model.pods import Pod, WorkKind
from htas.model.policy import NewPods, Policy
from htas.model.rearrangement import OpenRearrangement
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster import daemon_sets
from htas.planning.cluster.attaching import Attaching
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import Ints, PodClass, ResourceAxis
from htas.planning.cluster.counts import TopologyCounts
from htas.planning.cluster.declined import have_declined
from htas.planning.cluster.feasibility.filter_context import FilterContext, VolumeIndex
from htas.planning.cluster.initialization import Starting, as_registered, still_starting
from htas.planning.cluster.lending import lent_nodes
from htas.planning.cluster.machines import learned_allocatable, machine_node
from htas.planning.cluster.namespace_cap import NamespaceCap, limits_in_reach
from htas.planning.cluster.outgoing import Grounds, Outgoing, outgoing_nodes
from htas.planning.cluster.owners import OwnersApart
from htas.planning.cluster.pools import Pool, in_pools
from htas.planning.cluster.run_length import remaining_s
from htas.planning.cluster.simulation import KeptRoom, Simulation
from htas.planning.cluster.slots import Reservation, reserve, standing
from htas.planning.cluster.table import NodeTable
from htas.planning.cluster.taking_over import kept_for_urgent
from htas.planning.cluster.unhealthy import ailing_nodes
from htas.planning.cluster.whereabouts import is_pending, moves_under_way, node_of


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """A simulation of the present, and who is in it."""

    sim: Simulation
    book: ClassBook
    pools: tuple[Pool, ...]
    """Rows in order of preference: what is there before what is on its way."""
    running: dict[int, list[Pod]]
    """Pods by the row they run on (or are being bound or moved to)."""
    waiting: tuple[Pod, ...]
    gated: tuple[Pod, ...]
    nominated: tuple[Pod, ...]
    surplus: tuple[Pod, ...]
    """Waiting pods that their controllers will delete."""
    coming: frozenset[str]
    """Names of rows that are machines on their way, or nodes that are still starting."""
    awaited: Mapping[str, Mapping[str, str]]
    """Labels by node that CSI drivers will give it once they have registered; its row has them already."""
    withheld: tuple[Pod, ...] = ()
    """Pods of ours that wait for what the optimiser finds."""
    rearrangement: OpenRearrangement | None = None
    """The one under way, as far as it has come."""
    reservations: tuple[Reservation, ...] = ()
    """Its open slots. Their room is kept, and pods they are for are not among those to place."""
    shunned: Mapping[str, Outgoing] = field(default_factory=dict)
    """Nodes that are Ready and take no pods, by name, since they are urgently to go."""
    kept_for_urgent: frozenset[str] = frozenset()
    """Names of rows that were bought to take over from these: work that waits does not get their room."""
    starting: Mapping[str, Starting] = field(default_factory=dict)
    """Nodes that no claim stands for as coming and that still wait for a device or a start-up taint, by name."""
    declined: tuple[Pod, ...] = ()
    """Pods of other schedulers for which no room is kept now, since these did not use it."""


def open_simulation(snapshot: ClusterSnapshot, policy: Policy, now: float) -> SimulatedCluster:
    """The simulation of a snapshot, before any decision."""
    rows = _rows(snapshot, policy, now)
    nodes, going = rows.nodes, rows.going
    shunned = {name: why for name, why in going.items() if why.is_urgent}
    stands = standing(snapshot)
    held = stands.held if stands is not None else ()
    to_come = [pod or slot.pod for slot, pod in held]
    pods = (*snapshot.cluster.pods, *to_come, *(snapshot.cluster.daemons or ()))
    offered = [node.allocatable for node in nodes] + [flavour.capacity for flavour in policy.catalogue.flavours]
    axis = ResourceAxis(_extended((*offered, *snapshot.learned.values())), _extended(pod.requests for pod in pods))
    table = NodeTable(axis, nodes)
    counts = TopologyCounts(_namespaces(snapshot))
    for pod in pods:
        counts.register(pod)
    counts.grow(table.free.shape[1])
    lent = {name: price for name, price in lent_nodes(snapshot, policy, now).items() if name not in going}
    limits = limits_in_reach(snapshot, policy)
    cap = NamespaceCap(limits, table, snapshot, policy) if limits else None
    world = FilterContext(table, counts, VolumeIndex(snapshot.cluster.volumes), policy, lent, cap)
    book = ClassBook(policy, axis, counts, OwnersApart(snapshot, policy), limits)
    sim = Simulation(world, now, defaults=book.defaults)
    sim.daemons = tuple(daemon_sets.are_on_each_node(sim, book, snapshot.cluster))
    _close_rows(sim, snapshot, rows.of_claims, shunned)
    placed, waiting, gated, nominated = _sort_pods(snapshot, policy, table, {pod.uid for pod in to_come})
    full = _full_controllers(pods)
    surplus = tuple(pod for pod in waiting if pod.owner is not None and pod.owner.uid in full)
    waiting = tuple(pod for pod in waiting if pod not in surplus) if surplus else waiting
    running = _count_running(sim, book, snapshot, policy, placed, now)
    daemon_sets.count_to_come(sim, nodes, rows.coming, running)
    if cap is not None:
        cap.settle()
    reservations = reserve(sim, book, snapshot, held)
    sim.log.clear()
    withheld, declined = _withheld(waiting, snapshot, policy), have_declined(waiting, snapshot, policy, now)
    if withheld or declined:
        theirs = {pod.uid for pod in (*withheld, *declined)}
        waiting = tuple(pod for pod in waiting if pod.uid not in theirs)
    return SimulatedCluster(
        sim,
        book,
        rows.pools,
        running,
        waiting,
        gated,
        nominated,
        surplus,
        rows.coming,
        rows.awaited,
        withheld,
        stands.rearrangement if stands is not None else None,
        reservations,
        shunned,
        kept_for_urgent(snapshot, policy, now, shunned),
        rows.starting,
        declined,
    )


def _withheld(waiting: Sequence[Pod], snapshot: ClusterSnapshot, policy: Policy) -> tuple[Pod, ...]:
    """Pods of ours that are not placed while the optimiser searches, where that is configured."""
    is_searching = snapshot.search.is_under_way and snapshot.rearrangement is None
    if not is_searching or policy.fallback.new_pods is not NewPods.WAIT:
        return ()
    return tuple(pod for pod in waiting if pod.scheduler == policy.scheduler_name)


def _full_controllers(pods: Iterable[Pod]) -> set[str]:
    """Uids of controllers with a moved pod that have as many pods as they want.

    A daemon that dies between taking a pod from its Job and giving it the twin leaves the Job a second to make another,
    which it deletes once it sees the twin: a machine bought for that one would be bought for nothing.
    """
    wanted = {pod.owner.uid: pod.owner.replicas for pod in pods if pod.is_moved and pod.owner is not None}
    if not wanted:  # as nearly always: nothing was moved of late
        return set()
    there = Counter(
        pod.owner.uid
        for pod in pods
        if pod.owner is not None and pod.owner.uid in wanted and pod.node is not None and not pod.is_terminating
    )
    return {uid for uid, most in wanted.items() if most is not None and there[uid] >= most}


def _namespaces(snapshot: ClusterSnapshot) -> dict[str, Mapping[str, str]]:
    """Labels of every namespace; one that only its pods tell of has the label Kubernetes gives to each."""
    names = dict.fromkeys(pod.namespace for pod in snapshot.cluster.pods)
    return {**{name: {"kubernetes.io/metadata.name": name} for name in names}, **snapshot.cluster.namespaces}


@dataclass(frozen=True, slots=True)
class _Rows:
    """Nodes and machines on their way, pool by pool."""

    nodes: list[Node]
    of_claims: Set[str]
    """Names of rows that are claims on their way."""
    starting: Mapping[str, Starting]
    awaited: Mapping[str, Mapping[str, str]]
    """Labels by node that CSI drivers will give it."""
    pools: tuple[Pool, ...]
    going: Mapping[str, Outgoing]
    """Nodes that are to go."""

    @property
    def coming(self) -> frozenset[str]:
        return frozenset(self.of_claims | self.starting.keys())


def _rows(snapshot: ClusterSnapshot, policy: Policy, now: float) -> _Rows:
    """A node of a claim that is not initialized yet counts as the claim, and one that is still starting as it will be,
    with what was promised.
    """
    registered = {node.claim: node for node in snapshot.cluster.nodes if node.claim is not None}
    learned, attaching = learned_allocatable(snapshot, policy.catalogue), Attaching(policy, snapshot)
    coming: list[Node] = []
    for claim in snapshot.claims:
        # Of a flavour that has no price nothing is known before its node registers: until then the order counts.
        flavour = policy.catalogue.named(claim.flavour) or policy.catalogue.named(claim.ordered)
        group = policy.group(claim.group)
        if claim.is_coming and group is not None and flavour is not None:
            room, limits = learned.get(flavour.name), attaching.limits(flavour.name)
            topology = attaching.labels(group, claim.zone, flavour.name)
            node = machine_node(policy, group, flavour, claim.zone, claim.id, room, limits, topology)
            coming.append(as_registered(node, registered.get(claim.id)))
    names = {node.name for node in coming}
    ready = [node for node in snapshot.cluster.nodes if node.name not in names and node.claim not in names]
    starting = {node.name: late for node in ready if (late := still_starting(node, policy, learned, now)) is not None}
    if starting:
        ready = [starting[node.name].promised if node.name in starting else node for node in ready]
    awaited = {node.name: labels for node in ready if (labels := attaching.awaited(node))}
    if awaited:
        ready = [attaching.completed(node, awaited[node.name]) if node.name in awaited else node for node in ready]
    nodes = [*ready, *coming]
    going = outgoing_nodes(nodes, snapshot.claims, Grounds.of(snapshot, policy, now))
    rows, pools = in_pools(policy, nodes, going.keys() | ailing_nodes(nodes, policy), names | starting.keys())
    return _Rows(rows, names, starting, awaited, pools, going)


def _extended(amounts: Iterable[Resources]) -> set[str]:
    """Names of extended resources; of 50,000 pods few ask for different ones."""
    return {name for extended in {each.extended for each in amounts} for name, _ in extended}


def _close_rows(sim: Simulation, snapshot: ClusterSnapshot, coming: Set[str], shunned: Container[str]) -> None:
    """Rows that take no pods: nodes that are not Ready, that failed, are being emptied or urgently to be."""
    draining = {drain.node for drain in snapshot.drains}
    failed = {claim.id for claim in snapshot.claims if claim.state is ClaimState.FAILED}
    for row, node in enumerate(sim.table.nodes):
        if node.name in coming:
            continue
        if node.name in draining:
            sim.vacate(row)
        elif node.claim in failed or not node.is_ready or node.is_draining or node.name in shunned:
            sim.close(row)


def _sort_pods(
    snapshot: ClusterSnapshot, policy: Policy, table: NodeTable, seated: Set[str]
) -> tuple[list[tuple[Pod, int]], tuple[Pod, ...], tuple[Pod, ...], tuple[Pod, ...]]:
    """(pods with their row, pods to place, gated pods, pods nominated by a preemption); `seated` have slots."""
    placed: list[tuple[Pod, int]] = []
    waiting, gated, nominated = [], [], []
    view = snapshot.cluster
    templates = {pod.uid: pod.requests for pod in daemon_sets.examples(view)} if view.daemons else {}
    chosen = _nodes_of_volumes(view)
    rows = _rows_by_node(snapshot, table)
    for pod in view.pods:
        if chosen and pod.node is None:
            pod = _nominated_by_volumes(pod, chosen)
        node = node_of(pod, snapshot)
        if node is not None:
            row = rows.get(node)
            if row is not None:
                placed.append((pod, row))
        elif (is_daemon := pod.is_daemon) and daemon_sets.is_of_daemon_set(pod) and not pod.is_terminating:
            pinned = table.row_of.get(daemon_sets.pinned_to(pod) or "")
            if pinned is not None and daemon_sets.asks_what_its_template_asks(pod, templates):
                placed.append((pod, pinned))
        elif pod.is_terminating or pod.is_mirror or (is_daemon and pod.scheduler != policy.scheduler_name):
            continue
        elif pod.gates:
            gated.append(pod)
        elif pod.nominated_node in table.row_of and pod.nominated_node is not None:
            nominated.append(pod)
            placed.append((pod, table.row_of[pod.nominated_node]))
        elif pod.uid in seated:
            continue
        elif pod.is_placed_by(policy.scheduler_name):
            waiting.append(pod)
    return placed, tuple(waiting), tuple(gated), tuple(nominated)


def _rows_by_node(snapshot: ClusterSnapshot, table: NodeTable) -> Mapping[str, int]:
    """Rows by the names that pods know: a registered machine has its claim's row, whatever its node is named."""
    coming = [claim for claim in snapshot.claims if claim.is_coming and claim.node not in (None, claim.id)]
    named = {claim.node: row for claim in coming if claim.node and (row := table.row_of.get(claim.id)) is not None}
    return {**table.row_of, **named} if named else table.row_of


def _nodes_of_volumes(view: ClusterView) -> dict[tuple[str, str], str]:
    """Nodes by (namespace, claim) for which volumes are being made."""
    return {
        (claim.namespace, claim.name): claim.selected_node
        for claim in view.volumes.claims
        if claim.volume is None and claim.selected_node is not None
    }


def _nominated_by_volumes(pod: Pod, chosen: Mapping[tuple[str, str], str]) -> Pod:
    """A pod whose volume is being made for a node has its room there, as kube-scheduler keeps it (Reserve to PreBind).

    Else another took it meanwhile, and a volume of one node's own (topolvm) would be there for nothing.
    """
    for claim in pod.constraints.claims:
        node = chosen.get((pod.namespace, claim))
        if node is not None and pod.nominated_node is None:
            return msgspec.structs.replace(pod, nominated_node=node)
    return pod


def _count_running(
    sim: Simulation,
    book: ClassBook,
    snapshot: ClusterSnapshot,
    policy: Policy,
    placed: Sequence[tuple[Pod, int]],
    now: float,
) -> dict[int, list[Pod]]:
    """Count pods on their rows; room is also kept where a pod is moving to, or will move to once it is evicted."""
    targets = {move.pod: (sim.table.row_of.get(move.target or ""), move.method) for move in moves_under_way(snapshot)}
    arrived = {pod.twin_of for pod, _ in placed if pod.twin_of}
    missing = _still_to_be_made(snapshot.cluster.pods) if targets else Counter[str]()
    running: dict[int, list[Pod]] = {}
    rows_of: dict[int, tuple[PodClass, list[int]]] = {}
    ends: dict[int, float] = {}
    arriving: list[KeptRoom] = []
    for pod, row in placed:
        cls = book.class_of(pod)
        rows = rows_of.setdefault(id(cls), (cls, []))[1]
        rows.append(row)
        running.setdefault(row, []).append(pod)
        target, method = targets.get(pod.key, (None, None)) if targets else (None, None)
        if target is not None and pod.uid in arrived:
            target = None  # its twin holds that room already
        elif target is not None and pod.is_terminating and method is MigrationMethod.EVICT:
            owner = pod.owner.uid if pod.owner is not None else ""
            missing[owner] -= 1
            target = target if missing[owner] >= 0 else None  # its replacement waits for that room, or has it already
        if target is not None and target != row:
            arriving.append(KeptRoom(pod, cls, target, HoldReason.MOVE))
        if pod.kind is WorkKind.BATCH and not pod.is_daemon:
            until = now + remaining_s(pod, policy, now)
            for at in (row,) if target is None else (row, target):
                ends[at] = max(ends.get(at, 0.0), until)
    for row, until in ends.items():
        sim.table.run_until[row] = until
    _count(sim, rows_of.values())
    sim.keep_room(*arriving)
    return running


def _still_to_be_made(pods: Iterable[Pod]) -> Counter[str]:
    """How many pods controllers (by uid) are about to make in place of those that end, as far as that is known.

    A ReplicaSet makes another within a second. Two nodes that were emptied one right after the other had the same room
    for their pods in between.
    """
    missing = Counter[str]()
    made = Counter[str]()
    for pod in pods:
        if pod.owner is not None and pod.owner.replicas is not None:
            uid = pod.owner.uid
            missing.setdefault(uid, pod.owner.replicas)
            missing[uid] -= not pod.is_terminating
            made[uid] += pod.is_terminating - is_pending(pod, pod.node)
    return Counter({uid: max(0, min(count, made[uid])) for uid, count in missing.items()})


FEW = 16
"""Pods of a class that are rather counted one by one: sorting them by row takes 30 µs, counting one 2 µs."""


def _count(sim: Simulation, rows_of: Iterable[tuple[PodClass, Sequence[int]]]) -> None:
    """Count running pods of each class on rows. They are no decisions: the log that takes decisions back is empty.

    Where run lengths are all different every pod is nearly a class of its own: those of small classes without wishes
    about others go together.
    """
    together: list[Ints] = []
    rows_together: list[int] = []
    for cls, rows in rows_of:
        is_plain = cls.charged_to is None and not (cls.is_dynamic or any(cls.assumed) or any(cls.missing))
        if len(rows) <= FEW and not cls.watches and is_plain:
            together += [cls.requests] * len(rows)
            rows_together += rows
            continue
        distinct, counts = np.unique(np.array(rows, dtype=np.int64), return_counts=True)
        sim.place_many(cls, distinct, counts, is_placement=False)
    if together:
        np.subtract.at(sim.table.free.T, np.array(rows_together), np.array(together))
