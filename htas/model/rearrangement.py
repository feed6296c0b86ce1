"""Rearrangements: many pods moved at once so that more important work finds room.

What the optimiser answers when pods wait and nothing can be bought: a better placement of what is there, tier of
priority by tier, with a bound for each, and what must leave its node for it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


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


class Tier(msgspec.Struct, frozen=True):
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


class Shift(msgspec.Struct, frozen=True, omit_defaults=True):
    """A running pod that leaves its node, for `target` or (None) for nowhere; `method` is a MigrationMethod's value."""

    pod: str
    uid: str
    source: str
    target: str | None
    method: str


class Seat(msgspec.Struct, frozen=True):
    """A waiting pod and the node it gets."""

    pod: str
    uid: str
    node: str


class Rearrangement(msgspec.Struct, frozen=True):
    """A placement to be carried out; `tiers` from the highest priority. `found_at` is when its snapshot was taken."""

    found_at: float
    status: RearrangementStatus
    tiers: tuple[Tier, ...] = ()
    shifts: tuple[Shift, ...] = ()
    seats: tuple[Seat, ...] = ()
    message: str = ""

    @property
    def is_better(self) -> bool:
        return self.status in (RearrangementStatus.PROVEN_OPTIMAL, RearrangementStatus.IMPROVED)
