"""The cleaner: every node is a candidate or kept with a reason; candidates are tried from the least used upwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from htas.model.claims import NodeClaim
from htas.model.moves import MigrationMethod, Move
from htas.model.plan import KeptNode
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Policy
from htas.model.proposals import Proposal, Release
from htas.model.reasons import Kept, ProposalReason
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.simulation import Simulation
from htas.planning.cluster.whereabouts import node_of
from htas.planning.disrupt.cleaning.candidates import (
    Circumstances,
    DrainCandidate,
    candidate_of,
    is_paid_for_longer,
    is_quiet,
    judge,
    percent,
)
from htas.planning.disrupt.cleaning.consolidation import (
    MAY_BE_REPLACED,
    Consolidator,
    Replacements,
    Replacing,
    emptied,
    has_cooled_down,
    may_look_at,
    proposals_of,
)
from htas.planning.disrupt.cleaning.lapses import is_paused, lapses, with_lapses
from htas.planning.disrupt.cleaning.rescheduling import Rescheduler
from htas.planning.disrupt.cleaning.shrinking import Shrinker
from htas.planning.disrupt.cleaning.utilization import is_empty, utilization
from htas.planning.eligibility.budgets import ledger_of
from htas.planning.eligibility.drain_rules.rule import NO_VOLUMES
from htas.planning.eligibility.movability import VolumeBook
from htas.planning.place.placing import Placer
from htas.planning.rental.bills import Rentals
from htas.planning.rental.moving import LeastAdded


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """What the cleaning stage decided, and what the next plan must remember."""

    proposals: tuple[Proposal, ...]
    """Nodes to empty now; or, where none is, machines to buy: what they replace is emptied by a later plan."""
    kept: tuple[KeptNode, ...]
    memory: Memory


def clean(
    sim: Simulation,
    book: ClassBook,
    placer: Placer,
    snapshot: ClusterSnapshot,
    policy: Policy,
    now: float,
    *,
    is_due: bool,
    work_is_waiting: bool,
    needed: frozenset[str],
    leaving: Sequence[Pod] = (),
    may_replace: bool = False,
) -> ScaleDown:
    """Decide which nodes to empty. `needed` are nodes that this plan counts on, `leaving` all pods that it makes leave.

    `may_replace`: nothing waits, is bought or rearranged, so that sets of nodes may be replaced by cheaper ones.

    Not due: only the memory is brought up to date, and nodes that would be judged are kept for the next cycle. The
    simulation keeps the moves decided on, and the rows of nodes to be removed stay closed.
    """
    pods_on = _pods_by_node(snapshot)
    memory = _remember(snapshot, policy, now, work_is_waiting, pods_on)
    memory = msgspec.structs.replace(memory, cleaned_at=now if is_due else snapshot.memory.cleaned_at)
    question = Circumstances(snapshot, policy, now, memory, is_due=is_due, needed=needed)
    claims = {claim.id: claim for claim in snapshot.claims}
    candidates: list[DrainCandidate] = []
    replaced: list[DrainCandidate] = []
    replacements = Replacements(snapshot, policy, now)
    vain = replacements.in_vain
    round_ = _Round(sizes=_sizes(snapshot, policy, vain), under_way=_under_way(snapshot), in_vain=vain)
    for node in snapshot.cluster.nodes:
        judged = judge(node, pods_on.get(node.name, ()), claims.get(node.claim or ""), question, replacements)
        if isinstance(judged, KeptNode):
            round_.kept.append(judged)
        elif replacements.is_replaced(node.name) and not judged.is_empty:
            replaced.append(judged)
        else:
            candidates.append(judged)
    if is_due:
        rescheduler = _rescheduler(sim, book, placer, snapshot, policy, now, pods_on, leaving)
        with sim.closed(_no_targets(sim, snapshot, round_.kept, vain)):
            if replaced:
                candidates += round_.replace(
                    sorted(replaced, key=lambda candidate: candidate.rank), replacements, rescheduler
                )
            for candidate in sorted(candidates, key=lambda candidate: candidate.rank):
                round_.take(candidate, rescheduler)
            if may_replace and not replacements.claims and not round_.proposals and not snapshot.drains:
                stay = round_.staying(question, snapshot, pods_on, claims)
                memory = round_.smaller(rescheduler, question, snapshot, pods_on, stay)
    kept = sorted(with_lapses(round_.kept, snapshot, question), key=lambda keeping: keeping.node)
    return ScaleDown(tuple(round_.proposals), tuple(kept), memory)


def _rescheduler(
    sim: Simulation,
    book: ClassBook,
    placer: Placer,
    snapshot: ClusterSnapshot,
    policy: Policy,
    now: float,
    pods_on: Mapping[str, Sequence[Pod]],
    leaving: Sequence[Pod],
) -> Rescheduler:
    """Who empties nodes, with what rentals are there: built for a due cleaning alone, for it reads every node."""
    running = {sim.table.row_of[name]: pods for name, pods in pods_on.items() if name in sim.table.row_of}
    rentals = Rentals.of(sim.table.nodes, snapshot, policy, running)
    judged = Placer(policy, placer.pools, LeastAdded(sim, rentals))
    ledger, volumes = ledger_of(snapshot, leaving), _volumes(snapshot, policy)
    return Rescheduler(sim, book, judged, policy, ledger, now, rentals, snapshot.move_times, volumes)


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


@dataclass(slots=True)
class _Round:
    """The candidates' fates, one after another: each sees what was decided before it."""

    sizes: Counter[str]
    under_way: Counter[str]
    in_vain: frozenset[str]
    proposals: list[Proposal] = field(default_factory=list)
    kept: list[KeptNode] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)
    one_for_one: list[DrainCandidate] = field(default_factory=list)
    """Outgoing nodes of groups that have no more than they must have: others are bought first, whoever has room."""

    def take(self, candidate: DrainCandidate, rescheduler: Rescheduler) -> None:
        """Empty the candidate or keep it, and write down which."""
        kept = self._round_keeps(candidate)
        if kept is not None:
            self.kept.append(kept)
            if (
                kept.reason is Kept.MIN_SIZE_REACHED
                and candidate.outgoing is not None
                and candidate.outgoing.keeps_size
            ):
                self.one_for_one.append(candidate)
            if candidate.is_empty and kept.reason is Kept.TOO_MANY_AT_ONCE:
                rescheduler.sim.close(rescheduler.sim.table.row_of[candidate.node.name])  # it goes next time
            return
        moves = rescheduler.empty(candidate)
        if isinstance(moves, KeptNode):
            self.kept.append(moves)
            return
        self._propose(candidate, _reason(candidate), moves, _why(candidate, moves, rescheduler.policy))

    def _propose(
        self,
        candidate: DrainCandidate,
        reason: ProposalReason,
        moves: Sequence[Move],
        message: str,
        *,
        is_second_half: bool = False,
    ) -> None:
        """That a node is emptied and given back."""
        proposal = Proposal(
            reason,
            tuple(moves),
            releases=(Release(candidate.node.name, candidate.claim.id),),
            value=candidate.price,
            message=message,
            is_second_half=is_second_half,
        )
        self.proposals.append(proposal)
        self.targets |= {move.target for move in moves if move.target is not None}
        self.sizes[candidate.group.name] -= candidate.node.name not in self.in_vain
        self.under_way[candidate.group.name] += 1

    def replace(
        self, replaced: Sequence[DrainCandidate], replacements: Replacements, rescheduler: Rescheduler
    ) -> list[DrainCandidate]:
        """Empty nodes whose replacements are Ready, as many as may go at once; returns those that stay candidates."""
        allowed = [candidate for candidate in replaced if self._round_keeps(candidate) is None]
        done = emptied(allowed, replacements, rescheduler)
        for candidate, moves in done:
            reason, what = ProposalReason.CONSOLIDATED, f"its pods go to cheaper machines, {_pods(len(moves))}"
            if candidate.outgoing is not None:
                reason, what = candidate.outgoing.reason, _why(candidate, moves, rescheduler.policy)
            self._propose(candidate, reason, moves, what, is_second_half=True)
        gone = {candidate.node.name for candidate, _ in done}
        return [candidate for candidate in replaced if candidate.node.name not in gone]

    def smaller(
        self,
        rescheduler: Rescheduler,
        question: Circumstances,
        snapshot: ClusterSnapshot,
        pods_on: dict[str, list[Pod]],
        stay: Mapping[str, Sequence[DrainCandidate]],
    ) -> Memory:
        """What to buy instead of nodes of one group: one that is outgoing, else a cheaper set, else smaller machines.

        Of the groups the first is taken that has some worth buying. Returns what was looked at.
        """
        policy, now, before = question.policy, question.now, question.memory.consolidated_at
        looked_at = dict(before)
        consolidator, ripe = Consolidator(rescheduler, snapshot, pods_on), self._ripe(question, snapshot, stay)
        shrinker = Shrinker(rescheduler, consolidator, snapshot, question.memory)

        def outgoing(group: NodeGroup, candidates: Sequence[DrainCandidate], at_once: int) -> list[Replacing]:
            nodes = sorted((each for each in candidates if each.outgoing is not None), key=lambda each: each.rank)
            like = [each for each in self.one_for_one if each.group is group and not is_paused(each, question)]
            if not (nodes or like) or not has_cooled_down(group, before.get(group.name), now):
                return []
            looked_at[group.name] = now
            found = chain(
                (consolidator.instead_of(group, node) for node in nodes[: max(at_once, 0)]),
                (shrinker.one_for(group, node) for node in like[: max(at_once, 0)]),
            )
            return next(filter(None, found), [])  # one that nothing can be bought for is in nobody's way

        def cheaper(group: NodeGroup, candidates: Sequence[DrainCandidate], at_once: int) -> list[Replacing]:
            if not candidates or not may_look_at(group, before.get(group.name), now):
                return []
            looked_at[group.name] = now
            return consolidator.best(group, candidates, at_once)

        for look in (outgoing, cheaper, shrinker.best):
            for group, candidates in ripe:
                found = look(group, candidates, self._at_once(group))
                if found:
                    self.proposals += proposals_of(found, snapshot, policy)
                    return _looked(question.memory, looked_at)
        return _looked(question.memory, looked_at)

    def _ripe(
        self, question: Circumstances, snapshot: ClusterSnapshot, stay: Mapping[str, Sequence[DrainCandidate]]
    ) -> list[tuple[NodeGroup, list[DrainCandidate]]]:
        """The groups whose work has been quiet, with their nodes that need not be kept for what is paid of them."""
        quiet = (group for group in question.policy.groups if is_quiet(question, group.cleaning))
        return [(group, _in_time(group, stay, question, snapshot)) for group in quiet]

    def staying(
        self,
        question: Circumstances,
        snapshot: ClusterSnapshot,
        pods_on: Mapping[str, Sequence[Pod]],
        claims: Mapping[str, NodeClaim],
    ) -> dict[str, list[DrainCandidate]]:
        """By group the nodes that stay since nothing that is there could take their pods, not for less or not yet."""
        stay = {keeping.node for keeping in self.kept if keeping.reason in MAY_BE_REPLACED} - self.targets
        groups = {group.name: group for group in question.policy.groups}
        found: dict[str, list[DrainCandidate]] = {name: [] for name in groups}
        for node in snapshot.cluster.nodes:
            group, claim = groups.get(node.group or ""), claims.get(node.claim or "")
            if node.name in stay and group is not None and claim is not None:
                found[group.name].append(candidate_of(node, pods_on.get(node.name, ()), group, claim, question))
        return found

    def _at_once(self, group: NodeGroup) -> int:
        """How many nodes of a group may be replaced now."""
        return min(group.cleaning.max_nodes_at_once - self.under_way[group.name], self.sizes[group.name])

    def _round_keeps(self, candidate: DrainCandidate) -> KeptNode | None:
        """Reasons in what this round has decided already."""
        name, group = candidate.node.name, candidate.group
        size, under_way, most = self.sizes[group.name], self.under_way[group.name], group.cleaning.max_nodes_at_once
        if name in self.targets:
            return KeptNode(name, Kept.NEEDED, "pods of a node being emptied go there")
        if size <= group.min_nodes and name not in self.in_vain:
            message = f"group {group.name} has {_nodes(size)} and keeps at least {group.min_nodes}"
            return KeptNode(name, Kept.MIN_SIZE_REACHED, message)
        if under_way >= most:
            message = f"{_nodes(under_way)} of group {group.name} are being emptied, at most {most} at once"
            return KeptNode(name, Kept.TOO_MANY_AT_ONCE, message)
        return None


