"""Work that found no room: what is bought for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from htas.model.pods import Pod
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import Simulation


@dataclass(slots=True)
class Demand:
    """Pods of one class that still need a machine: the tail of its pods, which are handed out oldest first."""

    cls: PodClass
    count: int
    is_expected: bool = False
    """It has not come yet, and is of a class that nobody is of."""

    def youngest(self, count: int) -> list[Pod]:
        """So many of its pods."""
        return self.cls.pods[len(self.cls.pods) - count :]

    def leave_out(self, sim: Simulation, pods: Collection[Pod]) -> None:
        """Take pods out of it and out of its class: a plan does no more for them."""
        keys = {pod.key for pod in pods}
        self.count -= len(keys)
        sim.set_members(self.cls, [pod for pod in self.cls.pods if pod.key not in keys])
