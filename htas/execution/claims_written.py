"""Writing several claims down at once, and telling what was written where another writer was first with some."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from htas.model.claims import NodeClaim
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.ports import ConflictError, HTASError, StorePort


def put_together(store: StorePort, claims: Sequence[NodeClaim]) -> dict[str, NodeClaim]:
    """Claims as they are written, by id, without those that another writer was first with.

    A store may have written some before it met the other writer's (`StorePort.put_claims`). Those are read again and
    known by their words: written once more they would be refused, as if somebody else had them. Raises as `put_claims`
    does, but for ConflictError.
    """
    try:
        return {claim.id: claim for claim in store.put_claims(claims)}
    except ConflictError:
        known = {claim.id: claim for claim in store.claims()}
    ours = (msgspec.structs.replace(claim, version=claim.version + 1) for claim in claims)
    return {claim.id: claim for claim in ours if known.get(claim.id) == claim}


def put_singly(store: StorePort, wanted: Sequence[NodeClaim]) -> tuple[list[NodeClaim], list[Outcome]]:
    """New claims of which another writer has some: those that are ours now, and what to tell of the others."""
    written, outcomes = [], []
    for claim in wanted:
        try:
            written.append(store.put_claim(claim))
        except HTASError as error:
            is_taken = isinstance(error, ConflictError)
            status = OutcomeStatus.DROPPED if is_taken else OutcomeStatus.FAILED
            what = "another writer has this claim already" if is_taken else f"it cannot be journalled: {error}"
            outcomes.append(Outcome(Action.LAUNCH, claim.id, status, what))
    return written, outcomes
