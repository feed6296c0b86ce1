"""MigrationPort where machines restore no checkpoints: pods leave their node by eviction alone."""

from __future__ import annotations

from collections.abc import Sequence

from htas.model.pods import Pod
from htas.model.snapshot import Move
from htas.ports import PermanentError


class EvictionOnly:
    """Implements MigrationPort. The configuration refuses `migration: checkpoint` with it; it refuses what remains."""

    def start(self, pod: Pod, target: str) -> None:
        raise PermanentError(f"pod {pod.key} cannot be restored on {target}: set cleaning.migration to evict")

    def moving(self) -> Sequence[Move]:
        return ()
