"""Claims and instances: machines wanted, and machines in the cloud.

A claim is one machine HTAS decided to have; it outlives every step from the decision to the release. An
instance is what the cloud says exists. The claim's id is written into the instance's metadata, so the two find
each other again after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from htas.model.billing import Cap, Price
from htas.model.resources import Resources


class ClaimState(StrEnum):
    WANTED = "Wanted"
    """Journalled; the cloud has not been asked yet, or its answer was lost."""
    REQUESTED = "Requested"
    """The cloud accepted the request and is building."""
    ACTIVE = "Active"
    """The machine runs; its node has not registered."""
    REGISTERED = "Registered"
    """The node exists but is not initialized: it is not Ready, bears a start-up taint, or lacks a device."""
    READY = "Ready"
    """Initialized: the node was Ready with all that its flavour promises. What it loses later is no part of this."""
    DRAINING = "Draining"
    RELEASED = "Released"
    """The machine is gone. Final."""
    FAILED = "Failed"
    """It never came to be, or broke; whatever is left of it is being deleted.

    Ends in Released, or in Ready again while pods run on its Ready node: nothing but a drain may end those.
    """


TRANSITIONS: dict[ClaimState, frozenset[ClaimState]] = {
    ClaimState.WANTED: frozenset({ClaimState.REQUESTED, ClaimState.ACTIVE, ClaimState.FAILED, ClaimState.RELEASED}),
    ClaimState.REQUESTED: frozenset(
        {ClaimState.ACTIVE, ClaimState.REGISTERED, ClaimState.READY, ClaimState.FAILED, ClaimState.RELEASED}
    ),
    ClaimState.ACTIVE: frozenset({ClaimState.REGISTERED, ClaimState.READY, ClaimState.FAILED, ClaimState.RELEASED}),
    ClaimState.REGISTERED: frozenset({ClaimState.READY, ClaimState.FAILED, ClaimState.RELEASED, ClaimState.DRAINING}),
    ClaimState.READY: frozenset({ClaimState.DRAINING, ClaimState.REGISTERED, ClaimState.FAILED, ClaimState.RELEASED}),
    ClaimState.DRAINING: frozenset({ClaimState.READY, ClaimState.RELEASED, ClaimState.FAILED}),
    ClaimState.FAILED: frozenset({ClaimState.RELEASED, ClaimState.READY}),
    ClaimState.RELEASED: frozenset(),
}
"""Which state may follow which. States may be skipped: a daemon that slept sees the last one only."""

COMING = frozenset({ClaimState.WANTED, ClaimState.REQUESTED, ClaimState.ACTIVE, ClaimState.REGISTERED})
"""Claims that count as capacity although no initialized node stands behind them yet."""


class NodeClaim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine wanted. `since` is when the present state began; `version` counts the journal's writes of it.

    `missing_since`: since when the cloud has not listed its machine, which proves little at first. `leaving_since`:
    since when it lists it as being deleted, or was last asked to delete it.
    """

    id: str
    group: str
    flavour: str
    state: ClaimState
    created_at: float
    since: float
    zone: str | None = None
    instance: str | None = None
    node: str | None = None
    nanos_per_hour: int = 0
    message: str = ""
    missing_since: float | None = None
    leaving_since: float | None = None
    replaces: tuple[str, ...] = ()
    """Nodes that are to be emptied once it is Ready: it was bought to replace them."""
    launched_for: tuple[str, ...] = ()
    """Marks of the owners whose pods it was launched for: what is remembered of launches survives a crash by them."""
    version: int = 0
    rented_at: float | None = None
    """When the cloud began to charge for it, as its bill has it; None: it was not told."""
    ready_at: float | None = None
    """When its node was initialized; of a machine that was adopted long after its start, when it was found."""
    node_ready_at: float | None = None
    """When its node was first Ready: `timeouts.initialization` runs from then."""
    is_adopted: bool = False
    """The journal did not know it. It never fails for what its node lacks."""
    ordered: str = ""
    """The flavour that was ordered, where its machine has another; empty: it has what was ordered."""
    cap: Cap | None = None
    """The most that a calendar month of it costs; None: whatever its hours come to."""

    @property
    def price(self) -> Price:
        return Price(self.nanos_per_hour, self.cap)

    @property
    def rented_since(self) -> float:
        """The instant its billing periods are counted from."""
        return self.created_at if self.rented_at is None else self.rented_at

    @property
    def is_coming(self) -> bool:
        return self.state in COMING


def taken_over_since(node: str, claims: Iterable[NodeClaim]) -> float | None:
    """When what is to take over from a node was ordered, the last time; None: nothing was.

    What was decided then was decided of the pods that were there: who starts later is no part of it.
    """
    return max((claim.created_at for claim in claims if node in claim.replaces), default=None)


class InstanceState(StrEnum):
    BUILDING = "Building"
    ACTIVE = "Active"
    ERROR = "Error"
    DELETING = "Deleting"

    @property
    def of_its_claim(self) -> ClaimState | None:
        """How far a claim is whose machine is in this state; None: the claim has no use of it."""
        return {InstanceState.BUILDING: ClaimState.REQUESTED, InstanceState.ACTIVE: ClaimState.ACTIVE}.get(self)


class Instance(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine as the cloud lists it. `cluster`, `claim` and `group` come from its metadata; None: not ours.

    `launched_at`: since when the cloud charges for it (None: not yet, or never). `ended_at`: when it stopped, where the
    list says so.
    """

    id: str
    name: str
    flavour: str
    state: InstanceState
    created_at: float
    zone: str | None = None
    cluster: str | None = None
    claim: str | None = None
    group: str | None = None
    fault: str = ""
    launched_at: float | None = None
    ended_at: float | None = None


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time for which the cloud charges a machine in one flavour, by the cloud's own books; `ended_at` None: it runs.

    `name` is the machine's name: of ours, the id of its claim.
    """

    instance: str
    name: str
    flavour: str
    started_at: float
    ended_at: float | None = None


class Headroom(msgspec.Struct, frozen=True):
    """What the cloud would still grant; None: unlimited or unknown. `sold` names the flavours that it has at all."""

    instances: int | None = None
    cpu_m: int | None = None
    memory_bytes: int | None = None
    sold: tuple[str, ...] | None = None

    def less(self, instances: int, size: Resources) -> Headroom:
        """What is left once so many machines, of this size together, are taken from it; never less than nothing."""

        def left(granted: int | None, taken: int) -> int | None:
            return None if granted is None else max(0, granted - taken)

        return Headroom(
            left(self.instances, instances),
            left(self.cpu_m, size.cpu_m),
            left(self.memory_bytes, size.memory_bytes),
            self.sold,
        )
