"""Algorithm 1, BFD: the fullest node that holds a pod, memory before CPU.

The paper's arguments stand in its order: a pending pod and a node group, here the rows of its nodes.
"""

from __future__ import annotations

from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Bools, PodClass
from htas.planning.cluster.simulation import Simulation


def bfd(sim: Simulation, pod: PodClass, group: Bools) -> int | None:
    """Places the pod in the simulation and returns its row; None: no node of the group holds it."""
    available = sim.table.free
    eligible = (sim.feasible(pod) & group).nonzero()[0].tolist()  # line 2: where CPU and memory suffice
    if not eligible:
        return None
    node = min(eligible, key=lambda row: (available[MEMORY_ROW, row], available[CPU_ROW, row]))  # line 1
    sim.place(pod, node)  # line 3; and lines 4 to 6: a longer pod lifts the node's run length
    return int(node)  # line 7
