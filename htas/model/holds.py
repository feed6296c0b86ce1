"""Holds: reservations of pods that do not run there yet, and why."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class HoldReason(StrEnum):
    """Why a pod has a reservation on a node, or on a starting machine, and does not run there yet."""

    MACHINE_STARTING = "MachineStarting"
    """The machine is starting."""
    LAUNCH_FIRST = "LaunchFirst"
    """The same plan launches machines: other pods go there, which leaves it this room."""
    DRIVER_COMING = "VolumeDriverComing"
    """The driver of its volumes has not registered on the node yet."""
    BIND_FAILED = "BindFailed"
    """Its last bind failed a moment ago."""
    OTHER_SCHEDULER = "BoundByOtherScheduler"
    """It fits there; its own scheduler binds it."""
    NOMINATED = "Nominated"
    """The pod names the node: a preemption made room there, or its volume is created for that node."""
    MOVE = "MoveUnderWay"
    """It migrates there, or will in its turn: it still runs elsewhere."""
    REARRANGEMENT = "RearrangementUnderWay"
    """A rearrangement moves other pods away, so that it fits there."""
    MOVES_MAKE_ROOM = "MovesMakeRoom"
    """One or two pods move away instead of a launch, so that it fits there."""


WORDS = {
    HoldReason.MACHINE_STARTING: "its machine is starting",
    HoldReason.LAUNCH_FIRST: "other pods go to the machines that this plan launches, which leaves it this room",
    HoldReason.DRIVER_COMING: "the driver of its volumes has not registered there yet",
    HoldReason.BIND_FAILED: "its last bind failed; HTAS tries again in a moment",
    HoldReason.OTHER_SCHEDULER: "bound by",
    HoldReason.REARRANGEMENT: "its room in the rearrangement under way is not free yet",
}
"""The text of a reason that has words of its own; what follows them is about the pod at hand."""


class Hold(msgspec.Struct, frozen=True):
    """A reservation for a pod that the plan does not bind. `node` is a node, or the claim of a starting machine."""

    pod: str
    node: str
    reason: HoldReason
    why: str


def hold(pod: str, node: str, reason: HoldReason, told: str = "") -> Hold:
    """A hold in the words of its reason, and with `told` after them."""
    return Hold(pod, node, reason, WORDS[reason] + told)
