"""Cloud first (CF): the edge takes what the cloud has no room for."""

from __future__ import annotations

from htas.experiments.baselines.edge.tiers import TierFirst, by_order
from htas.experiments.baselines.orders import LEAST_REQUESTED
from htas.model.edge import Tier

plan = by_order(TierFirst(Tier.CLOUD, LEAST_REQUESTED))
