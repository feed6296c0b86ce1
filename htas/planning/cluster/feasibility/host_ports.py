"""NodePorts: a host port is free where no pod has it with the same protocol and an overlapping address.

Source: kube-scheduler, plugins/nodeports.
"""

from __future__ import annotations

from collections.abc import Iterator

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal

REASON = "node(s) didn't have free ports for the requested pod ports"


def refuse(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    wanted = cls.constraints.host_ports
    taken = context.counts.ports.taken(wanted, rows) if wanted else None
    if taken is not None and taken.any():
        yield FilterRefusal(REASON, taken)
