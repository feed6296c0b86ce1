"""Beginning to lead after another daemon has led: what our own journal still plans has been overtaken.

Each daemon has a journal of its own, or its own copy of one that they share: a leader that was cut off may have gone on
beside it. The truth is in the cloud and the cluster. Machines that the other bought are
adopted by the first reconciliation; what must not happen is that an old intention of ours is carried out now.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from htas.execution.claim_life import ClaimStep, in_state
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.model.claims import ClaimState
from htas.model.disruptions import Disruption, Drain
from htas.model.outcomes import CLUSTER, Action, Outcome, OutcomeStatus
from htas.model.reasons import OutcomeReason
from htas.ports import StorePort

OVERTAKEN = "another daemon led meanwhile"
LONG_AGO = 0.0
"""Since when such a claim waits for its machine: beyond every timeout."""


def take_over(ports: Ports, machines: Machines) -> list[Outcome]:
    """Ask for no machine any more that was wanted then, and drop what another daemon has ended or undone since.

    A claim whose answer we never had may have a machine all the same, and the other daemon may have put it to use: the
    next look at the cloud tells. Only one that has none ends there.
    """
    return drop_intentions(ports.store, machines.cloud.under_way, ports.clock.now(), OVERTAKEN)


def drop_intentions(store: StorePort, under_way: Collection[str], now: float, why: str) -> list[Outcome]:
    """As `take_over`, on a store alone; `under_way` are claims that the cloud is being asked about."""
    outcomes = []
    claims = store.claims()
    going = {claim.id for claim in claims if claim.leaving_since is not None} | set(under_way)
    for claim in claims:
        if claim.id in going:
            continue  # the cloud is being asked, or has been told that it may go: that is not taken back
        if claim.state is ClaimState.WANTED and claim.instance is None:
            store.put_claim(msgspec.structs.replace(claim, since=LONG_AGO, message=why))
            outcomes.append(Outcome(Action.LAUNCH, claim.id, OutcomeStatus.DROPPED, why, OutcomeReason.OVERTAKEN))
        elif claim.state is ClaimState.DRAINING:
            store.put_claim(in_state(claim, ClaimStep(ClaimState.READY, message=why), now))
    for each in store.disruptions():
        if isinstance(each, Drain) and each.claim in going:
            continue
        store.delete_disruption(each.id, each.version)
        outcomes.append(_dropped(each, why))
    return outcomes


def _dropped(disruption: Disruption, message: str) -> Outcome:
    why = OutcomeReason.OVERTAKEN
    if isinstance(disruption, Drain):
        return Outcome(Action.DRAIN, disruption.node, OutcomeStatus.DROPPED, message, why)
    return Outcome(Action.REARRANGE, CLUSTER, OutcomeStatus.DROPPED, f"{why}: {message}", why)
