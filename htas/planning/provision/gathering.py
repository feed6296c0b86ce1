"""Gathering: batch work that finds no room waits a moment, so that more work is bought for at once.

One short job alone is worth the smallest machine, and so is the next one a second later: of the HTAS paper's flavours
that is the dearest for its size. The paper buys every five minutes (Table 6), and its work waits for more than two of
them on average; here nobody waits longer than `gatherFor` for company.
"""

from __future__ import annotations

from collections.abc import Sequence

from htas.model.pods import WorkKind
from htas.model.policy import Policy
from htas.planning.place.demand import Demand


def gathering(policy: Policy, demands: Sequence[Demand], now: float) -> list[Demand]:
    """The batch demands that are not bought for yet: all of them, until the oldest of their pods has waited so long."""
    batch = [demand for demand in demands if demand.count and demand.cls.is_ours and demand.cls.kind is WorkKind.BATCH]
    oldest = min((pod.created_at for demand in batch for pod in demand.youngest(demand.count)), default=now)
    return batch if now - oldest < policy.gather_s else []
