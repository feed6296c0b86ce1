"""One round of cleaning: what has been decided so far limits what is decided next, by group and by node."""

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
from htas.planning.disrupt.cleaning.candidates import (
    Circumstances,
    DrainCandidate,
    candidate_of,
    is_paid_for_longer,
    is_quiet,
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
from htas.planning.disrupt.cleaning.lapses import is_paused
from htas.planning.disrupt.cleaning.rescheduling import Rescheduler
from htas.planning.disrupt.cleaning.shrinking import Shrinker


@dataclass(slots=True)
class CleaningRound:
    """The candidates' fates, one after another: each sees what was decided before it."""

    sizes: Counter[str]
    under_way: Counter[str]
    in_vain: frozenset[str]
    proposals: list[Proposal] = field(default_factory=list)
    kept: list[KeptNode] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)
    one_for_one: list[DrainCandidate] = field(default_factory=list)
    """Outgoing nodes of groups that have no more than they must have: others are bought first, whoever has room."""
    bought: int = 0
    """How many machines the plan buys already."""

    def spare(self, candidates: Sequence[DrainCandidate], rescheduler: Rescheduler) -> list[DrainCandidate]:
        """Keep empty nodes that take the pods of dearer nodes which find room nowhere else; returns all others.

        Empty nodes go first, so that a cheap one went and the dear one beside it stayed for its few pods.
        """
        free = [each for each in candidates if each.is_empty and each.outgoing is None]
        least = min((each.price for each in free), default=None)
        dearer = [each for each in candidates if least is not None and not each.is_empty and each.price > least]
        spared: dict[str, str] = {}
        with rescheduler.sim.fork():
            for candidate in sorted(dearer, key=lambda each: each.rank):
                if self.sizes[candidate.group.name] > candidate.group.min_nodes:
                    still_free = [each for each in free if each.node.name not in spared]
                    targets = _empty_targets(candidate, still_free, rescheduler)
                    spared |= dict.fromkeys(targets, candidate.node.name)
        for name, source in sorted(spared.items()):
            message = f"empty, but pods of {source}, which costs more, can go there"
            self.kept.append(KeptNode(name, Kept.NEEDED, message))
        return [each for each in candidates if each.node.name not in spared]

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
        *,
        is_at_rest: bool = True,
    ) -> Memory:
        """What to buy instead of nodes of one group: one that is outgoing, else a cheaper set, else smaller machines.

        Of the groups the first is taken that has some worth buying; of those whose work is not quiet urgent nodes alone
        are looked at. Returns what was looked at.
        """
        policy, now, before = question.policy, question.now, question.memory.consolidated_at
        looked_at = dict(before)
        quiet = {group.name for group in policy.groups if is_at_rest and is_quiet(question, group.cleaning)}
        in_time = [(group, _in_time(group, stay, question, snapshot)) for group in policy.groups]
        consolidator = Consolidator(rescheduler, snapshot, pods_on)
        shrinker = Shrinker(rescheduler, consolidator, snapshot, question.memory)

        def outgoing(group: NodeGroup, candidates: Sequence[DrainCandidate], at_once: int) -> list[Replacing]:
            like = [each for each in self.one_for_one if each.group is group and not is_paused(each, question)]
            nodes, like = (_outgoing(some, urgent_only=group.name not in quiet) for some in (candidates, like))
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
            for group, candidates in in_time:
                if group.name not in quiet and look is not outgoing:
                    continue
                found = look(group, candidates, self._at_once(group))
                if found:
                    self.proposals += proposals_of(found, snapshot, policy, self.bought)
                    return _looked(question.memory, looked_at)
        return _looked(question.memory, looked_at)

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
            return KeptNode(name, Kept.NEEDED, "pods of a node that is being drained go there")
        if size <= group.min_nodes and name not in self.in_vain:
            message = f"group {group.name} has {_nodes(size)} and keeps at least {group.min_nodes}"
            return KeptNode(name, Kept.MIN_SIZE_REACHED, message)
        if under_way >= most:
            message = f"{_nodes(under_way)} of group {group.name} are being drained, at most {most} at once"
            return KeptNode(name, Kept.TOO_MANY_AT_ONCE, message)
        return None


def _empty_targets(
    candidate: DrainCandidate, free: Sequence[DrainCandidate], rescheduler: Rescheduler
) -> Iterable[str]:
    """The empty nodes, cheaper than a node, that its pods go to where they find no room elsewhere. The moves are made
    in the simulation."""
    sim = rescheduler.sim
    rows = {each.node.name: sim.table.row_of[each.node.name] for each in free}
    with sim.closed(rows.values()):
        moves = rescheduler.empty(candidate)
    if not isinstance(moves, KeptNode) or moves.reason is not Kept.NO_PLACE_TO_MOVE_PODS:
        return ()
    with sim.closed([rows[each.node.name] for each in free if each.price >= candidate.price]):
        moves = rescheduler.empty(candidate)
    return () if isinstance(moves, KeptNode) else {move.target or "" for move in moves} & rows.keys()


def _looked(memory: Memory, looked_at: Mapping[str, float]) -> Memory:
    return msgspec.structs.replace(memory, consolidated_at=looked_at)


def _in_time(
    group: NodeGroup, stay: Mapping[str, Sequence[DrainCandidate]], question: Circumstances, snapshot: ClusterSnapshot
) -> list[DrainCandidate]:
    """Nodes of a group that are not paid for much longer than it takes to buy others and to move their pods there."""
    starts_s = snapshot.machine_times.start_s(group.startup_s)
    waiting = (each for each in stay[group.name] if not is_paused(each, question))
    return [each for each in waiting if not is_paid_for_longer(each, question, starts_s)]


def _outgoing(candidates: Iterable[DrainCandidate], *, urgent_only: bool) -> list[DrainCandidate]:
    """Those that are to go however well they are used, the first to go first."""
    going = (each for each in candidates if each.is_urgent or (each.outgoing is not None and not urgent_only))
    return sorted(going, key=lambda each: each.rank)


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
