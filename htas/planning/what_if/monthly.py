"""Prices of a machine that is kept for a month: with its monthly cap, and whatever the billing periods are.

What a cluster costs is asked for months, so every figure is at these prices. But the daemon compares hourly prices,
without caps, and so every choice is made at those: it never replaces a flavour at 0.10 an hour by one at 0.12 an hour
and 50.00 a month, though that costs less. Billing by the hour, of the clock or of the machine, charges a whole month
alike.
"""

from __future__ import annotations

import msgspec

from htas.model.billing import HOURS_A_MONTH, Billing, Price
from htas.model.flavours import Catalogue, Flavour, ZonePrice


def by_the_month(catalogue: Catalogue) -> Catalogue:
    """The catalogue with what an hour costs of a machine that is kept for a month. It has no caps."""
    flavours = tuple(_by_the_month(flavour) for flavour in catalogue.flavours)
    return msgspec.structs.replace(catalogue, flavours=flavours, billing=Billing())


def _by_the_month(flavour: Flavour) -> Flavour:
    prices = tuple(
        ZonePrice(each.zone, mean_nanos_per_hour(Price(each.nanos_per_hour, each.cap))) for each in flavour.prices
    )
    nanos = mean_nanos_per_hour(Price(flavour.nanos_per_hour, flavour.cap))
    least = min((each.nanos_per_hour for each in prices), default=nanos)
    return msgspec.structs.replace(flavour, nanos_per_hour=least, prices=prices, cap=None)


def mean_nanos_per_hour(price: Price) -> int:
    """What an hour costs in the mean of a month. Rounded up: a month's sum is at most 730 billionths too large."""
    return -(-price.month_nanos // HOURS_A_MONTH)
