"""Holds: room that is kept for a pod which is not there, and what for."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class HoldReason(StrEnum):
    """Why a pod has room on a node, or on a machine on its way, and is not there."""

    MACHINE_COMING = "MachineComing"
    """The machine is on its way."""
    PURCHASE_FIRST = "PurchaseFirst"
    """There is room for it once others have gone to the machines that the same plan buys."""
    DRIVER_COMING = "VolumeDriverComing"
    """The driver of its volumes has not registered on the node yet."""
    BIND_FAILED = "BindFailed"
    """Its last bind failed a moment ago."""
    OTHER_SCHEDULER = "BoundByOtherScheduler"
    """There is room for it; its own scheduler binds it."""
    NOMINATED = "Nominated"
    """The pod names the node: a preemption made room there, or its volume is being made for that node."""
    MOVE = "MoveUnderWay"
    """It is moved there, or will be once its turn has come: it runs elsewhere."""
    SLOT = "SlotOfRearrangement"
    """Others move, so that it finds room there."""
    ROOM_MADE = "RoomMade"
    """The same, of moves that are begun instead of buying."""


WORDS = {
    HoldReason.MACHINE_COMING: "the machine is on its way",
    HoldReason.PURCHASE_FIRST: "once the machines bought by this plan have taken theirs",
    HoldReason.DRIVER_COMING: "the driver of its volumes has not registered there yet",
    HoldReason.BIND_FAILED: "its last bind failed; it is tried again in a moment",
    HoldReason.OTHER_SCHEDULER: "bound by",
    HoldReason.SLOT: "its slot in the rearrangement under way is not free yet",
}
"""What people are told where a reason has words of its own; what follows them is told of the pod at hand."""


class Hold(msgspec.Struct, frozen=True):
    """Room that a plan keeps for a pod which it does not bind. `node` is a node, or a claim on its way."""

    pod: str
    node: str
    reason: HoldReason
    why: str


def hold(pod: str, node: str, reason: HoldReason, told: str = "") -> Hold:
    """A hold in the words of its reason, and with `told` after them."""
    return Hold(pod, node, reason, WORDS[reason] + told)
