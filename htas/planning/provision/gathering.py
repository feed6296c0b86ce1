"""Gathering: batch work that finds no room waits a moment, so that more work is bought for at once.

One short job alone is worth the smallest machine, and so is the next one a second later: of the HTAS paper's flavours
that is the dearest for its size. The paper buys every five minutes (Table 6), and its work waits for more than two of
them on average; here nobody waits longer than `gatherFor` for company, and only while what is expected to come saves
more than the waiting is worth (`planning/rental/waiting.py`). As many are expected as came of late, and half a one more
(`Arrivals.expected_per_s`): too few for a lone job in a trickle billed by the minute, enough where a machine costs an
hour. Each kind of pods is judged by itself: thirty small jobs do not wait because one of ten hours would.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from htas.model.money import price_text
from htas.model.pods import WorkKind
from htas.model.policy import Policy
from htas.planning.cluster.classes import PodClass
from htas.planning.place.demand import Demand
from htas.planning.provision.arrivals import Arrivals
from htas.planning.rental.waiting import Company, Prices, company


@dataclass(frozen=True, slots=True)
class Gathering:
    """Batch demand that is not bought for yet, and what waiting for company is worth to each of its pods."""

    demand: Demand
    company: Company


def gathering(policy: Policy, demands: Sequence[Demand], arrivals: Arrivals, prices: Prices) -> list[Gathering]:
    """The batch demands that are not bought for yet, and why.

    None once the oldest pod of those that may be bought for has waited so long: then all are bought for together. What
    nothing may be bought for waits as long by itself.
    """
    batch = [demand for demand in demands if demand.count and demand.cls.is_ours and demand.cls.kind is WorkKind.BATCH]
    if not batch or policy.gather_s <= 0:
        return []
    found = list[Gathering]()
    for kinds in _deciding_together(batch, prices):
        waiting = (demand.youngest(demand.count) for kind in kinds for demand in kind)
        waited_s = arrivals.now - min(pod.created_at for alike in waiting for pod in alike)
        if waited_s < -policy.gather_s:  # by a clock far ahead of ours: nobody knows how long it has waited
            continue
        left_s = policy.gather_s - max(0.0, waited_s)
        for kind in kinds if left_s > 0 else ():
            count, coming = sum(demand.count for demand in kind), arrivals.expected_per_s * left_s
            worth = company(prices, _middle(kind), policy.value, count=count, coming=coming, for_s=left_s)
            found += [Gathering(demand, worth) for demand in kind] if worth.pays else []
    return found


def _deciding_together(batch: Iterable[Demand], prices: Prices) -> Iterator[list[list[Demand]]]:
    """Demands by kinds whose oldest pod decides for all: those that may be bought for, and each kind of the others."""
    kinds: dict[object, list[Demand]] = {}
    for demand in batch:
        kinds.setdefault(_about(demand.cls), []).append(demand)
    to_buy = list[list[Demand]]()
    for kind in kinds.values():
        if math.isinf(prices.together(_middle(kind), 1)):
            yield [kind]
        else:
            to_buy.append(kind)
    if to_buy:
        yield to_buy


def _about(cls: PodClass) -> object:
    """What pods of a kind have in common: where they may run, what they ask for and how long, to a factor of two."""
    return cls.static_key, tuple(int(each).bit_length() for each in cls.requests), int(cls.run_length_s).bit_length()


def _middle(demands: Sequence[Demand]) -> PodClass:
    return sorted((demand.cls for demand in demands), key=lambda cls: (cls.size, cls.example.key))[len(demands) // 2]


def in_words(found: Company, policy: Policy) -> str:
    """What somebody waits for, for people."""
    text = f"waits up to {policy.gather_s:g} s for more batch pods to launch machines for (gatherFor)"
    if math.isinf(found.saves):
        return text
    saves, waiting = (price_text(_to_a_millionth(round(each / 3600))) for each in found)
    return f"{text}, which may save a pod {saves} {policy.catalogue.currency}; its waiting costs {waiting}"


def _to_a_millionth(nanos: int) -> int:
    """What is less is told to a billionth: who reads 0.00 learns nothing."""
    return nanos if nanos < 1000 else round(nanos, -3)
