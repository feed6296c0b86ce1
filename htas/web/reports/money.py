"""`/money`: what was spent in a window, when and on whom; what was idle; the least possible; the month's forecast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from htas.documents.costs import Books, CostPart, alternative, books_of
from htas.documents.forms import CostBy
from htas.documents.month import Month, looked_at, month_of
from htas.model.flavours import Billing
from htas.model.money import bill_amount, price_text
from htas.model.record import Bill
from htas.ports import GivenError
from htas.profiler import accounts
from htas.profiler.accounts import Window, held_s
from htas.profiler.shares import IDLE
from htas.web.chronicle import Point
from htas.web.seat import Picture, Seat

BUCKETS = 96
"""At most so many bars: a day's quarters of an hour."""
WIDTHS_S = (300, 900, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400)
MOST_PARTS = 12
HOUR_S = 3600


class Bucket(msgspec.Struct, frozen=True):
    """A part of the window: what was spent in it, and the least that its work could have cost (None: not seen)."""

    since: float
    until: float
    spent: float
    least: float | None


class Split(msgspec.Struct, frozen=True):
    """The window's sum by one key, the dearest first; what is beyond the first few is one part."""

    by: CostBy
    parts: Sequence[CostPart]


class MoneyReport(msgspec.Struct, frozen=True):
    """Money of a window. `least` is known from `least_since` on alone: since when this daemon has watched; over that
    time `spent_since` was spent. The forecast is what the month has cost so far, and the rest of it at the mean of the
    last day (or of as long as there are bills).
    """

    version: int
    currency: str
    since: float
    until: float
    spent: str
    idle: str
    idle_share: float
    price_per_hour: str
    buckets: Sequence[Bucket]
    splits: Sequence[Split]
    least: str
    least_since: float | None
    spent_since: str
    month: str
    month_so_far: str
    month_forecast: str
    mean_per_hour: str
    month_budget: str = ""
    """`monthlyBudget` of the configuration; empty: none is stated."""


class Against(msgspec.Struct, frozen=True):
    """What the same work would have cost in another way; `told` says which, or why it cannot be told."""

    way: str
    told: str
    flavour: str = ""
    machines: int = 0
    amount: str = ""
    saved: str = ""
    saved_share: float = 0.0


def books(seat: Seat, picture: Picture, hours: float) -> Books:
    """The store's books of the last hours."""
    now = seat.present()
    until = now if now is not None else picture.at
    return books_of(seat.store(), picture.policy, Window(until - hours * HOUR_S, until), until)


def money_report(seat: Seat, picture: Picture, hours: float) -> MoneyReport:
    """Raises TransientError where there is no past."""
    found = books(seat, picture, hours)
    window, billing = found.window, found.catalogue.billing
    whole = found.total
    splits = {by: found.sums(by) for by in (CostBy.NAMESPACE, CostBy.OWNER, CostBy.GROUP, CostBy.FLAVOUR)}
    idle = splits[CostBy.NAMESPACE].get(IDLE, 0)
    points = [point for point in seat.chronicle.points() if window.since <= point.at <= window.until]
    since = points[0].at if points else None
    watched = Window(since, window.until) if since is not None else None
    spent_since = accounts.total(found.bills, billing, found.now, watched) if watched is not None else 0
    least = _least(points, since, window.until) if since is not None else 0
    month = _month(seat, picture, found)
    budget = seat.budget_nanos()
    return MoneyReport(
        version=picture.version,
        currency=found.catalogue.currency,
        since=window.since,
        until=window.until,
        spent=str(bill_amount(whole)),
        idle=str(bill_amount(idle)),
        idle_share=round(idle / whole, 4) if whole else 0.0,
        price_per_hour=price_text(accounts.nanos_per_hour(found.bills)),
        buckets=_buckets(found, points, hours),
        splits=[Split(by, _parts(sums)) for by, sums in splits.items()],
        least=str(bill_amount(min(least, spent_since))),
        least_since=since,
        spent_since=str(bill_amount(spent_since)),
        month=month.name,
        month_so_far=str(bill_amount(month.so_far)),
        month_forecast=str(bill_amount(month.forecast)),
        mean_per_hour=price_text(round(month.mean)),
        month_budget=str(bill_amount(budget * 3600)) if budget is not None else "",
    )


