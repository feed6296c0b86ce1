"""Launches in the journal: a claim names the owners that it was launched for until its launch is settled for them.

So the claims alone tell what the bound on launches must count after a restart, whatever became of history.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from htas.execution.journal import put_together
from htas.model.claims import ClaimState, NodeClaim
from htas.model.launches import Launches
from htas.ports import StorePort

_SERVING = frozenset({ClaimState.READY, ClaimState.DRAINING})


def journal_settled(
    store: StorePort, claims: Sequence[NodeClaim], launches: Launches, under_way: Collection[str]
) -> None:
    """Take owners off claims whose launches are settled for them.

    Claims that the cloud is being asked about (`under_way`), and what another writer was first with, wait for the next
    cycle. Raises HTASError where the journal cannot be written.
    """
    settled = []
    for claim in claims:
        if claim.launched_for and claim.state in _SERVING and claim.id not in under_way:
            marks = (mark for mark in claim.launched_for if not launches.is_settled(claim.id, claim.created_at, mark))
            if (left := tuple(marks)) != claim.launched_for:
                settled.append(msgspec.structs.replace(claim, launched_for=left))
    if settled:
        put_together(store, settled)
