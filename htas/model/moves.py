"""Moves: a pod that leaves its node. One type, from the decision to the journal, the call and the outcome."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class MigrationMethod(StrEnum):
    EVICT = "evict"
    """The pod is evicted; its controller starts it again elsewhere, from the beginning."""
    CHECKPOINT = "checkpoint"
    """The pod is checkpointed, moved and restored between simulated nodes (sandbox, KWOK)."""
    KUBELET_CHECKPOINT = "kubelet-checkpoint"
    """The kubelet checkpoints it with CRIU; the target's runtime restores it from a checkpoint image."""
    COMMAND = "command"
    """The operator's own executables checkpoint, transfer and restore it."""
    REPLACE = "replace"
    """A fresh copy of a service's pod is started at the target; once it is Ready, it takes the pod's place."""

    @property
    def keeps_progress(self) -> bool:
        """Whether a moved pod goes on where it was, instead of beginning again."""
        return self not in (MigrationMethod.EVICT, MigrationMethod.REPLACE)

    @property
    def makes_twin(self) -> bool:
        """Whether another pod runs at the target before the first one ends, and takes its place: none is missing."""
        return self is not MigrationMethod.EVICT


class MoveReason(StrEnum):
    """What a pod leaves its node for."""

    NODE_DRAINED = "NodeDrained"
    """Its node is emptied and released."""
    PREEMPTED = "Preempted"
    """For one of higher priority that is nominated to its node."""
    MAKES_ROOM = "MakesRoom"
    """As part of a rearrangement: others are to have its room."""
    DETOUR = "Detour"
    """The same, to a node with room to spare instead of its slot's, since pods wait for each other's room."""
    BREAKS_CYCLE = "BreaksCycle"
    """The same, evicted before its slot has room, since pods wait for each other's room."""
    NEARER_TO_USERS = "NearerToUsers"
    """To the edge: what the other moves of a suggestion make room for."""
    REQUESTED = "Requested"
    """Somebody asked for it."""
    UNDER_WAY = "UnderWay"
    """It is seen under way; what it was begun for is written elsewhere (in the journal), or nowhere any more."""


class Move(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod (namespace/name, and its uid) that leaves `source` for `target`, or (None) for nowhere: it waits again.

    Until it is seen at the target, room is kept for it there.
    """

    pod: str
    uid: str
    source: str
    target: str | None
    method: MigrationMethod
    reason: MoveReason
    beneficiary: str = ""
    """Of a preemption: the pod that it makes room for."""
