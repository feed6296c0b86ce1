"""Machines: keeps the journal of claims, the cloud and the cluster in agreement, one machine at a time.

What the cloud is asked for is not waited for: its answer comes with a later cycle, and until then the claim is left
alone (`CloudCalls.under_way`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from htas.execution.backoff import Backoffs
from htas.execution.bookkeeping import Bookkeeper
from htas.execution.claim_life import (
    ClaimStep,
    Then,
    in_state,
    is_news,
    next_step,
    not_ahead,
    stepped,
    timed,
    was_away,
)
from htas.execution.claims_seen import too_many_unready
from htas.execution.cloud_calls import LONGEST_DELETE_PAUSE_S, CloudCalls
from htas.execution.deletion_gate import DeletionGate
from htas.execution.identity import NOBODY, Identity, identify, is_named_for
from htas.execution.initializing import Initializing, ended
from htas.execution.joined import Joined
from htas.execution.journal import put_together
from htas.execution.launching import OwnersOf, adopted, launch, no_owners
from htas.execution.leftover_nodes import close, delete_node
from htas.execution.machine_orders import Orders
from htas.execution.node_labels import NodeLabels
from htas.execution.other_flavours import as_it_is, told, was_not_ordered
from htas.execution.our_machines import by_claim, ours_of, strangers
from htas.execution.ports import Ports
from htas.model.claims import ClaimState, Instance, InstanceState, NodeClaim
from htas.model.machine_times import MachineTimes
from htas.model.nodes import Node
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Policy
from htas.model.proposals import Launch
from htas.model.reasons import OutcomeReason
from htas.model.snapshot import ClusterView
from htas.planning.namespaces import pins
from htas.ports import ConflictError, HTASError

_COMING_UP = frozenset({ClaimState.REQUESTED, ClaimState.ACTIVE, ClaimState.REGISTERED, ClaimState.READY})


class Machines:
    """Buys, follows and clears away machines. It touches only what carries this cluster's name."""

    def __init__(self, ports: Ports, cloud: CloudCalls, policy: Policy, backoffs: Backoffs) -> None:
        self.gate = DeletionGate(ports, policy.timeouts)
        self._orders = Orders(ports, policy, backoffs, self.gate)
        self._ports = ports
        self._backoffs = backoffs
        self.cloud = cloud
        self.times = MachineTimes()
        self._joined = Joined(ports, cloud)
        self._labels = NodeLabels(ports)
        self.bookkeeper = Bookkeeper(ports, cloud, policy)
        self._looked_at: float | None = None
        """When all claims were compared with cloud and cluster last."""
        self._listed: Mapping[str, Instance] = {}
        """The machine that the cloud listed last for each claim."""
        self._instances: Sequence[Instance] = ()
        """All that the cloud listed last."""
        self._known: Sequence[NodeClaim] = ()
        """What the journal held last."""
        self.identity: Identity = NOBODY
        """Whose machine each node is, as of the last look."""
        self._was_away = True

    @property
    def policy(self) -> Policy:
        return self._orders.policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._orders.policy = self.bookkeeper.policy = policy
        self.gate.timeouts = policy.timeouts

    def launch(
        self, launches: Sequence[Launch], owners_of: OwnersOf = no_owners, decided_at: float | None = None
    ) -> list[Outcome]:
        """Journal the claims, then have the cloud asked for their machines, several at a time.

        `decided_at` is the plan's instant (None: now): all claims of a plan are made then, so that the journal tells
        which launches were decided together.
        """
        if not launches:
            return []
        at = self._ports.clock.now() if decided_at is None else decided_at
        return launch(self._ports, self.cloud, self._orders, launches, owners_of, at)

    def observed(
        self, instances: Sequence[Instance] | None = None, claims: Sequence[NodeClaim] | None = None
    ) -> ClusterView:
        """The cluster as it is now, with the labels that are true of its nodes, and the promises that count.

        `instances` None: as the cloud listed them last; `claims` None: as the journal
        has them. Raises HTASError where the cluster does not answer.
        """
        view = self.identified(self._ports.cluster.observe(), instances, claims)
        return pins.within_limits(view, self.policy, self._ports.clock.now())

    def identified(
        self, view: ClusterView, instances: Sequence[Instance] | None, claims: Sequence[NodeClaim] | None
    ) -> ClusterView:
        """A look at the cluster, with the labels that are true of its nodes; each look goes through here."""
        if instances is not None:
            self._instances = instances
        if claims is not None:
            self._known = claims
        else:
            with suppress(HTASError):  # while the journal is away, what it held
                self._known = self._ports.store.claims()
        self.identity = identify(view.nodes, self._known, self._instances, self.policy.cluster)
        self.gate.look(self.identity.nodes, self._known, self._instances)
        return self.identity.applied(view)

    def reconcile(self, view: ClusterView, instances: Sequence[Instance]) -> list[Outcome]:
        """Take every claim one step further, adopt machines the journal does not know, clear leftovers.

        `view` is as `observed` has it, or as the cluster shows it.
        """
        if view.nodes is not self.identity.nodes or instances is not self._instances:
            view = self.identified(view, instances, None)
        under_way = self.cloud.under_way  # before the journal is read: an answer may be written down at any moment
        known = claims = self._claims()
        mine = ours_of(claims, instances, self.policy.cluster)
        self.bookkeeper.begin(mine)
        ours, doubles = by_claim(claims, mine, self.policy.cluster)
        self._listed = ours
        self._delete_doubles(doubles, under_way)
        nodes = dict(self.identity.of_claim)
        is_partition = too_many_unready(list(nodes.values()))
        self._was_away = was_away(self._looked_at, self._ports.clock.now(), self.policy.cycles)
        claims, outcomes = self._as_they_are(claims, under_way, ours)
        initializing = Initializing(self._ports, self.policy, view, claims, nodes)
        claims, found = self._further(claims, under_way, ours, initializing)
        outcomes += found
        self._joined.revoke(claims.values(), under_way)
        for claim in claims.values():
            if claim.id not in under_way:
                outcomes += self._step(claim, ours.get(claim.id), initializing, is_partition)
        for claim_id, instance in ours.items():
            is_open = claim_id not in claims and claim_id not in under_way
            if is_open and instance.state is not InstanceState.DELETING:
                outcomes += self._adopt(instance)
        for claim_id, node in nodes.items():
            is_open = claim_id not in claims and claim_id not in ours and claim_id not in under_way
            # One that is Ready runs on something, whatever the list says; by its label alone a node is not ours.
            is_gone = is_open and not node.is_ready and is_named_for(node, claim_id)
            if is_gone and self.gate.on_nodes(view, [node]) is None:
                outcomes.append(delete_node(self._ports.cluster, node.name, "its machine is gone"))
        outcomes += self.bookkeeper.settle(known, self._claims(), mine, instances)
        self._looked_at = self._ports.clock.now()
        return outcomes

    def _claims(self) -> dict[str, NodeClaim]:
        """Those in the journal, without the ones whose machines bear the name of another cluster of HTAS."""
        theirs = strangers(self._instances, self.policy.cluster)
        return {claim.id: claim for claim in self._ports.store.claims() if claim.instance not in theirs}

    def _as_they_are(
        self, claims: dict[str, NodeClaim], under_way: frozenset[str], ours: Mapping[str, Instance]
    ) -> tuple[dict[str, NodeClaim], list[Outcome]]:
        """The claims with the flavours that the cloud says it runs; what people are told where those are others."""
        catalogue = self.policy.catalogue
        listed = ((claim, ours.get(claim.id)) for claim in claims.values() if claim.id not in under_way)
        true = [(claim, as_it_is(claim, machine, catalogue)) for claim, machine in listed if machine is not None]
        changed = [(claim, now) for claim, now in true if now is not claim]
        if not changed:
            return claims, []
        written = put_together(self._ports.store, [now for _, now in changed])
        outcomes = []
        for claim, now in changed:
            if claim.id not in written or now.flavour == claim.flavour:
                continue
            message = told(claim, now, catalogue)
            outcomes.append(Outcome(Action.OTHER_FLAVOUR, claim.id, OutcomeStatus.DONE, message))
            if was_not_ordered(claim, now):  # ordering it again would bring the same
                self._backoffs.failed(claim.flavour, claim.zone, message, self._ports.clock.now())
        return (claims | written if len(written) == len(changed) else self._claims()), outcomes

    def _further(
        self,
        claims: dict[str, NodeClaim],
        under_way: frozenset[str],
        ours: Mapping[str, Instance],
        initializing: Initializing,
    ) -> tuple[dict[str, NodeClaim], list[Outcome]]:
        """The claims, those whose machines have come a step further as they are now: journalled together.

        With one wait for the disk each, a hundred machines that come up at once held a cycle up for seconds.
        """
        now = self._ports.clock.now()
        steps: list[tuple[NodeClaim, ClaimStep, Node | None]] = []
        for claim in claims.values():
            instance, node = ours.get(claim.id), initializing.nodes.get(claim.id)
            if instance is None or claim.instance is None or claim.id in under_way:
                continue
            step = next_step(claim, instance, node, now, self.policy.timeouts, initializing.lacks(claim, node))
            if is_news(claim, step, node) and step.then is Then.NOTHING and step.state in _COMING_UP:
                steps.append((claim, step, node))
        if len(steps) < 2:
            return claims, []
        written = put_together(self._ports.store, [stepped(claim, step, node, now) for claim, step, node in steps])
        found: list[Outcome] = []
        for before, step, node in steps:
            if before.id in written:
                self._time(before, step, now)
                found += self._learn_from(before, written[before.id], step, node, initializing)
        # Another writer's words are gone on from one by one, as they are now: our version of them is stale.
        return claims | written if len(written) == len(steps) else self._claims(), found

    def _delete_doubles(self, doubles: Iterable[Instance], under_way: frozenset[str]) -> None:
        for each in doubles:
            if not {each.id, each.claim} & under_way:
                self.cloud.begin(each.id, partial(self._orders.delete_double, each), LONGEST_DELETE_PAUSE_S)

    def put(self, claim: NodeClaim, state: ClaimState, message: str = "") -> NodeClaim:
        """Journal a claim's new state."""
        return self._ports.store.put_claim(in_state(claim, ClaimStep(state, message=message), self._ports.clock.now()))

    def release(self, claim: NodeClaim) -> None:
        """Have a machine's end asked for; whether it is gone shows in a later listing.

        Where the cloud lists another machine for the claim than it said it made, that one's too: the id that was told
        is nobody's, and the machine would be paid for as long as the cloud is there.
        """
        listed = self._listed.get(claim.id)
        known = dict.fromkeys((claim.instance, listed.id if listed is not None else None))
        ids = [instance_id for instance_id in known if instance_id is not None]
        self.cloud.begin(claim.id, partial(self._orders.delete, claim, ids), LONGEST_DELETE_PAUSE_S)

    def _step(
        self, claim: NodeClaim, instance: Instance | None, initializing: Initializing, is_partition: bool
    ) -> list[Outcome]:
        found: list[Outcome] = []
        node = initializing.nodes.get(claim.id)
        if instance is not None and claim.instance is None:
            claim = self._orders.own(claim, instance)
            found = [
                Outcome(Action.LAUNCH, claim.id, OutcomeStatus.DONE, "found by its claim: the first answer was lost")
            ]
        claim, had_failed = self._seen(claim, instance, node), claim.state is ClaimState.FAILED
        now = self._ports.clock.now()
        held = self._held(claim, node, initializing.view)
        step = next_step(claim, instance, node, now, self.policy.timeouts, initializing.lacks(claim, node), held)
        if step.then is Then.ASK_AGAIN:
            self.cloud.begin(claim.id, partial(self._orders.order, claim))
            return found
        if step.state is ClaimState.FAILED and claim.state is ClaimState.REGISTERED and is_partition:
            return [
                *found,
                Outcome(Action.DELETE, claim.id, OutcomeStatus.DROPPED, "too many nodes are not Ready at once"),
            ]
        if step.state is ClaimState.RELEASED:
            self.cloud.forget(claim.id)
        if is_news(claim, step, node):
            self._time(claim, step, now)
            before, claim = claim, self._ports.store.put_claim(stepped(claim, step, node, now))
            found += self._learn_from(before, claim, step, node, initializing)
            if before.state is ClaimState.FAILED and claim.state is ClaimState.READY:
                kept = OutcomeReason.PODS_RUN
                found.append(Outcome(Action.DELETE, claim.id, OutcomeStatus.DROPPED, claim.message, kept))
        if step.then is Then.CLEAN_UP:
            if instance is None and claim.state is ClaimState.FAILED and not had_failed:
                found.append(Outcome(Action.DELETE, claim.id, OutcomeStatus.DONE, claim.message))
            return found + self._clean_up(claim, step, instance, node, initializing.view)
        if node is None:
            return found
        return found + self._labels.set_right(claim, self.identity.as_labelled.get(node.name, node), self.policy)

    def _held(self, claim: NodeClaim, node: Node | None, view: ClusterView) -> str | None:
        """What runs on the Ready node of a failed claim, as the gate has it before a delete."""
        if claim.state is not ClaimState.FAILED or node is None or not node.is_ready:
            return None
        return self.gate.runs_on(view, claim.instance or "", claim.id, node.name)

    def _time(self, claim: NodeClaim, step: ClaimStep, now: float) -> None:
        """What a step teaches of how long machines take, unless nobody looked when it came about."""
        if not self._was_away:
            self.times = timed(self.times, claim, step, now)

    def _seen(self, claim: NodeClaim, instance: Instance | None, node: Node | None) -> NodeClaim:
        """Note since when the cloud has not listed a claim's machine, or lists it as going.

        Likewise the name under which its node has registered anew, and the group that it was adopted into.
        """
        now, known = self._ports.clock.now(), claim
        claim = not_ahead(claim, now)
        if node is not None and claim.node not in (None, node.name):
            claim = msgspec.structs.replace(claim, node=node.name)
        adopted = instance.group if instance is not None else None
        if adopted != claim.group and adopted and self.policy.group(adopted) is not None:
            claim = msgspec.structs.replace(claim, group=adopted)
        is_missing = instance is None and claim.instance is not None
        is_leaving = instance is not None and instance.state is InstanceState.DELETING
        missing = (claim.missing_since or now) if is_missing else None
        leaving = claim.leaving_since if is_missing else (claim.leaving_since or now) if is_leaving else None
        if claim is known and (missing, leaving) == (claim.missing_since, claim.leaving_since):
            return claim
        return self._ports.store.put_claim(msgspec.structs.replace(claim, missing_since=missing, leaving_since=leaving))

    def _learn_from(
        self, before: NodeClaim, claim: NodeClaim, step: ClaimStep, node: Node | None, initializing: Initializing
    ) -> list[Outcome]:
        """What a change of state teaches: a flavour that fails backs off, an initialized node shows what it offers.

        A cloud that never answered says nothing of the flavour, nor does a machine that ran.
        """
        if step.state is ClaimState.FAILED and before.state in _COMING_UP - {ClaimState.READY}:
            self._backoffs.failed(claim.flavour, claim.zone, step.message, self._ports.clock.now())
        if step.state is ClaimState.READY and not step.message:
            self._backoffs.worked(claim.flavour, claim.zone)
        is_new = node is not None and before.ready_at is None and before.state in _COMING_UP
        timed_out = (
            is_new and claim.state is not before.state and bool(step.message) and before.node_ready_at is not None
        )
        outcomes = ended(claim) if timed_out else []
        if node is not None and is_new and (timed_out or claim.state is ClaimState.READY):
            outcomes += initializing.learn(claim, node)
        return outcomes

    def _clean_up(
        self, claim: NodeClaim, step: ClaimStep, instance: Instance | None, node: Node | None, view: ClusterView
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        idle: list[Node] = []
        if instance is not None:
            if claim.leaving_since is not None:  # asked for its end anew, and waited for anew
                renewed = msgspec.structs.replace(claim, leaving_since=self._ports.clock.now())
                claim = self._ports.store.put_claim(renewed)
            message = step.message or claim.message
            self.release(msgspec.structs.replace(claim, instance=instance.id, message=message))
        if node is not None and instance is None:
            doubles = (each for each in view.nodes if self.identity.doubles.get(each.name) == node.name)
            idle = [each for each in (node, *doubles) if self.gate.on_nodes(view, [each]) is None]
            outcomes += [delete_node(self._ports.cluster, each.name, claim.message) for each in idle]
        if node is not None and node not in idle and claim.state is ClaimState.FAILED and not node.is_unschedulable:
            outcomes += close(self._ports.cluster, node.name)
        return outcomes

    def _adopt(self, instance: Instance) -> list[Outcome]:
        """A machine with our name that no open claim knows: the journal was lost, or it outlived its release."""
        claim = adopted(self.policy, instance, self._ports.clock.now())
        try:
            self._ports.store.put_claim(claim)
        except ConflictError:
            if any(known.id == claim.id for known in self._ports.store.claims()):
                return []  # the journal has learned of it only now, from a store that was away: followed from here on
            self.release(msgspec.structs.replace(claim, message="it had been deleted already"))
            return []
        return [Outcome(Action.ADOPT, claim.id, OutcomeStatus.DONE, f"{instance.flavour} known to the cloud alone")]
