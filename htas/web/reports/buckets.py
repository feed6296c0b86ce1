"""A window's bars: what was spent in each, and the least that its work could have cost; they add up to its sums."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import msgspec

from htas.documents.books import Books
from htas.model.money import bill_amount
from htas.profiler.accounts import rates
from htas.web.chronicle import Point

MOST = 96
"""At most so many bars: a day's quarters of an hour."""
WIDTHS_S = (300, 900, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400)


class Bucket(msgspec.Struct, frozen=True):
    """A part of the window: what was spent in it, and the least that its work could have cost since it was watched
    (None: it was not).
    """

    since: float
    until: float
    spent: float
    least: float | None


class Bars(msgspec.Struct, frozen=True):
    """`least` is the sum of what the buckets have, as price × seconds; it is known from `least_since` on."""

    buckets: Sequence[Bucket]
    least: int
    least_since: float | None


def bars(found: Books, points: Sequence[Point]) -> Bars:
    """Bars that begin at whole hours, days or the like. The first has only what is within the window, and the last also
    the seconds that are billed already and are still to come: a minute is billed as a whole.
    """
    since, until = found.window.since, min(found.window.until, found.now)
    edges = _edges(since, until)
    known = _known(points, since, until)
    spent, least = _swept(found, known, edges)
    watched = known[0][0] if known else None
    told_spent, told_least = _rounded(spent), _rounded(least)
    buckets = [
        Bucket(start, end, told_spent[i], told_least[i] if watched is not None and end > watched else None)
        for i, (start, end) in enumerate(pairwise(edges))
    ]
    return Bars(buckets, sum(least), float(watched) if watched is not None else None)


def _edges(since: float, until: float) -> list[int]:
    width = next((width for width in WIDTHS_S if (until - since) / width <= MOST), WIDTHS_S[-1])
    edges = [math.floor(since / width) * width]
    while edges[-1] < until:
        edges.append(edges[-1] + width)
    return edges


def _known(points: Sequence[Point], since: float, until: float) -> list[tuple[int, int]]:
    """Since which second on the least possible is how much an hour: what was known before a window holds on in it."""
    before = [point for point in points if point.at <= since][-1:]
    within = [point for point in points if since < point.at <= until]
    return [(max(math.ceil(since), math.ceil(point.at)), point.bound_nanos) for point in (*before, *within)]


def _swept(found: Books, known: Sequence[tuple[int, int]], edges: Sequence[int]) -> tuple[list[int], list[int]]:
    """Price × seconds in each bucket, exactly: spent, and the least possible, at no instant more than was spent."""
    width, last = edges[1] - edges[0], len(edges) - 2
    changes, bounds, end = _changes(found), dict(known), math.ceil(min(found.window.until, found.now))
    spent, least = [0] * (last + 1), [0] * (last + 1)
    price, bound = 0, 0
    for at, following in pairwise(sorted({*changes, *bounds, *edges, end})):
        price += changes[at]
        bound = bounds.get(at, bound)
        place = min(last, (at - edges[0]) // width)
        spent[place] += price * (following - at)
        if at < end:
            least[place] += min(price, bound) * (following - at)
    return spent, least


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
