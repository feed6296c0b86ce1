"""Proposals: what every way of disrupting work comes to, from the plan that makes one to the queue that carries it out.

A proposal says for what pods leave their nodes, which machines come first and which go afterwards. It is done in that
order: launches, which are waited for; then moves; then releases. What it is made for tells which of the three it has.
"""

from __future__ import annotations

import msgspec

from htas.model.moves import Move
from htas.model.reasons import ProposalReason


class Launch(msgspec.Struct, frozen=True):
    """A machine to buy, and the pods it is bought for."""

    claim: str
    group: str
    flavour: str
    zone: str | None
    nanos_per_hour: int
    pods: tuple[str, ...]
    why: str = ""
    replaces: tuple[str, ...] = ()
    """Nodes that it replaces, with the other machines that name them: they are emptied once all are Ready."""

    @property
    def purpose(self) -> str:
        """In words: for how many pods, or else why."""
        if not self.pods:
            return self.why
        return "for 1 pod" if len(self.pods) == 1 else f"for {len(self.pods)} pods"


class Release(msgspec.Struct, frozen=True):
    """A node that is closed and emptied, and the claim of the machine that is given back then."""

    node: str
    claim: str


class Seat(msgspec.Struct, frozen=True):
    """A waiting pod and the node it gets."""

    pod: str
    uid: str
    node: str


class Proposal(msgspec.Struct, frozen=True, omit_defaults=True):
    """One disruption, done as a whole or given up: `value` is what it saves, in billionths an hour.

    Where it has `launches`, they are all that is done of it for now: once they are Ready, what is released for them is
    proposed anew, with its moves, by the cluster as it is then. `seats` are waiting pods that get the room which others
    leave.
    """

    reason: ProposalReason
    moves: tuple[Move, ...] = ()
    launches: tuple[Launch, ...] = ()
    releases: tuple[Release, ...] = ()
    seats: tuple[Seat, ...] = ()
    value: int = 0
    message: str = ""
    is_second_half: bool = False
    """Machines were bought for it and are Ready: who agreed to that has agreed to this."""

    @property
    def gives_back(self) -> tuple[Release, ...]:
        """Nodes that are emptied from now on."""
        return () if self.launches else self.releases
