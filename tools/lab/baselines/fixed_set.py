"""kube-scheduler on a fixed set of nodes (`htas.sandbox.fixed_nodes`): none is launched, none is deleted.

Pods go to the node with the most left, as by kube-scheduler's defaults (NodeResourcesFit, LeastAllocated).
"""

from __future__ import annotations

from tools.lab.baselines.draft import placing_by
from tools.lab.baselines.orders import LEAST_REQUESTED

plan = placing_by(LEAST_REQUESTED)