def against(seat: Seat, picture: Picture, way: str, hours: float) -> Against:
    """Raises TransientError where there is no past."""
    found = books(seat, picture, hours)
    whole = found.total
    try:
        other = alternative(found, way)
    except GivenError as error:
        return Against(way, str(error).removeprefix(f"--against {way}: "))
    saved = other.nano_seconds - whole
    return Against(
        way,
        other.told,
        other.flavour,
        other.machines,
        str(bill_amount(other.nano_seconds)),
        str(bill_amount(saved)),
        round(saved / other.nano_seconds, 4) if other.nano_seconds else 0.0,
    )


def _parts(sums: Mapping[str, int]) -> list[CostPart]:
    ordered = sorted(sums.items(), key=lambda item: (item[0] == IDLE, -item[1], item[0]))
    few = ordered[:MOST_PARTS]
    rest = sum(amount for _, amount in ordered[MOST_PARTS:])
    found = [CostPart(name, str(bill_amount(amount))) for name, amount in few]
    return [*found, CostPart(f"({len(ordered) - MOST_PARTS} others)", str(bill_amount(rest)))] if rest else found


def _width_s(hours: float) -> int:
    return next((width for width in WIDTHS_S if hours * HOUR_S / width <= BUCKETS), WIDTHS_S[-1])


def _buckets(found: Books, points: Sequence[Point], hours: float) -> list[Bucket]:
    """Bars that begin at whole hours, days or the like; a window's first and last may be cut."""
    width = _width_s(hours)
    edges = [math.floor(found.window.since / width) * width]
    while edges[-1] < found.window.until:
        edges.append(edges[-1] + width)
    billing = found.catalogue.billing
    spent = _spread(found.bills, billing, found.now, edges)
    buckets = []
    for i, (start, end) in enumerate(pairwise(edges)):
        seen = [point for point in points if start <= point.at < end]
        least = _least(seen, seen[0].at, min(end, found.window.until)) if seen else None
        # A bucket that was watched in part has the least of its watched part at the same rate.
        covered = (min(end, found.window.until) - seen[0].at) if seen else 0.0
        whole = least * (end - start) / covered if least is not None and covered > 0 else None
        amount = float(bill_amount(spent[i]))
        bound = min(float(bill_amount(round(whole))), amount) if whole is not None else None
        buckets.append(Bucket(start, end, amount, bound))
    return buckets


def _spread(bills: Iterable[Bill], billing: Billing, now: float, edges: Sequence[int]) -> list[int]:
    """Price × billed seconds in each bucket, exactly: together the sum of the bills between the edges."""
    width, start, count = edges[1] - edges[0], edges[0], len(edges) - 1
    sums = [0] * count
    for bill in bills:
        begin = int(bill.started_at)
        end = begin + billing.billed_seconds(held_s(bill, now))
        at = max(begin, start)
        while at < min(end, edges[-1]):
            place = (at - start) // width
            stop = min(end, edges[place + 1])
            sums[place] += bill.nanos_per_hour * (stop - at)
            at = stop
    return sums


def _least(points: Sequence[Point], since: float, until: float) -> int:
    """The lower bound over time, as a step function of what cycles have worked out."""
    total = 0.0
    ends = [*(point.at for point in points[1:]), until]
    for point, end in zip(points, ends, strict=True):
        total += point.bound_nanos * max(0.0, end - max(point.at, since))
    return round(total)


def _month(seat: Seat, picture: Picture, found: Books) -> Month:
    """Of the window's bills, and those that the month has beyond it."""
    whole = books_of(seat.store(), picture.policy, Window(looked_at(found.now), found.now), found.now)
    return month_of(whole.bills, whole.catalogue.billing, found.now)
