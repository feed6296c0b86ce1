"""Gathering: batch work that finds no room waits a moment, so that more work is bought for at once.

One short job alone is worth the smallest machine, and so is the next one a second later: of the HTAS paper's flavours
that is the dearest for its size. The paper buys every five minutes (Table 6), and its work waits for more than two of
them on average; here nobody waits longer than `gatherFor` for company, and only while what is expected to come saves
more than the waiting is worth (`planning/rental/waiting.py`). As many are expected as came of late, and half a one more
(`_expected`): too few for a lone job in a trickle that is billed by the minute, enough where a machine costs an hour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from htas.model.money import price_text
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.planning.place.demand import Demand
from htas.planning.provision.look_ahead import is_new_batch
from htas.planning.rental.waiting import Company, Prices, company

LATE_S = 120.0
"""Arrivals are counted over so long where `lookAhead` is 0."""


def gathering(
    policy: Policy, demands: Sequence[Demand], pods: Iterable[Pod], prices: Prices, now: float
) -> tuple[list[Demand], Company]:
    """The batch demands that are not bought for yet, and why: all, until the oldest pod has waited so long, or none.

    `pods` are those that tell of work to come by when they came. The class of middle size stands for all.
    """
    batch = [demand for demand in demands if demand.count and demand.cls.is_ours and demand.cls.kind is WorkKind.BATCH]
    oldest = min((pod.created_at for demand in batch for pod in demand.youngest(demand.count)), default=now)
    left_s = policy.gather_s - (now - oldest)
    if not batch or left_s <= 0:
        return [], Company(0.0, 0.0)
    middle = sorted(batch, key=lambda demand: (demand.cls.size, demand.cls.example.key))[len(batch) // 2].cls
    coming = _expected(pods, policy.look_ahead_s or LATE_S, left_s, now)
    waiting = sum(demand.count for demand in batch)
    found = company(prices, middle, policy.value, count=waiting, coming=coming, for_s=left_s)
    return batch if found.pays else [], found


def in_words(found: Company, policy: Policy) -> str:
    """What somebody waits for, for people."""
    text = f"waits up to {policy.gather_s:g} s for more batch work to be bought with it (gatherFor)"
    if math.isinf(found.saves):
        return text
    saves, waiting = (price_text(round(each / 3_600_000) * 1000) for each in found)  # to a millionth
    return f"{text}, which may save a pod {saves} {policy.catalogue.currency}; its waiting is worth {waiting}"


def _expected(pods: Iterable[Pod], within_s: float, for_s: float, now: float) -> float:
    """How many jobs are expected in a time, by those that came of late but for the last one, which is why it is asked.

    `n` arrivals in `T` seconds make `(n + 1/2) / T` a second: Jeffreys' prior of a Poisson rate, since nobody seen in
    two minutes does not mean that nobody comes. Billed by the hour, seeds 11 to 15, `n / T` cost 5 % more.
    """
    came = sum(is_new_batch(pod) and pod.created_at > now - within_s for pod in pods)
    return (max(0, came - 1) + 0.5) * for_s / within_s
