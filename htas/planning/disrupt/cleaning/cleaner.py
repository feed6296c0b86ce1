"""The cleaner: every node is a candidate or kept with a reason; candidates are tried from the least used upwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.plan import KeptNode
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.model.proposals import Proposal
from htas.model.reasons import Kept
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.cluster.whereabouts import node_of
from htas.planning.disrupt.cleaning.candidates import Circumstances, DrainCandidate, candidate_of, judge
from htas.planning.disrupt.cleaning.cleaning_round import CleaningRound
from htas.planning.disrupt.cleaning.consolidation import Replacements
from htas.planning.disrupt.cleaning.lapses import lapses, with_lapses
from htas.planning.disrupt.cleaning.rescheduling import Rescheduler
from htas.planning.disrupt.cleaning.utilization import is_empty, utilization
from htas.planning.eligibility.budgets import ledger_of
from htas.planning.eligibility.migration_methods import NO_VOLUMES, VolumeBook
from htas.planning.place.context import PlanContext
from htas.planning.place.placing import Placer
from htas.planning.provision.purchase import BoughtMachine
from htas.planning.rental.bills import Rentals
from htas.planning.rental.moving import LeastAdded


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """What the cleaning stage decided, and what the next plan must remember."""

    proposals: tuple[Proposal, ...]
    """Nodes to empty now, and machines to buy: what they replace is emptied by a later plan. Both at once only where
    what is replaced is urgent."""
    kept: tuple[KeptNode, ...]
    memory: Memory


@dataclass(frozen=True, slots=True)
class RestOfPlan:
    """What the stages before have decided, as far as cleaning goes by it."""

    work_is_waiting: bool = False
    needed: frozenset[str] = frozenset()
    """Nodes that the plan counts on."""
    leaving: Sequence[Pod] = ()
    """All pods that it makes leave."""
    may_replace: bool = False
    """Nothing waits, is bought or rearranged, so that sets of nodes may be replaced by cheaper ones."""
    may_repair: bool = False
    """Nothing is rearranged, so that a node that is urgently to go may be replaced, whatever waits or is bought."""
    bought: Sequence[BoughtMachine] = ()
    """Machines that it buys."""


def clean(context: PlanContext, rest: RestOfPlan, *, is_due: bool) -> ScaleDown:
    """Decide which nodes to empty.

    Not due: only the memory is brought up to date, and nodes that would be judged are kept for the next cycle. The
    simulation keeps the moves decided on, and the rows of nodes to be removed stay closed.
    """
    snapshot, policy, now = context.snapshot, context.policy, context.now
    pods_on = _pods_by_node(snapshot)
    memory = _remember(snapshot, policy, now, rest.work_is_waiting, pods_on)
    memory = msgspec.structs.replace(memory, cleaned_at=now if is_due else snapshot.memory.cleaned_at)
    question = Circumstances(snapshot, policy, now, memory, is_due=is_due, needed=rest.needed)
    claims = {claim.id: claim for claim in snapshot.claims}
    candidates: list[DrainCandidate] = []
    replaced: list[DrainCandidate] = []
    replacements = Replacements(snapshot, policy, now)
    vain = replacements.in_vain
    sizes, under_way = _sizes(snapshot, policy, vain), _under_way(snapshot)
    round_ = CleaningRound(sizes, under_way, vain, bought=len(rest.bought))
    for node in snapshot.cluster.nodes:
        judged = judge(node, pods_on.get(node.name, ()), claims.get(node.claim or ""), question, replacements)
        if isinstance(judged, KeptNode):
            round_.kept.append(judged)
        elif replacements.is_replaced(node.name) and not judged.is_empty:
            replaced.append(judged)
        else:
            candidates.append(judged)
    if is_due:
        sim, rescheduler = context.simulated.sim, _rescheduler(context, pods_on, rest.leaving)
        with sim.closed(_no_targets(context.simulated, snapshot, round_.kept, vain)):
            if replaced:
                candidates += round_.replace(
                    sorted(replaced, key=lambda candidate: candidate.rank), replacements, rescheduler
                )
            if policy.approval is None:  # else nobody knows whether the dearer node is ever drained
                candidates = round_.spare(candidates, rescheduler)
            for candidate in sorted(candidates, key=lambda candidate: candidate.rank):
                round_.take(candidate, rescheduler)
            is_at_rest = rest.may_replace and not round_.proposals and not snapshot.drains
            is_pressing = rest.may_repair and any(candidate.is_urgent for candidate in candidates)
            if (is_at_rest or is_pressing) and not replacements.claims:
                stay = round_.staying(question, snapshot, pods_on, claims)
                owned = _with_bought(snapshot, rest.bought)
                memory = round_.smaller(rescheduler, question, owned, pods_on, stay, is_at_rest=is_at_rest)
        round_.kept = [_held_at_any_rate(each, pods_on, claims, question, rescheduler) for each in round_.kept]
    kept = sorted(with_lapses(round_.kept, snapshot, question), key=lambda keeping: keeping.node)
    return ScaleDown(tuple(round_.proposals), tuple(kept), memory)


def _with_bought(snapshot: ClusterSnapshot, bought: Sequence[BoughtMachine]) -> ClusterSnapshot:
    """The snapshot with claims for what the plan buys, which counts against every limit from then on."""
    at = snapshot.taken_at
    offers = ((item.claim, item.offer) for item in bought)
    claims = (
        NodeClaim(claim, offer.group.name, offer.flavour.name, ClaimState.WANTED, at, at, offer.zone)
        for claim, offer in offers
    )
    return msgspec.structs.replace(snapshot, claims=(*snapshot.claims, *claims)) if bought else snapshot


def _rescheduler(context: PlanContext, pods_on: Mapping[str, Sequence[Pod]], leaving: Sequence[Pod]) -> Rescheduler:
    """Who empties nodes, with what rentals are there: built for a due cleaning alone, for it reads every node."""
    simulated, snapshot, policy, now = context.simulated, context.snapshot, context.policy, context.now
    sim = simulated.sim
    running = {sim.table.row_of[name]: pods for name, pods in pods_on.items() if name in sim.table.row_of}
    rentals = Rentals.of(sim.table.nodes, snapshot, policy, running)
    held: set[int] = set()
    judged = Placer(policy, context.placer.pools, LeastAdded(sim, rentals, held), borrows=_moves_keep_progress(policy))
    ledger, volumes = ledger_of(snapshot, leaving), _volumes(snapshot, policy)
    return Rescheduler(sim, simulated.book, judged, policy, ledger, now, rentals, snapshot.move_times, volumes, held)


def _held_at_any_rate(
    kept: KeptNode,
    pods_on: Mapping[str, Sequence[Pod]],
    claims: Mapping[str, NodeClaim],
    question: Circumstances,
    rescheduler: Rescheduler,
) -> KeptNode:
    """Of a node that would be emptied before its period ends the rule that forbids it, if there is one.

    By the hour, one with a service that has not opted in was told to be emptied shortly, hour after hour.
    """
    if kept.reason is not Kept.DRAINS_BEFORE_PERIOD_ENDS:
        return kept
    table = rescheduler.sim.table
    node = table.nodes[table.row_of[kept.node]]
    group, claim = question.policy.group(node.group), claims.get(node.claim or "")
    if group is None or claim is None:
        return kept
    movable = rescheduler.movable(candidate_of(node, pods_on.get(node.name, ()), group, claim, question))
    return movable if isinstance(movable, KeptNode) and movable.reason is Kept.BLOCKED_BY_POD else kept


def _moves_keep_progress(policy: Policy) -> bool:
    """Whether a job that is moved to what services have over loses nothing, should they come back meanwhile."""
    taking = (group for group in policy.groups if group.workload.takes(WorkKind.BATCH))
    return all(group.cleaning.migration.keeps_progress for group in taking)


def _volumes(snapshot: ClusterSnapshot, policy: Policy) -> VolumeBook:
    """What moves with twins are judged by; nothing where pods are evicted alone."""
    if any(group.cleaning.migration.makes_twin for group in policy.groups):
        return VolumeBook.of(snapshot.cluster.volumes)
    return NO_VOLUMES


def _pods_by_node(snapshot: ClusterSnapshot) -> dict[str, list[Pod]]:
    """Pods by the node they run on, or are being bound to."""
    pods_on: dict[str, list[Pod]] = {}
    for pod in snapshot.cluster.pods:
        where = node_of(pod, snapshot)
        if where is not None:
            pods_on.setdefault(where, []).append(pod)
    return pods_on


def _remember(
    snapshot: ClusterSnapshot, policy: Policy, now: float, work_is_waiting: bool, pods_on: dict[str, list[Pod]]
) -> Memory:
    """Since when nodes are under-used or empty, and the queue too; who is gone or not understood is forgotten.

    An instant later than now was noted by a clock that has been put back since: it counts from now.
    """
    before = snapshot.memory
    low: dict[str, float] = {}
    empty: dict[str, float] = {}
    for node in sorted(snapshot.cluster.nodes, key=lambda node: node.name):
        group = policy.group(node.group)
        if group is None or node.cluster != policy.cluster:
            continue
        if node.name in snapshot.cluster.unread:  # how much of it is used is not known
            continue
        pods = pods_on.get(node.name, [])
        if utilization(node, pods, group.cleaning, now) <= group.cleaning.utilization_threshold:
            low[node.name] = min(before.underutilized_since.get(node.name, now), now)
        if is_empty(pods, now):
            empty[node.name] = min(before.empty_since.get(node.name, now), now)
    queue = None
    if not work_is_waiting:
        queue = min(before.queue_empty_since, now) if before.queue_empty_since is not None else now
    return Memory(low, empty, queue, consolidated_at=before.consolidated_at, lapses=lapses(snapshot, policy, now))


def _sizes(snapshot: ClusterSnapshot, policy: Policy, in_vain: frozenset[str]) -> Counter[str]:
    """Ready nodes of each group that are not on their way out; machines on their way in do not count, nor do those
    that were bought in vain: another would go in their place.
    """
    draining = {drain.node for drain in snapshot.drains} | in_vain
    return Counter(
        node.group or ""
        for node in snapshot.cluster.nodes
        if node.cluster == policy.cluster and node.is_ready and not node.is_draining and node.name not in draining
    )


def _under_way(snapshot: ClusterSnapshot) -> Counter[str]:
    """Drains of each group that earlier plans began."""
    groups = {claim.id: claim.group for claim in snapshot.claims}
    return Counter(groups[drain.claim] for drain in snapshot.drains if drain.claim in groups)


ABOUT_TO_GO = frozenset({Kept.NOT_EMPTY_LONG_ENOUGH, Kept.PAID_UNTIL_PERIOD_ENDS})
"""Empty nodes that only wait for their time: moving pods there would keep one machine to release another.

Not under-used ones that wait for their paid hour's end (DRAINS_BEFORE_PERIOD_ENDS): whether they go is decided then,
by the room there is, and with more pods they may stay. Of three machines with a small service each every one would
refuse the others' pods, and all three be kept for ever.
"""


def _no_targets(
    simulated: SimulatedCluster, snapshot: ClusterSnapshot, kept: Iterable[KeptNode], to_go: Set[str]
) -> list[int]:
    """Rows that pods must not be moved to.

    Targets are nodes that are there, Ready and not starting, not cordoned, and not about to be given back themselves.
    Outgoing ones are, though the last in turn: where no machine may be bought (`maxNodes`), two half-full ones are
    joined, which lets one be bought.
    """
    coming = {claim.id for claim in snapshot.claims if claim.is_coming}
    about_to_go = {keeping.node for keeping in kept if keeping.reason in ABOUT_TO_GO}
    unfit = about_to_go | to_go | simulated.starting.keys()
    targets = {
        node.name
        for node in snapshot.cluster.nodes
        if node.takes_pods and node.claim not in coming and node.name not in unfit
    }
    return [row for row, node in enumerate(simulated.sim.table.nodes) if node.name not in targets]
