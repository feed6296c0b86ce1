"""Algorithm 2, Time-bin BFD: nodes that end with the pod, then those that end later, then those that end sooner.

A node without batch work has the run length 0, and so is in bin 0: the algorithm comes to it last.
"""

from __future__ import annotations

from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.simulation import Simulation
from tools.lab.baselines.as_printed.bfd import bfd


def time_bin_bfd(sim: Simulation, pod: PodClass, group: Bools) -> int | None:
    """Places the pod in the simulation and returns its row; None: no node of the group holds it.

    The scaling cycle, by which run lengths are divided, is the simulation's.
    """
    bin_of_node = sim.bins(sim.all_rows)
    bins = bin_of_node[group]
    own = sim.bin_of(pod.run_length_s)  # line 1
    for bin_ in range(own, int(bins.max(initial=-1)) + 1):  # lines 2 and 7
        node = bfd(sim, pod, group & (bin_of_node == bin_))  # line 3
        if node is not None:  # lines 4 to 6
            return node
    for bin_ in range(own, int(bins.min(initial=own + 1)) - 1, -1):  # lines 8 and 13
        node = bfd(sim, pod, group & (bin_of_node == bin_))  # line 9
        if node is not None:  # lines 10 to 12
            return node
    return None  # line 14
