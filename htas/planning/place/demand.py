"""Work that found no room: what is bought for."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.pods import Pod
from htas.planning.cluster.classes import PodClass


@dataclass(slots=True)
class Demand:
    """Pods of one class that still need a machine: the tail of its pods, which are handed out oldest first."""

    cls: PodClass
    count: int

    def youngest(self, count: int) -> list[Pod]:
        """So many of its pods."""
        return self.cls.pods[len(self.cls.pods) - count :]

    def leave_out(self, count: int) -> None:
        """Take its youngest pods out of it and out of its class: a plan does no more for them."""
        self.count -= count
        del self.cls.pods[len(self.cls.pods) - count :]
