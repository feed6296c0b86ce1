"""What machines join by ends once they have joined, or are not to any more."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from htas.execution.cloud_calls import LONGEST_DELETE_PAUSE_S, CloudCalls
from htas.execution.ports import Ports
from htas.model.claims import ClaimState, NodeClaim
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.ports import HTASError, JoinPort

_MAY_JOIN = frozenset({ClaimState.WANTED, ClaimState.REQUESTED, ClaimState.ACTIVE})
"""A node registers with a certificate that the machine got by its token: from then on the token is not needed."""


class Joined:
    """Revokes once for each claim and life of the daemon: whoever died in between did not write down how far it was.

    What has ended by itself is left alone: after a start, machines that joined long ago cost no calls.
    """

    def __init__(self, ports: Ports, cloud: CloudCalls) -> None:
        self._join = ports.join
        self._clock = ports.clock
        self._cloud = cloud
        self._revoked: set[str] = set()

    def revoke(self, claims: Iterable[NodeClaim], under_way: frozenset[str]) -> None:
        """Revoke for those that are not to join any more; not while the cloud is being asked about a machine."""
        if self._join is None:
            return
        over = [claim for claim in claims if claim.state not in _MAY_JOIN]
        self._revoked &= {claim.id for claim in over}  # others are gone, and their names do not come again
        now = self._clock.now()
        for claim in over:
            subject = f"{claim.id}/token"
            is_open = claim.id not in self._revoked and not {claim.id, subject} & under_way
            if is_open and now < self._join.ends_at(claim):
                self._cloud.begin(subject, partial(self._revoke, self._join, claim), LONGEST_DELETE_PAUSE_S)

    def _revoke(self, join: JoinPort, claim: NodeClaim) -> Outcome:
        try:
            join.revoke(claim)
        except HTASError as error:
            return Outcome(Action.REVOKE_TOKEN, claim.id, OutcomeStatus.FAILED, f"tried again soon: {error}")
        self._revoked.add(claim.id)
        return Outcome(Action.REVOKE_TOKEN, claim.id, OutcomeStatus.DONE)
