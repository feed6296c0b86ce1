"""Machines: keeps the journal of claims, the cloud and the cluster in agreement, one machine at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from htas.execution.backoff import Backoffs
from htas.execution.calls import Calls
from htas.execution.claim_life import Step, Then, in_state, next_step
from htas.execution.crash_points import reached
from htas.execution.ports import Ports
from htas.model.claims import ClaimState, Instance, InstanceState, NodeClaim
from htas.model.nodes import Node
from htas.model.plan import Launch
from htas.model.policy import Policy
from htas.model.record import Bill, Outcome, OutcomeStatus
from htas.model.snapshot import ClusterView
from htas.planning.scaling.offers import machine_node, offers_what_it_promised
from htas.ports import CapacityError, ConflictError, HTASError, NotFoundError, PermanentError, TransientError

_SHOWN = {InstanceState.BUILDING: ClaimState.REQUESTED, InstanceState.ACTIVE: ClaimState.ACTIVE}


class Machines:
    """Buys, follows and clears away machines. It touches only what carries this cluster's name."""

    def __init__(self, ports: Ports, calls: Calls, policy: Policy, backoffs: Backoffs) -> None:
        self.policy = policy
        self._ports = ports
        self._calls = calls
        self._backoffs = backoffs

    def launch(self, launches: Sequence[Launch]) -> list[Outcome]:
        """Journal the claims, then ask the cloud for their machines, several at a time."""
        outcomes, claims = [], []
        for launch in launches:
            try:
                claims.append(self._journal(launch))
            except ConflictError:
                what = "another writer has this claim already"
                outcomes.append(Outcome("launch", launch.claim, OutcomeStatus.DROPPED, what))
        return outcomes + self._calls.all(partial(self._ask, claim) for claim in claims)

    def _journal(self, launch: Launch) -> NodeClaim:
        now = self._ports.clock.now()
        claim = NodeClaim(
            id=launch.claim,
            group=launch.group,
            flavour=launch.flavour,
            state=ClaimState.WANTED,
            created_at=now,
            since=now,
            zone=launch.zone,
            nanos_per_hour=launch.nanos_per_hour,
        )
        written = self._ports.store.put_claim(claim)
        reached("launch.journalled")
        return written

    def reconcile(self, view: ClusterView, instances: Sequence[Instance]) -> list[Outcome]:
        """Take every claim one step further, adopt machines the journal does not know, clear leftovers."""
        claims = {claim.id: claim for claim in self._ports.store.claims()}
        ours, outcomes = self._one_for_each_claim(claims, instances)
        nodes = {n.claim: n for n in view.nodes if n.cluster == self.policy.cluster and n.claim is not None}
        is_partition = _too_many_unready(list(nodes.values()))
        for claim in claims.values():
            outcomes += self._step(claim, ours.get(claim.id), nodes.get(claim.id), is_partition)
        for claim_id, instance in ours.items():
            if claim_id not in claims and instance.state is not InstanceState.DELETING:
                outcomes.append(self._adopt(instance))
        for claim_id, node in nodes.items():
            if claim_id not in claims and claim_id not in ours:
                outcomes.append(self._delete_node(node.name, "its machine is gone"))
        return outcomes

    def _one_for_each_claim(
        self, claims: Mapping[str, NodeClaim], instances: Sequence[Instance]
    ) -> tuple[dict[str, Instance], list[Outcome]]:
        """Our machines by claim. A second one (a create repeated while its answer was lost) is deleted by its id."""
        ours: dict[str, Instance] = {}
        outcomes = []
        mine = [i for i in instances if i.cluster == self.policy.cluster and i.claim is not None]
        for instance in sorted(mine, key=lambda i: (not _is_known(i, claims), i.created_at, i.id)):
            first = ours.setdefault(instance.claim or "", instance)
            if first is not instance and instance.state is not InstanceState.DELETING:
                outcomes.append(self._delete_double(instance))
        return ours, outcomes

    def _delete_double(self, instance: Instance) -> Outcome:
        try:
            self._ports.provider.delete(instance.id)
        except HTASError as error:
            return Outcome("release", instance.id, OutcomeStatus.FAILED, str(error))
        return Outcome("release", instance.id, OutcomeStatus.DONE, f"a second machine of claim {instance.claim}")

    def put(self, claim: NodeClaim, state: ClaimState, message: str = "") -> NodeClaim:
        """Journal a claim's new state."""
        return self._ports.store.put_claim(in_state(claim, Step(state, message=message), self._ports.clock.now()))

    def delete_machine(self, claim: NodeClaim) -> Outcome:
        """Ask for a machine's end and close its bill; whether it is gone shows in the next listing."""
        try:
            if claim.instance is not None:
                self._ports.provider.delete(claim.instance)
        except NotFoundError:
            pass
        except HTASError as error:
            return Outcome("release", claim.id, OutcomeStatus.FAILED, str(error))
        reached("drain.machine-deleted")
        self._close_bill(claim)
        reached("release.recorded")
        return Outcome("release", claim.id, OutcomeStatus.DONE, claim.message)

    def _ask(self, claim: NodeClaim) -> Outcome:
        try:
            return self._asked(claim)
        except ConflictError as error:
            return Outcome("launch", claim.id, OutcomeStatus.DROPPED, str(error))

    def _asked(self, claim: NodeClaim) -> Outcome:
        group, flavour = self.policy.group(claim.group), self.policy.catalogue.named(claim.flavour)
        if group is None or flavour is None:
            self.put(claim, ClaimState.FAILED, "its group or flavour is no longer configured")
            return Outcome("launch", claim.id, OutcomeStatus.DROPPED, "its group or flavour is no longer configured")
        node = machine_node(self.policy, group, flavour, claim.zone, claim.id)
        try:
            instance = self._ports.provider.create(claim, flavour, node)
        except TransientError as error:
            return Outcome("launch", claim.id, OutcomeStatus.FAILED, f"asked again next cycle: {error}")
        except (CapacityError, PermanentError) as error:
            self._backoffs.failed(claim.flavour, claim.zone, str(error), self._ports.clock.now())
            self.put(claim, ClaimState.FAILED, str(error))
            return Outcome("launch", claim.id, OutcomeStatus.FAILED, str(error))
        reached("launch.created")
        self._own(claim, instance)
        reached("launch.recorded")
        return Outcome("launch", claim.id, OutcomeStatus.DONE, f"{claim.flavour} for group {claim.group}")

    def _own(self, claim: NodeClaim, instance: Instance) -> NodeClaim:
        """Write down which machine is the claim's, and open its bill."""
        store = self._ports.store
        store.put_bill(Bill(claim.id, claim.group, claim.flavour, claim.nanos_per_hour, started_at=instance.created_at))
        state = _SHOWN.get(instance.state, ClaimState.REQUESTED)
        known = msgspec.structs.replace(claim, instance=instance.id)
        return store.put_claim(
            in_state(known, Step(state), self._ports.clock.now()) if claim.state is ClaimState.WANTED else known
        )

    def _step(
        self, claim: NodeClaim, instance: Instance | None, node: Node | None, is_partition: bool
    ) -> list[Outcome]:
        if instance is not None and claim.instance is None:
            claim = self._own(claim, instance)
        claim = self._seen(claim, instance)
        now = self._ports.clock.now()
        step = next_step(claim, instance, node, now, self.policy.timeouts)
        if step.then is Then.ASK_AGAIN:
            return [self._ask(claim)]
        if step.state is ClaimState.FAILED and claim.state is ClaimState.REGISTERED and is_partition:
            return [Outcome("release", claim.id, OutcomeStatus.DROPPED, "too many nodes are not Ready at once")]
        if step.state is not claim.state:
            claim = self._ports.store.put_claim(
                msgspec.structs.replace(in_state(claim, step, now), node=node.name if node is not None else None)
            )
            self._note(claim, step, node)
        if step.then is Then.CLEAN_UP:
            return self._clean_up(claim, instance, node)
        return []

    def _seen(self, claim: NodeClaim, instance: Instance | None) -> NodeClaim:
        """Note since when the cloud has not listed a claim's machine, and that it does again."""
        is_missing = instance is None and claim.instance is not None
        if is_missing == (claim.missing_since is not None):
            return claim
        since = self._ports.clock.now() if is_missing else None
        return self._ports.store.put_claim(msgspec.structs.replace(claim, missing_since=since))

    def _note(self, claim: NodeClaim, step: Step, node: Node | None) -> None:
        """What a change of state teaches: a flavour that fails waits, a Ready one shows what it really offers."""
        if step.state is ClaimState.FAILED:
            self._backoffs.failed(claim.flavour, claim.zone, step.message, self._ports.clock.now())
        if step.state is ClaimState.READY and node is not None:
            self._backoffs.worked(claim.flavour, claim.zone)
            flavour = self.policy.catalogue.named(claim.flavour)
            is_complete = flavour is not None and offers_what_it_promised(node.allocatable, flavour)
            if is_complete and self._ports.store.learned().get(claim.flavour) != node.allocatable:
                self._ports.store.put_learned(claim.flavour, node.allocatable)

    def _clean_up(self, claim: NodeClaim, instance: Instance | None, node: Node | None) -> list[Outcome]:
        outcomes = []
        if instance is not None:
            outcomes.append(self.delete_machine(msgspec.structs.replace(claim, instance=instance.id)))
        else:
            self._close_bill(claim)
            if claim.state is ClaimState.FAILED:  # else its release was told when it was asked for
                outcomes.append(Outcome("release", claim.id, OutcomeStatus.DONE, claim.message))
        if node is not None and instance is None:
            outcomes.append(self._delete_node(node.name, claim.message))
        return outcomes

    def _delete_node(self, name: str, why: str) -> Outcome:
        try:
            self._ports.cluster.delete_node(name)
        except HTASError as error:
            return Outcome("delete-node", name, OutcomeStatus.FAILED, str(error))
        return Outcome("delete-node", name, OutcomeStatus.DONE, why)

    def _adopt(self, instance: Instance) -> Outcome:
        """A machine with our name that no open claim knows: the journal was lost, or it outlived its release."""
        now, claim_id = self._ports.clock.now(), instance.claim or ""
        flavour = self.policy.catalogue.named(instance.flavour)
        claim = NodeClaim(
            id=claim_id,
            group=instance.group or "",
            flavour=instance.flavour,
            state=_SHOWN.get(instance.state, ClaimState.REQUESTED),
            created_at=instance.created_at,
            since=now,
            zone=instance.zone,
            instance=instance.id,
            nanos_per_hour=flavour.nanos_per_hour if flavour is not None else 0,
        )
        try:
            self._ports.store.put_claim(claim)
        except ConflictError:
            return self.delete_machine(msgspec.structs.replace(claim, message="it had been released already"))
        self._ports.store.put_bill(
            Bill(claim.id, claim.group, claim.flavour, claim.nanos_per_hour, started_at=instance.created_at)
        )
        return Outcome("adopt", claim_id, OutcomeStatus.DONE, f"{instance.flavour} known to the cloud alone")

    def _close_bill(self, claim: NodeClaim) -> None:
        for bill in self._ports.store.bills(claim.created_at):
            if bill.claim == claim.id and bill.ended_at is None:
                self._ports.store.put_bill(msgspec.structs.replace(bill, ended_at=self._ports.clock.now()))


UNREADY_SHARE, UNREADY_COUNT = 0.45, 3
"""Cluster Autoscaler's max-total-unready-percentage and ok-total-unready-count: beyond, it is the network's fault."""


def _too_many_unready(nodes: Sequence[Node]) -> bool:
    unready = sum(not node.is_ready for node in nodes)
    return unready > UNREADY_COUNT and unready > UNREADY_SHARE * len(nodes)


def _is_known(instance: Instance, claims: Mapping[str, NodeClaim]) -> bool:
    claim = claims.get(instance.claim or "")
    return claim is not None and claim.instance == instance.id
