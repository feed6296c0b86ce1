"""The one validator: whether what was proposed is still right on the cluster as it is now.

Each reason to disrupt work names its checks (`CHECKS`), in the order in which they are made; the first that speaks
against a proposal is told. What is found right counts for those that are asked of after it: its budgets are spent. A
rearrangement is judged as a whole, by a simulation of the present, where its entry of the queue is made
(`planning.disrupt.rearrangement.validity.open_rearrangement`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from htas.model.migrations import Refusal
from htas.model.moves import MigrationMethod, Move
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import CleaningRules, Policy, Promises
from htas.model.proposals import Proposal
from htas.model.reasons import Blocking, Invalid, OutcomeReason, ProposalReason
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster.ending import must_leave
from htas.planning.cluster.simulated import open_simulation
from htas.planning.cluster.whereabouts import is_pending
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.disruption_policy import DisruptionPolicy
from htas.planning.eligibility.drain_rules import Context, cannot_be_read
from htas.planning.eligibility.migration_methods import NO_VOLUMES, VolumeBook, refusal, source_refusal, target_refusal


class Refused(Invalid, frozen=True):
    """Why a pod is not moved as somebody asked: `refusal` is what their programs read."""

    refusal: Refusal


@dataclass
class Validator:
    """What the present view says. `meant` has the uid of each pod that was planned with; `moving` are on their way.

    `snapshot` is that of the view, where moves are to be validated that people asked for: the only ones that no plan
    has found room for.
    """

    view: ClusterView
    policy: Policy
    now: float
    moving: Collection[str]
    meant: Mapping[str, str] = field(default_factory=dict)
    snapshot: ClusterSnapshot | None = None

    def __post_init__(self) -> None:
        self.nodes = {node.name: node for node in self.view.nodes}
        self._ledger = BudgetLedger(self.view.budgets)
        self._keeps_budgets = self.policy.fallback.promises is Promises.KEEP

    def why_not(self, proposal: Proposal) -> Invalid | None:
        """What makes a proposal wrong by now; None: nothing."""
        found = (check(self, proposal) for check in CHECKS[proposal.reason])
        return next((why for why in found if why is not None), None)

    # What there is.

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        return {pod.key: pod for pod in self.view.pods}

    @cached_property
    def _disruption_policy(self) -> DisruptionPolicy:
        return DisruptionPolicy(self.view, self.policy, self.now)

    def present(self, key: str) -> Pod | None:
        """The pod that was meant; another one may bear its name by now."""
        pod = self.pods.get(key)
        return pod if pod is not None and pod.uid == self.meant.get(key) else None

    def still_there(self, proposal: Proposal) -> list[Pod]:
        """Pods that are to leave and are on their node; those that are gone or end already need nothing."""
        found = [(self.present(move.pod), move.source) for move in proposal.moves]
        return [pod for pod, node in found if pod is not None and pod.node == node and not pod.is_terminating]

    def victims(self, proposal: Proposal) -> list[tuple[Pod, bool]]:
        """Victims that are still there, and whether evicting one breaks a budget."""
        if self._keeps_budgets:
            return [(victim, False) for victim in self.still_there(proposal)]
        found = []
        for victim in self.still_there(proposal):
            found.append((victim, self._ledger.refusal(victim) is not None))
            self._ledger.spend(victim)
        return found

    def held(self, node: str) -> list[Pod]:
        """Pods that must leave a node before its machine goes."""
        return pods_to_leave(self.view.pods, node, self.now)

    def promise(self, node: Node) -> Invalid | None:
        """A promise to users that forbids emptying a node as it is now. Budgets are the Eviction API's to judge."""
        group = self.policy.group(node.group)
        if node.held_by is not None:
            return Invalid(OutcomeReason.PROTECTED, f"the node is annotated {node.held_by}")
        if group is None:  # an empty node of it may go all the same
            return Invalid(OutcomeReason.CLAIM_GONE, "its group is gone") if self.held(node.name) else None
        volumes = VolumeBook.of(self.view.volumes) if group.cleaning.migration.makes_twin else NO_VOLUMES
        ledger = BudgetLedger(self.view.budgets, ())
        context = Context(group.cleaning, ledger, self.now, self.policy.migration, volumes)
        for pod in self.held(node.name):
            if pod.key in self.moving:  # it may belong to nobody for a moment, while its twin takes its place
                continue
            verdict = drain_rules.judge(pod, context)
            if verdict.waits or verdict.blocked not in (None, Blocking.NOT_ENOUGH_PDB):
                return Invalid(OutcomeReason.PROTECTED, verdict.message)
        return None

    # Checks of nodes that are emptied.

    def _may_be_emptied(self, proposal: Proposal) -> Invalid | None:
        for release in proposal.releases:
            node = self.nodes.get(release.node)
            if node is None or node.is_draining or not node.is_ready:
                why = "the node is gone, not Ready or drained by another party"
                return Invalid(OutcomeReason.NODE_CLOSED, why)
            came = {pod.key for pod in self.held(node.name)} - {move.pod for move in proposal.moves}
            if came:
                return Invalid(OutcomeReason.POD_CAME, f"{', '.join(sorted(came)[:3])} was bound to the node since")
            if node.name in self.view.unread:
                return Invalid(OutcomeReason.UNREADABLE_POD, cannot_be_read(self.view.unread[node.name]))
            if (promise := self.promise(node)) is not None:
                return promise
        return None

    def _targets_are_open(self, proposal: Proposal) -> Invalid | None:
        here = {pod.key for release in proposal.releases for pod in self.held(release.node)}
        for move in proposal.moves:
            target = self.nodes.get(move.target or "")
            if move.pod in here and (target is None or not target.takes_pods):
                why = f"the target {move.target} of {move.pod} is gone or closed"
                return Invalid(OutcomeReason.NODE_CLOSED, why)
        return None

    # Checks of preemptions.

    def _somebody_waits(self, proposal: Proposal) -> Invalid | None:
        for seat in proposal.seats:
            pod, node = self.present(seat.pod), self.nodes.get(seat.node)
            if pod is None or not is_pending(pod, pod.node):
                return Invalid(OutcomeReason.NOTHING_GAINED, f"{seat.pod} is gone or no longer pending")
            if node is None or not node.takes_pods or node.is_draining:
                return Invalid(OutcomeReason.NODE_CLOSED, f"node {seat.node} is gone or closed")
        return None

    def _victims_may_leave(self, proposal: Proposal) -> Invalid | None:
        victims = self.still_there(proposal)
        for seat in proposal.seats:
            pod = self.pods[seat.pod]
            for victim in victims:
                terms = self._disruption_policy.terms_of_victim(victim)
                if not terms.allow(victim, pod.priority):
                    why = terms.why or f"{victim.key} is not of lower priority than {pod.key}"
                    return Invalid(OutcomeReason.PROTECTED, why)
        spent = self._ledger.try_spend(victims) if self._keeps_budgets else None
        return Invalid(OutcomeReason.EVICTION_REFUSED, spent) if spent is not None else None

    # Checks of machines that are handed back. Nobody is moved with their progress then.

    def _may_be_handed_back(self, proposal: Proposal) -> Invalid | None:
        for release in proposal.releases:
            node = self.nodes[release.node]
            if node.held_by is not None:
                return Invalid(OutcomeReason.PROTECTED, f"it is annotated {node.held_by}")
            if node.name in self.view.unread:
                return Invalid(OutcomeReason.UNREADABLE_POD, cannot_be_read(self.view.unread[node.name]))
            rules = msgspec.structs.replace(self._rules(node), migration=MigrationMethod.EVICT)
            context = Context(rules, BudgetLedger(self.view.budgets), self.now)
            for pod in self.held(node.name):
                verdict = drain_rules.judge_handing_back(pod, context)
                if verdict.waits:
                    return Invalid(OutcomeReason.ENDS_FIRST, verdict.message)
                if verdict.blocked not in (None, Blocking.NOT_ENOUGH_PDB) and not pod.is_terminating:
                    return Invalid(OutcomeReason.PROTECTED, f"{verdict.blocked}: {verdict.message}")
        return None

    def _rules(self, node: Node | None) -> CleaningRules:
        group = self.policy.group(node.group if node is not None else None)
        return group.cleaning if group is not None else CleaningRules()

    # Checks of moves that people ask for.

    def _can_be_moved(self, proposal: Proposal) -> Invalid | None:
        """Pods that belong to their node cannot: another would be made there at once. Plans never ask for those."""
        for move, pod in self._asked(proposal):
            if pod.is_daemon:
                return _refused(pod, (Refusal.OWNER_UNKNOWN, "a DaemonSet's pod belongs to its node"))
            if pod.is_mirror:
                return _refused(pod, (Refusal.OWNER_UNKNOWN, "it is the kubelet's own (a static pod)"))
            volumes = VolumeBook.of(self.view.volumes)
            if (why := refusal(pod, move.method, self.policy.migration, volumes)) is not None:
                return _refused(pod, why)
        return None

    def _may_leave(self, proposal: Proposal) -> Invalid | None:
        """A wish that the pod stay where it is, which plans heed, too."""
        for move, pod in self._asked(proposal):
            context = Context(self._rules(self.nodes.get(move.source)), BudgetLedger(self.view.budgets, ()), self.now)
            verdict = drain_rules.promised(pod, context)
            if verdict is not None and verdict.blocked is not None:
                why = f"{verdict.blocked.value}: {verdict.message}; --force moves it all the same"
                return _refused(pod, (Refusal.PROTECTED, why))
        return None

    def _has_room(self, proposal: Proposal) -> Invalid | None:
        """Whether both nodes can do what the method asks of them, and the scheduler's filters accept the pod."""
        assert self.snapshot is not None
        for move, pod in self._asked(proposal):
            source, target = self.nodes.get(move.source), self.nodes[move.target or ""]
            why = source_refusal(source, move.method) if source is not None else None
            why = why or target_refusal(target, move.method)
            if why is not None:
                return _refused(pod, why)
            opening = open_simulation(self.snapshot, self.policy, self.now)
            sim, cls, row = opening.sim, opening.book.class_of(pod), opening.sim.table.row_of[target.name]
            if not sim.fits(cls, row):
                said = ", ".join(sim.diagnose(cls, slice(row, row + 1))) or "it takes no pods now"
                return _refused(pod, (Refusal.NO_ROOM, f"node {target.name}: {said}"))
        return None

    def _asked(self, proposal: Proposal) -> Iterator[tuple[Move, Pod]]:
        return ((move, self.pods[move.pod]) for move in proposal.moves)