def _looked(memory: Memory, looked_at: Mapping[str, float]) -> Memory:
    return msgspec.structs.replace(memory, consolidated_at=looked_at)


def _in_time(
    group: NodeGroup, stay: Mapping[str, Sequence[DrainCandidate]], question: Circumstances, snapshot: ClusterSnapshot
) -> list[DrainCandidate]:
    """Nodes of a group that are not paid for much longer than it takes to buy others and to move their pods there."""
    starts_s = snapshot.machine_times.start_s(group.startup_s)
    waiting = (each for each in stay[group.name] if not is_paused(each, question))
    return [each for each in waiting if not is_paid_for_longer(each, question, starts_s)]


ABOUT_TO_GO = frozenset({Kept.NOT_EMPTY_LONG_ENOUGH, Kept.PAID_UNTIL_PERIOD_ENDS})
"""Empty nodes that only wait for their time: moving pods there would keep one machine to release another.

Not under-used ones that wait for their paid hour's end (DRAINS_BEFORE_PERIOD_ENDS): whether they go is decided then,
by the room there is, and with more pods they may stay. Of three machines with a small service each every one would
refuse the others' pods, and all three be kept for ever.
"""


def _no_targets(
    sim: Simulation, snapshot: ClusterSnapshot, kept: Iterable[KeptNode], in_vain: frozenset[str]
) -> list[int]:
    """Rows that pods must not be moved to.

    Targets are nodes that are there, Ready, not cordoned, and not about to be given back themselves.
    """
    coming = {claim.id for claim in snapshot.claims if claim.is_coming}
    about_to_go = {keeping.node for keeping in kept if keeping.reason in ABOUT_TO_GO} | in_vain
    targets = {
        node.name
        for node in snapshot.cluster.nodes
        if node.is_ready and not node.is_unschedulable and node.claim not in coming and node.name not in about_to_go
    }
    return [row for row, node in enumerate(sim.table.nodes) if node.name not in targets]


