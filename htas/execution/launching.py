"""Launching: claims are journalled, then the cloud is asked for their machines, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from htas.execution.cloud_calls import CloudCalls
from htas.execution.crash_points import reached
from htas.execution.journal import put_singly, put_together
from htas.execution.machine_orders import Orders
from htas.execution.ports import Ports
from htas.model.billing import Price
from htas.model.claims import ClaimState, Instance, NodeClaim
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Policy
from htas.model.proposals import Launch
from htas.ports import HTASError

OwnersOf = Callable[[str], tuple[str, ...]]
"""The marks of the owners that a claim is for."""


def no_owners(claim: str) -> tuple[str, ...]:
    return ()


def launch(
    ports: Ports,
    cloud: CloudCalls,
    orders: Orders,
    launches: Sequence[Launch],
    owners_of: OwnersOf,
    decided_at: float,
) -> list[Outcome]:
    """Journal the claims of launches, then have their machines asked for; what could not be journalled is told."""
    now = ports.clock.now()
    claims = [wanted(orders.policy, each, owners_of(each.claim), decided_at, now) for each in launches]
    try:
        together = put_together(ports.store, claims)
    except HTASError as error:
        what = f"not launched, since it cannot be journalled: {error}"
        return [Outcome(Action.LAUNCH, claim.id, OutcomeStatus.FAILED, what) for claim in claims]
    singly, outcomes = put_singly(ports.store, [claim for claim in claims if claim.id not in together])
    reached("launch.journalled")
    for claim in (*together.values(), *singly):
        cloud.begin(claim.id, partial(orders.order, claim))
    return outcomes


def wanted(policy: Policy, launch: Launch, owners: tuple[str, ...], decided_at: float, now: float) -> NodeClaim:
    """The claim of a launch that was decided."""
    price = policy.catalogue.price(launch.flavour, launch.zone)
    return NodeClaim(
        id=launch.claim,
        group=launch.group,
        flavour=launch.flavour,
        state=ClaimState.WANTED,
        created_at=decided_at,
        since=now,
        zone=launch.zone,
        nanos_per_hour=launch.nanos_per_hour,
        replaces=launch.replaces,
        cap=price.cap if price is not None else None,
        launched_for=owners,
    )


def adopted(policy: Policy, instance: Instance, now: float) -> NodeClaim:
    """The claim of a machine with our name that the journal does not know."""
    price = policy.catalogue.price(instance.flavour, instance.zone) or Price(0)
    return NodeClaim(
        id=instance.claim or "",
        group=instance.group or "",
        flavour=instance.flavour,
        state=instance.state.of_its_claim or ClaimState.REQUESTED,
        created_at=instance.created_at,
        since=now,
        zone=instance.zone,
        instance=instance.id,
        nanos_per_hour=price.nanos_per_hour,
        cap=price.cap,
        rented_at=instance.launched_at,
        ready_at=now if now - instance.created_at >= policy.timeouts.initialization_s else None,
        is_adopted=True,
    )
