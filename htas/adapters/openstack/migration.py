"""MigrationPort where machines restore no checkpoints: pods leave their node by eviction alone."""

from __future__ import annotations

from collections.abc import Sequence

from htas.model.migrations import MigrationRecord, Refusal
from htas.model.moves import MigrationMethod, Move
from htas.model.pods import Pod
from htas.ports import MoveRefusedError


class EvictionOnly:
    """Implements MigrationPort. The configuration refuses `migration: checkpoint` with it; it refuses what remains."""

    def start(self, pod: Pod, target: str, method: MigrationMethod = MigrationMethod.CHECKPOINT) -> None:
        what = f"pod {pod.key} cannot be restored on {target} by {method}"
        instead = "set cleaning.migration to evict, replace or kubelet-checkpoint"
        raise MoveRefusedError(Refusal.NOT_CONFIGURED, f"{what}: {instead}")

    def moving(self) -> Sequence[Move]:
        return ()

    def records(self) -> Sequence[MigrationRecord]:
        return ()