def _refused(pod: Pod, why: tuple[Refusal, str]) -> Refused:
    return Refused(OutcomeReason.MOVE_FAILED, f"pod {pod.key}: {why[1]}", why[0])


Check = Callable[[Validator, Proposal], Invalid | None]
_EMPTIES: Sequence[Check] = (Validator._may_be_emptied, Validator._targets_are_open)
CHECKS: Mapping[ProposalReason, Sequence[Check]] = {
    **{reason: _EMPTIES for reason in ProposalReason if reason.empties_nodes},
    ProposalReason.PREEMPTED: (Validator._somebody_waits, Validator._victims_may_leave),
    ProposalReason.HANDED_BACK: (Validator._may_be_handed_back,),
    ProposalReason.REQUESTED: (Validator._can_be_moved, Validator._may_leave, Validator._has_room),
    ProposalReason.FORCED: (Validator._can_be_moved, Validator._has_room),
    # Begun by the rearrangement, which is judged as a whole in `planning/disrupt/rearrangement/validity.py`.
    ProposalReason.REARRANGED: (),
    ProposalReason.INSTEAD_OF_LAUNCH: (),
    ProposalReason.NEARER_TO_USERS: (),
}


def pods_to_leave(pods: Iterable[Pod], node: str, now: float) -> list[Pod]:
    """Pods that must leave a node before its machine goes."""
    return [pod for pod in pods if pod.node == node and must_leave(pod, now)]
