"""The plan: what to do, what it costs, and a reason for everything left undone. Pure data."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from htas.model.moves import Move
from htas.model.rearrangement import Seat
from htas.model.reasons import Kept, OutcomeReason, Removal, Unplaced
from htas.model.snapshot import Memory


class Bind(msgspec.Struct, frozen=True):
    pod: str
    node: str


class Nomination(msgspec.Struct, frozen=True):
    """Room kept for a pod that is not bound by this plan; `node` is a node or a claim on its way."""

    pod: str
    node: str
    why: str


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


class Carrying(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the rearrangement under way goes on: by these steps, or (`cancel`) not at all.

    Where none is, `suggest` are the moves of one to begin: it brings services nearer to their targets, or (`seats`)
    makes room for pods that a machine would be bought for else; `message` tells what that saves.
    """

    steps: tuple[Move, ...] = ()
    cancel: OutcomeReason | None = None
    message: str = ""
    suggest: tuple[Move, ...] = ()
    seats: tuple[Seat, ...] = ()

    @property
    def is_for_the_edge(self) -> bool:
        return bool(self.suggest) and not self.seats


class Removing(msgspec.Struct, frozen=True):
    """A node to empty (its migrations stand in the plan) and release."""

    node: str
    claim: str
    reason: Removal
    savings_nanos_per_hour: int
    message: str = ""


class UnplacedPod(msgspec.Struct, frozen=True):
    """`nodes` counts kube-scheduler's words over the nodes that refused it."""

    pod: str
    reason: Unplaced
    message: str
    nodes: Mapping[str, int] = {}


class KeptNode(msgspec.Struct, frozen=True):
    node: str
    reason: Kept
    message: str


class Cost(msgspec.Struct, frozen=True):
    """Prices in billionths an hour. The bound is what no mix of flavours could undercut for this work.

    `beside_nanos` is a part of all three: nodes that are there whatever is bought, since HTAS did not buy them.
    """

    currency: str = "USD"
    before_nanos: int = 0
    after_nanos: int = 0
    bound_nanos: int = 0
    beside_nanos: int = 0

    @property
    def gap(self) -> float:
        """How far `after` can be from the cheapest possible, as a share of the bound; 0 without a bound."""
        if self.bound_nanos == 0:
            return 0.0
        return round(max(0, self.after_nanos - self.bound_nanos) / self.bound_nanos, 3)


class Plan(msgspec.Struct, frozen=True):
    """One cycle's decisions. Binds come first, then purchases, then drains with their moves."""

    taken_at: float
    cost: Cost = Cost()
    bind: tuple[Bind, ...] = ()
    nominate: tuple[Nomination, ...] = ()
    launch: tuple[Launch, ...] = ()
    preempt: tuple[Move, ...] = ()
    optimize: tuple[str, ...] = ()
    """Pods that a rearrangement is to be searched for: nothing can be bought for them. A wish, not an action."""
    carry: Carrying = Carrying()
    migrate: tuple[Move, ...] = ()
    remove: tuple[Removing, ...] = ()
    unplaced: tuple[UnplacedPod, ...] = ()
    kept: tuple[KeptNode, ...] = ()
    memory: Memory = Memory()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        is_carried = self.carry.steps or self.carry.cancel or self.carry.suggest
        return not (self.bind or self.launch or self.preempt or is_carried or self.migrate or self.remove)
