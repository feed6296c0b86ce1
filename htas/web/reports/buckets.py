"""A window's bars: what was spent in each; they add up to its sum."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import msgspec

from htas.documents.books import Books
from htas.model.money import bill_amount
from htas.profiler.accounts import rates

MOST = 96
"""At most so many bars: a day's quarters of an hour."""
WIDTHS_S = (300, 900, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400)


class Bucket(msgspec.Struct, frozen=True):
    """A part of the window, and what was spent in it."""

    since: float
    until: float
    spent: float


def bars(found: Books) -> Sequence[Bucket]:
    """Bars that begin at whole hours, days or the like. The first has only what is within the window, and the last also
    the seconds that are billed already and are still to come: a minute is billed as a whole.
    """
    since, until = found.window.since, min(found.window.until, found.now)
    edges = _edges(since, until)
    spent = _rounded(_swept(found, edges))
    return [Bucket(start, end, spent[i]) for i, (start, end) in enumerate(pairwise(edges))]


def _edges(since: float, until: float) -> list[int]:
    width = next((width for width in WIDTHS_S if (until - since) / width <= MOST), WIDTHS_S[-1])
    edges = [math.floor(since / width) * width]
    while edges[-1] < until:
        edges.append(edges[-1] + width)
    return edges


def _swept(found: Books, edges: Sequence[int]) -> list[int]:
    """What was spent in each bucket, as price × seconds, exactly."""
    width, last = edges[1] - edges[0], len(edges) - 2
    changes = _changes(found)
    spent, price = [0] * (last + 1), 0
    for at, following in pairwise(sorted({*changes, *edges})):
        price += changes[at]
        spent[min(last, (at - edges[0]) // width)] += price * (following - at)
    return spent


def _changes(found: Books) -> Counter[int]:
    """By how much the price an hour of what is billed changes at which second of the window."""
    changes: Counter[int] = Counter()
    for bill in found.bills:
        for start, end, nanos in rates(bill, found.catalogue.billing, found.now, found.window):
            changes[start] += nanos
            changes[end] -= nanos
    return changes


def _rounded(sums: Iterable[int]) -> list[float]:
    """Amounts to a millionth that add up to the last digit of the whole: each is the difference of two sums so far."""
    so_far = [bill_amount(total) for total in accumulate(sums, initial=0)]
    return [float(after - before) for before, after in pairwise(so_far)]
