"""Orders: what the cloud is asked for, a call a machine, beside the cycles."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from htas.execution.backoff import Backoffs
from htas.execution.bill_life import opened
from htas.execution.claim_life import ClaimStep, in_state
from htas.execution.crash_points import reached
from htas.execution.deletion_gate import DeletionGate
from htas.execution.ports import Ports
from htas.model.claims import ClaimState, Instance, NodeClaim
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Policy
from htas.model.reasons import OutcomeReason
from htas.planning.cluster.machines import machine_node
from htas.ports import (
    CapacityError,
    ConflictError,
    HTASError,
    NotFoundError,
    PermanentError,
    RefusedError,
    TransientError,
)


@dataclass(slots=True)
class Orders:
    """Machines ordered and deleted. `order`, `delete` and `delete_double` return an outcome, whatever went wrong."""

    ports: Ports
    policy: Policy
    backoffs: Backoffs
    gate: DeletionGate

    def delete(self, claim: NodeClaim, ids: Sequence[str]) -> Outcome:
        try:
            return self._deleted(claim, ids)
        except HTASError as error:
            return Outcome(Action.DELETE, claim.id, OutcomeStatus.FAILED, f"tried again soon: {error}")

    def _deleted(self, claim: NodeClaim, ids: Sequence[str]) -> Outcome:
        for instance_id in ids:
            held = self._delete(instance_id, claim.id, claim.node)
            if held is not None:
                return _not_deleted(claim.id, held)
        reached("release.asked")
        if claim.version:  # else the journal does not know it
            self.ports.store.put_claim(msgspec.structs.replace(claim, leaving_since=self.ports.clock.now()))
        reached("release.recorded")
        return Outcome(Action.DELETE, claim.id, OutcomeStatus.DONE, claim.message)

    def _delete(self, instance_id: str, claim: str, node: str | None) -> str | None:
        """Delete a machine: the one place where that is done. What runs on it if it is not deleted for that."""
        held = self.gate.why_not(instance_id, claim, node)
        if held is None:
            with suppress(NotFoundError):
                self.ports.provider.delete(instance_id)
        return held

    def order(self, claim: NodeClaim) -> Outcome:
        try:
            return self._ordered(claim)
        except ConflictError as error:
            return Outcome(Action.LAUNCH, claim.id, OutcomeStatus.DROPPED, str(error))
        except HTASError as error:
            return Outcome(Action.LAUNCH, claim.id, OutcomeStatus.FAILED, f"taken up again soon: {error}")

    def _ordered(self, claim: NodeClaim) -> Outcome:
        group, flavour = self.policy.group(claim.group), self.policy.catalogue.named(claim.flavour)
        if group is None or flavour is None:
            why = "its group or flavour is no longer configured"
            self._fail(claim, why)
            return Outcome(Action.LAUNCH, claim.id, OutcomeStatus.DROPPED, why)
        node = machine_node(self.policy, group, flavour, claim.zone, claim.id)
        node = msgspec.structs.replace(node, taints=tuple(dict.fromkeys((*node.taints, *group.startup_taints))))
        try:
            instance = self.ports.provider.create(claim, flavour, node)
        except TransientError as error:
            return Outcome(Action.LAUNCH, claim.id, OutcomeStatus.FAILED, f"tried again soon: {error}")
        except (CapacityError, PermanentError) as error:
            now = self.ports.clock.now()
            if isinstance(error, RefusedError):  # another flavour would fare no better
                self.backoffs.failed(None, None, str(error), now)
            else:
                self.backoffs.failed(claim.flavour, claim.zone, str(error), now)
            self._fail(claim, str(error))
            return Outcome(Action.LAUNCH, claim.id, OutcomeStatus.FAILED, str(error))
        reached("launch.created")
        if instance.launched_at is not None:  # else its bill begins when a list says that it is charged for
            self.ports.store.put_bill(opened(instance, claim, self.policy.catalogue, instance.launched_at, 0))
        self.own(claim, instance)
        reached("launch.recorded")
        return Outcome(Action.LAUNCH, claim.id, OutcomeStatus.DONE, f"{claim.flavour} for group {claim.group}")

    def own(self, claim: NodeClaim, instance: Instance) -> NodeClaim:
        """Write down which machine is the claim's."""
        state = instance.state.of_its_claim or ClaimState.REQUESTED
        known = msgspec.structs.replace(claim, instance=instance.id, rented_at=instance.launched_at)
        return self.ports.store.put_claim(
            in_state(known, ClaimStep(state), self.ports.clock.now()) if claim.state is ClaimState.WANTED else known
        )

    def delete_double(self, instance: Instance) -> Outcome:
        try:
            held = self._delete(instance.id, instance.claim or "", None)
        except HTASError as error:
            return Outcome(Action.DELETE, instance.id, OutcomeStatus.FAILED, str(error))
        if held is not None:
            return _not_deleted(instance.id, held)
        return Outcome(Action.DELETE, instance.id, OutcomeStatus.DONE, f"a second machine of claim {instance.claim}")

    def _fail(self, claim: NodeClaim, message: str) -> None:
        self.ports.store.put_claim(
            in_state(claim, ClaimStep(ClaimState.FAILED, message=message), self.ports.clock.now())
        )


def _not_deleted(subject: str, held: str) -> Outcome:
    what = f"not deleted: {held}; tried again once it has left"
    return Outcome(Action.DELETE, subject, OutcomeStatus.FAILED, what, OutcomeReason.PODS_RUN)