def _reason(candidate: DrainCandidate) -> ProposalReason:
    if candidate.is_empty:
        return ProposalReason.EMPTY
    return candidate.outgoing.reason if candidate.outgoing is not None else ProposalReason.UNDERUTILIZED


def _why(candidate: DrainCandidate, moves: Sequence[Move], policy: Policy) -> str:
    if candidate.is_empty:
        return "empty"
    used = f"utilisation {percent(candidate.utilization)}"
    why = candidate.outgoing.why if candidate.outgoing is not None else used
    return f"{why}, {_pods(len(moves))}{_others(candidate, moves, policy)}"


def _others(candidate: DrainCandidate, moves: Sequence[Move], policy: Policy) -> str:
    """Who decides where evicted pods of other schedulers start again; the plan has shown only that there is room."""
    moving = {move.pod for move in moves if move.method == MigrationMethod.EVICT}
    others = Counter(
        pod.scheduler for pod in candidate.pods if pod.key in moving and pod.scheduler != policy.scheduler_name
    )
    return "".join(
        f"; {scheduler} decides where {count} of them {'goes' if count == 1 else 'go'}"
        for scheduler, count in sorted(others.items())
    )


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def _pods(count: int) -> str:
    return "1 pod moves" if count == 1 else f"{count} pods move"
