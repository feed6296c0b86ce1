"""NodePorts: a host port is free where no pod has it with the same protocol and an overlapping address.

Source: kube-scheduler, plugins/nodeports. 0.0.0.0 (and an empty address) overlaps with every address.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.model.constraints import HostPort
from htas.planning.classes import PodClass
from htas.planning.feasibility.world import Refusal, World

REASON = "node(s) didn't have free ports for the requested pod ports"
ANY_ADDRESS = "0.0.0.0"


def conflict(one: HostPort, other: HostPort) -> bool:
    if (one.port, one.protocol) != (other.port, other.protocol):
        return False
    return one.ip == other.ip or ANY_ADDRESS in (one.ip, other.ip)


def refuse(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    wanted = cls.constraints.host_ports
    if not wanted:
        return
    taken = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for port, counts in world.tallies.ports.items():
        if any(conflict(port, own) for own in wanted):
            taken |= counts[rows] > 0
    if taken.any():
        yield Refusal(REASON, taken)
