"""The plan: what to do, what it costs, and a reason for everything left undone. Pure data."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from htas.model.holds import Hold
from htas.model.moves import Move
from htas.model.proposals import Launch, Proposal
from htas.model.reasons import Kept, OutcomeReason, ProposalReason, Unplaced
from htas.model.resources import LackingRequests
from htas.model.search_failures import SearchFailure
from htas.model.snapshot import Memory


class Bind(msgspec.Struct, frozen=True, omit_defaults=True):
    pod: str
    node: str
    deletion_cost: int | None = None
    """`controller.kubernetes.io/pod-deletion-cost`, written on the pod as it is bound; None: it is left as it is."""


class Carrying(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the rearrangement under way goes on: by these steps, or (`cancel`) not at all."""

    steps: tuple[Move, ...] = ()
    cancel: OutcomeReason | None = None
    message: str = ""


class NodeRemoval(msgspec.Struct, frozen=True):
    """A node that a plan begins to empty (its moves are the plan's `migrate`) and will release."""

    node: str
    claim: str
    reason: ProposalReason
    savings_nanos_per_hour: int
    message: str = ""

    @property
    def why(self) -> str:
        return self.message or self.reason.value


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
    """Prices in billionths an hour.

    `beside_nanos` is a part of both: nodes that are there whatever is bought, since HTAS did not buy them.
    """

    currency: str = "USD"
    before_nanos: int = 0
    after_nanos: int = 0
    beside_nanos: int = 0


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One cycle's decisions: binds come first, then purchases, then what is proposed.

    The properties are its proposals in the words of the documented JSON. `launch` is bought for work that waits.
    """

    taken_at: float
    cost: Cost = Cost()
    bind: tuple[Bind, ...] = ()
    nominate: tuple[Hold, ...] = ()
    launch: tuple[Launch, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    optimize: tuple[str, ...] = ()
    """Pods that a rearrangement is to be searched for: nothing can be bought for them. A wish, not an action."""
    carry: Carrying = Carrying()
    unplaced: tuple[UnplacedPod, ...] = ()
    kept: tuple[KeptNode, ...] = ()
    lacking: LackingRequests = LackingRequests()
    """Pods without requests: what it launches and drains rests on an assumption about them."""
    memory: Memory = Memory()
    failures: tuple[SearchFailure, ...] = ()
    """Optional searches that failed; the plan was made without them."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.bind or self.launch or self.proposals or self.carry.steps or self.carry.cancel)

    def binds_alone(self, memory: Memory) -> Plan:
        """The plan with nothing to do but its binds."""
        return msgspec.structs.replace(self, launch=(), proposals=(), optimize=(), carry=Carrying(), memory=memory)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every machine that is bought: for work that waits, and to replace others."""
        return (*self.launch, *(launch for each in self.proposals for launch in each.launches))

    @property
    def preempt(self) -> tuple[Move, ...]:
        """Pods that are evicted for more important ones."""
        return self._moves(ProposalReason.PREEMPTED)

    @property
    def suggest(self) -> tuple[Move, ...]:
        """Moves for the edge's sake."""
        return self._moves(ProposalReason.NEARER_TO_USERS)

    @property
    def instead_of_buying(self) -> Proposal | None:
        """What is moved so that less need be bought."""
        return next((each for each in self.proposals if each.reason is ProposalReason.INSTEAD_OF_LAUNCH), None)

    @property
    def migrate(self) -> tuple[Move, ...]:
        """Pods that leave nodes which are emptied."""
        return tuple(move for each in self.proposals if each.gives_back for move in each.moves)

    @property
    def remove(self) -> tuple[NodeRemoval, ...]:
        """Nodes that are emptied from now on, by name: not those for which others are bought first."""
        found = [
            NodeRemoval(release.node, release.claim, each.reason, each.value, each.message)
            for each in self.proposals
            for release in each.gives_back
        ]
        return tuple(sorted(found, key=lambda removal: removal.node))

    def _moves(self, reason: ProposalReason) -> tuple[Move, ...]:
        return tuple(move for each in self.proposals if each.reason is reason for move in each.moves)
