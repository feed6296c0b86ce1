"""Handing machines back because an operator says so: all of them closed, emptied by the Eviction API, and released.

Nothing is placed meanwhile: what is evicted waits for whoever schedules it. A machine that a promise holds is not
touched, since half an emptied machine costs as much as a full one; it is told, and so is whatever does not go in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from htas.execution.calls import Call, Calls, attempted
from htas.execution.evictor import Evictor, first_to_leave
from htas.execution.machines import Machines
from htas.execution.our_machines import strangers
from htas.execution.ports import Ports
from htas.execution.taking_over import take_over
from htas.execution.validation import Validator, pods_to_leave
from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import Node
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.proposals import Proposal, Release
from htas.model.reasons import Invalid, OutcomeReason, ProposalReason
from htas.model.snapshot import ClusterView

HANDED_BACK = "handed back"
LEAVING = "it is being removed"
MAY_BE_CLOSED = (ClaimState.REGISTERED, ClaimState.READY)


class Left(msgspec.Struct, frozen=True):
    """A machine that is not gone yet, by its node or claim, and why. `is_held`: waiting alone will not help."""

    machine: str
    why: str
    is_held: bool = False


@dataclass(slots=True)
class HandingBack:
    """One step at a time. `own_pod` (namespace/name) is the pod this runs in, if any: its machine cannot go."""

    ports: Ports
    calls: Calls
    policy: Policy
    machines: Machines
    own_pod: str = ""
    only: frozenset[str] | None = None
    """The claims whose machines are handed back; None: all."""
    left: tuple[Left, ...] = ()
    """What is not gone, as of the last step."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is left, or nothing that another step would change."""
        return all(each.is_held for each in self.left)

    def begin(self) -> list[Outcome]:
        """Drop what was still intended: nothing is bought any more, and no drain of before is gone on with."""
        return take_over(self.ports, self.machines)

    def step(self) -> list[Outcome]:
        """Take every machine of ours as far as it can go now.

        Raises what cluster, cloud and journal raise where they cannot be read: the next step tries again.
        """
        instances = tuple(self.ports.provider.instances())
        view = self.machines.observed(instances)
        # Bills are the daemon's to speak of: where its store is not here, the one that is used is empty.
        outcomes = [o for o in self.machines.reconcile(view, instances) if o.action is not Action.RECONCILE]
        ours = {each.claim: each for each in instances if each.cluster == self.policy.cluster and each.claim}
        nodes = dict(self.machines.identity.of_claim)
        left: list[Left] = []
        emptying: list[tuple[NodeClaim, Node]] = []
        validator = Validator(view, self.policy, self.ports.clock.now(), ())
        theirs = strangers(instances, self.policy.cluster)
        for claim in self.ports.store.claims():
            node = nodes.pop(claim.id, None)
            if claim.instance in theirs or not self._is_meant(claim.id):
                continue
            if self._is_leaving(claim):
                left.append(Left(node.name if node is not None else claim.id, LEAVING))
            elif node is None:
                left.append(Left(claim.id, self._end(claim, outcomes)))
            elif (why := self._why_not(claim, node, validator)) is not None:
                left.append(Left(node.name, why.message, is_held=why.reason is not OutcomeReason.ENDS_FIRST))
            else:
                emptying.append((claim, node))
        known = {claim.id for claim in self.ports.store.claims()}
        left += [
            Left(claim, LEAVING)
            for claim in ours
            if claim not in known and claim not in nodes and self._is_meant(claim)
        ]
        left += [_without_claim(node, claim in ours) for claim, node in nodes.items() if self._is_meant(claim)]
        outcomes += self._close(emptying)
        left += self._empty(emptying, view, outcomes)
        self.left = tuple(left)
        return [*outcomes, *self.calls.done(), *self.machines.cloud.answers()]

    def give_up(self) -> list[Outcome]:
        """Open what is closed and has not left: work may run there again."""
        outcomes = []
        claims = {claim.id: claim for claim in self.ports.store.claims()}
        for node in self.machines.observed().nodes:
            claim = claims.get(node.claim or "")
            if node.cluster != self.policy.cluster or not node.is_draining or not self._is_meant(node.claim or ""):
                continue
            if claim is not None and self._is_leaving(claim):
                continue
            outcomes.append(attempted(Action.OPEN, node.name, partial(self._open, node, claim)))
        return outcomes

    def _open(self, node: Node, claim: NodeClaim | None) -> None:
        self.ports.cluster.set_draining(node.name, False)
        if claim is not None and claim.state is ClaimState.DRAINING:
            self.machines.put(claim, ClaimState.READY, "not handed back")

    def _is_meant(self, claim: str) -> bool:
        return self.only is None or claim in self.only

    def _is_leaving(self, claim: NodeClaim) -> bool:
        is_asked = claim.leaving_since is not None or claim.id in self.machines.cloud.under_way
        return is_asked or claim.state is ClaimState.FAILED

    def _end(self, claim: NodeClaim, outcomes: list[Outcome]) -> str:
        """A machine without a node is not waited for. What it is told as."""
        if claim.state is not ClaimState.WANTED:  # one whose order was lost is ended by the take-over
            ending = partial(self.machines.put, claim, ClaimState.FAILED, HANDED_BACK)
            outcomes.append(attempted(Action.END, claim.id, ending, "it has no node"))
        return "it has no node and is being removed"

    def _why_not(self, claim: NodeClaim, node: Node, validator: Validator) -> Invalid | None:
        """What holds a node; None: it may be emptied."""
        if any(pod.key == self.own_pod for pod in validator.held(node.name)):
            return Invalid(OutcomeReason.PROTECTED, f"{self.own_pod} runs on it, which hands back")
        return validator.why_not(Proposal(ProposalReason.HANDED_BACK, releases=(Release(node.name, claim.id),)))

    def _pods_of(self, node: Node, view: ClusterView) -> list[Pod]:
        return pods_to_leave(view.pods, node.name, self.ports.clock.now())

    def _close(self, emptying: Iterable[tuple[NodeClaim, Node]]) -> list[Outcome]:
        """All at once, before anybody is evicted: else they would land on the next machine to be emptied."""
        calls: list[Call] = []
        for claim, node in emptying:
            if not node.is_unschedulable:  # somebody else's cordon is closed enough, and stays theirs
                closing = partial(self.ports.cluster.set_draining, node.name, True)
                calls.append(partial(attempted, Action.CLOSE, node.name, closing, "takes no pods any more"))
            if claim.state in MAY_BE_CLOSED:
                self.machines.put(claim, ClaimState.DRAINING, HANDED_BACK)
        return self.calls.all(calls)

    def _empty(
        self, emptying: Sequence[tuple[NodeClaim, Node]], view: ClusterView, outcomes: list[Outcome]
    ) -> list[Left]:
        """Release what is empty, and evict from the rest; what is left of it."""
        left: list[Left] = []
        calls: list[Call] = []
        is_moving = bool(self.ports.migration.moving())
        for claim, node in emptying:
            pods = self._pods_of(node, view)
            if not node.is_unschedulable or claim.state is not ClaimState.DRAINING:
                left.append(Left(node.name, "it is being closed"))  # who came until then shows in the next view
            elif not pods:
                self.machines.release(claim)
                left.append(Left(node.name, LEAVING))
            elif is_moving:
                left.append(Left(node.name, "moves under way are finished first"))
            else:
                calls += self._evictions(node, pods)
        evicted = self.calls.all(calls)
        outcomes += evicted
        refused = {each.subject: each.message for each in evicted if each.status is not OutcomeStatus.DONE}
        told = {each.machine for each in left}
        rest = [node for _, node in emptying if node.name not in told]
        return left + [_waiting(node, self._pods_of(node, view), refused) for node in rest]

    def _evictions(self, node: Node, pods: Sequence[Pod]) -> list[Call]:
        """Of those who do not end yet, system-critical pods last."""
        group, evictor = self.policy.group(node.group), Evictor(self.ports, self.policy)
        return [
            partial(evictor.evict, pod, group, Action.EVICT, f"from {node.name}")
            for pod in first_to_leave(pods)
            if not pod.is_terminating
        ]


def _waiting(node: Node, pods: Sequence[Pod], refused: Mapping[str, str]) -> Left:
    """A node whose pods were evicted just now, or could not be."""
    kept = [f"{pod.key}: {refused[pod.key]}" for pod in pods if pod.key in refused]
    return Left(node.name, kept[0] if kept else f"pods on it that have not ended yet: {len(pods)}")


def _without_claim(node: Node, has_machine: bool) -> Left:
    """A node of ours that no open claim stands behind: its machine is going, or the cloud lists none."""
    if has_machine or not node.is_ready:
        return Left(node.name, LEAVING)
    return Left(node.name, "it is Ready, but the cloud lists no machine for it", is_held=True)


def forget(ports: Ports, policy: Policy) -> list[Outcome]:
    """Let every machine of ours run on as nobody's: its node is opened and bears none of our labels any more."""
    return [
        attempted(Action.FORGET, node.name, partial(_forget, ports, node), "it runs on")
        for node in ports.cluster.observe().nodes
        if node.cluster == policy.cluster
    ]


def _forget(ports: Ports, node: Node) -> None:
    if node.is_draining:
        ports.cluster.set_draining(node.name, False)
    ports.cluster.disown_node(node.name)
