"""`/money`: what was spent in a window, when and on whom; what was idle; the month's forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from htas.documents.alternatives import alternative
from htas.documents.books import Books, books_of
from htas.documents.costs import CostPart
from htas.documents.forms import CostBy
from htas.documents.month import Month, looked_at, month_of
from htas.model.money import bill_amount, price_text
from htas.ports import GivenError
from htas.profiler import accounts
from htas.profiler.accounts import Window
from htas.profiler.shares import IDLE
from htas.web.reports.buckets import Bucket, bars
from htas.web.seat import Picture, Seat

MOST_PARTS = 12
HOUR_S = 3600


class Split(msgspec.Struct, frozen=True):
    """The window's sum by one key, the dearest first; what is beyond the first few is one part."""

    by: CostBy
    parts: Sequence[CostPart]


class MoneyReport(msgspec.Struct, frozen=True):
    """Money of a window: what is billed by now. `before` was spent in the time of the same length before it (empty: the
    bills do not go back so far). The forecast is what the month has cost so far, and the rest of it at the mean of the
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
    month: str
    month_so_far: str
    month_forecast: str
    mean_per_hour: str
    month_budget: str = ""
    """`monthlyBudget` of the configuration; empty: none is stated."""
    before: str = ""


class Against(msgspec.Struct, frozen=True):
    """What the same work would have cost in another way; `told` says which, or why it cannot be told."""

    way: str
    told: str
    flavour: str = ""
    machines: int = 0
    amount: str = ""
    saved: str = ""
    saved_share: float = 0.0
    assumes: tuple[str, ...] = ()
    """What the figure assumes, a sentence or two a line."""


def books(seat: Seat, picture: Picture, hours: float, since: float | None = None, until: float | None = None) -> Books:
    """The store's books of the last hours, with all that is billed by now, as `htas cost` has it; or of a range.

    Raises GivenError for a range that is empty.
    """
    present = seat.present()
    now = present if present is not None else picture.at
    end = min(until, now) if until is not None else now
    begin = since if since is not None else end - hours * HOUR_S
    if begin >= end:
        raise GivenError(f"since={begin:.0f} must be before until={end:.0f}, and before now")
    window = Window(begin, end) if end < now else Window(begin)
    return books_of(seat.store(), picture.policy, window, now)


def _before(seat: Seat, picture: Picture, found: Books) -> str:
    """What was spent in the time of the same length before the window; empty: the bills begin later."""
    since, end = found.window.since, min(found.window.until, found.now)
    window = Window(since - (end - since), since)
    earlier = books_of(seat.store(), picture.policy, window, found.now)
    begun = min((bill.started_at for bill in earlier.bills), default=since)
    return str(bill_amount(earlier.total)) if begun <= window.since else ""


def money_report(
    seat: Seat, picture: Picture, hours: float, since: float | None = None, until: float | None = None
) -> MoneyReport:
    """Raises TransientError where there is no past."""
    found = books(seat, picture, hours, since, until)
    window, whole = found.window, found.total
    splits = {by: found.sums(by) for by in (CostBy.NAMESPACE, CostBy.OWNER, CostBy.GROUP, CostBy.FLAVOUR)}
    idle = splits[CostBy.NAMESPACE].get(IDLE, 0)
    month = _month(seat, picture, found)
    budget = seat.budget_nanos()
    return MoneyReport(
        version=picture.version,
        currency=found.catalogue.currency,
        since=window.since,
        until=min(window.until, found.now),
        spent=str(bill_amount(whole)),
        idle=str(bill_amount(idle)),
        idle_share=round(idle / whole, 4) if whole else 0.0,
        price_per_hour=price_text(accounts.nanos_per_hour(found.bills)),
        buckets=bars(found),
        splits=[Split(by, _parts(sums)) for by, sums in splits.items()],
        month=month.name,
        month_so_far=str(bill_amount(month.so_far)),
        month_forecast=str(bill_amount(month.forecast)),
        mean_per_hour=price_text(round(month.mean)),
        month_budget=str(bill_amount(budget * 3600)) if budget is not None else "",
        before=_before(seat, picture, found),
    )


def against(
    seat: Seat, picture: Picture, way: str, hours: float, since: float | None = None, until: float | None = None
) -> Against:
    """Raises TransientError where there is no past."""
    found = books(seat, picture, hours, since, until)
    whole = found.total
    try:
        other = alternative(found, way)
    except GivenError as error:
        return Against(way, str(error).removeprefix(f"{way}: "))
    saved = other.nano_seconds - whole
    return Against(
        way,
        other.told,
        other.flavour,
        other.machines,
        str(bill_amount(other.nano_seconds)),
        str(bill_amount(saved)),
        round(saved / other.nano_seconds, 4) if other.nano_seconds else 0.0,
        other.assumes,
    )


def _parts(sums: Mapping[str, int]) -> list[CostPart]:
    ordered = sorted(sums.items(), key=lambda item: (item[0] == IDLE, -item[1], item[0]))
    few = ordered[:MOST_PARTS]
    rest = sum(amount for _, amount in ordered[MOST_PARTS:])
    found = [CostPart(name, str(bill_amount(amount))) for name, amount in few]
    return [*found, CostPart(f"({len(ordered) - MOST_PARTS} others)", str(bill_amount(rest)))] if rest else found


def _month(seat: Seat, picture: Picture, found: Books) -> Month:
    """Of the window's bills, and those that the month has beyond it."""
    whole = books_of(seat.store(), picture.policy, Window(looked_at(found.now), found.now), found.now)
    return month_of(whole.bills, whole.catalogue.billing, found.now)
