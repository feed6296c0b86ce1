"""Default Kubernetes (K8S) that prefers the edge: a taint on the cloud that repels, and affinity to edge nodes.

Both are preferences (PreferNoSchedule and preferred node affinity), with weights 3 and 2 against NodeResourcesFit's 1:
an edge node that fits always scores higher than a cloud node. Among edge nodes the least allocated is taken.
"""

from __future__ import annotations

from htas.experiments.baselines.edge.tiers import TierFirst, by_order
from htas.experiments.baselines.orders import LEAST_REQUESTED
from htas.model.edge import Tier

plan = by_order(TierFirst(Tier.EDGE, LEAST_REQUESTED))
