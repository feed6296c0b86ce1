"""NodePorts: a host port is free where no pod has it with the same protocol and an overlapping address.

Source: kube-scheduler, plugins/nodeports.
"""

from __future__ import annotations

from collections.abc import Iterator

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.world import Refusal, World

REASON = "node(s) didn't have free ports for the requested pod ports"


def refuse(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    wanted = cls.constraints.host_ports
    taken = world.tallies.ports.taken(wanted, rows) if wanted else None
    if taken is not None and taken.any():
        yield Refusal(REASON, taken)
