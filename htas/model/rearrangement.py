"""Rearrangements: many pods moved at once so that more important work finds room.

What the optimiser answers when pods wait and nothing can be bought: a better placement of what is there, tier of
priority by tier, with a bound for each, and what must leave its node for it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.pods import Pod
from htas.model.proposals import Proposal, Seat
from htas.model.reasons import ProposalReason


class RearrangementStatus(StrEnum):
    """What a search came to. Every one but the last is a statement that holds."""

    PROVEN_OPTIMAL = "ProvenOptimal"
    """Better than the present placement, and no placement is better in any tier."""
    IMPROVED = "Improved"
    """Better than the present placement; time ended before some tier was proven."""
    ALREADY_OPTIMAL = "AlreadyOptimal"
    """The present placement is proven to be the best one."""
    NO_BETTER_FOUND = "NoBetterFound"
    """Nothing better was found in time, and nothing was proven."""


class PriorityTier(msgspec.Struct, frozen=True):
    """The pods of one priority, and what the search came to for them and all above them.

    `wanted`, `placed_before` and `placed_after` count the pods of this priority alone. The others are of this priority
    and all higher ones: `placed_bound` is what no placement can exceed; `stays` is Σ(placed + stay) over running pods
    (2: it stays, 1: it moves, 0: it is evicted), and `stays_bound` what no placement with as many placed can exceed.
    """

    priority: int
    wanted: int
    placed_before: int
    placed_after: int
    placed_bound: int
    is_placing_proven: bool
    stays: int
    stays_bound: int
    is_staying_proven: bool


class Rearrangement(msgspec.Struct, frozen=True):
    """A placement to be carried out; `tiers` from the highest priority. `found_at` is when its snapshot was taken."""

    found_at: float
    status: RearrangementStatus
    tiers: tuple[PriorityTier, ...] = ()
    moves: tuple[Move, ...] = ()
    seats: tuple[Seat, ...] = ()
    message: str = ""

    @property
    def is_better(self) -> bool:
        return self.status in (RearrangementStatus.PROVEN_OPTIMAL, RearrangementStatus.IMPROVED)

    @property
    def proposal(self) -> Proposal:
        """What is to be done about it."""
        return Proposal(ProposalReason.REARRANGED, self.moves, seats=self.seats)


class Slot(msgspec.Struct, frozen=True, omit_defaults=True):
    """Room on `node` that is kept for one pod until it is bound there; `pod` is that pod as it was last seen.

    A waiting pod has no `source`. One that moves leaves its source for the slot; where it comes back under another
    name, the slot is for whichever pod its owner makes instead.
    """

    pod: Pod
    node: str
    source: str | None = None
    method: MigrationMethod = MigrationMethod.EVICT
    left_at: float | None = None
    """When it was first seen to be gone from its source, or, of a waiting pod, to be gone."""
    twin: str = ""
    """The uid of the pod that takes its place on the slot's node, once a move has made one."""
    is_aim: bool = False
    """Of a suggestion: whether the other moves are made for it. Without any such, they would gain nothing."""

    @property
    def reason(self) -> MoveReason:
        return MoveReason.NEARER_TO_USERS if self.is_aim else MoveReason.MAKES_ROOM

    @property
    def is_away(self) -> bool:
        """Whether its pod waits, or will once its owner has made another; else it runs at its source."""
        return self.source is None or self.left_at is not None


NOBODY = -(2**31)
"""The priority of a rearrangement that is made for no waiting pod: none may be disturbed for its sake."""


class OpenRearrangement(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="rearrangement"):
    """A rearrangement that is being carried out, as journalled: what of it is not done yet.

    A suggestion (it was proposed for the edge's sake) is given up as a whole once somebody else has put one of its pods
    elsewhere, or taken it away (`lost` counts them). It is complete only when the pods that filled its slots are Ready;
    `starting` are the uids of those that are not yet.

    `settled` are the uids of pods on the slots' nodes that look like those that will come: they were there from the
    start, or have filled a slot, and fill no other. The counts tell what was done so far.
    """

    started_at: float
    priority: int
    """Of the most important pod it seats: for its sake others may be disturbed."""
    slots: tuple[Slot, ...] = ()
    victims: tuple[Pod, ...] = ()
    """Running pods that are evicted for nowhere: each waits again, as any other."""
    settled: tuple[str, ...] = ()
    seated: int = 0
    moved: int = 0
    evicted: int = 0
    version: int = 0
    is_suggestion: bool = False
    lost: int = 0
    starting: tuple[str, ...] = ()
    why: str = ""
    """What it is made for, in words, where that is not that nothing can be bought."""

    @property
    def id(self) -> str:
        return "rearrangement"

    @property
    def is_complete(self) -> bool:
        return not (self.slots or self.victims or self.starting)

    @property
    def nodes(self) -> frozenset[str]:
        """Every node that it fills or empties."""
        names = {slot.node for slot in self.slots} | {victim.node for victim in self.victims if victim.node is not None}
        return frozenset(names | {slot.source for slot in self.slots if slot.source is not None})
