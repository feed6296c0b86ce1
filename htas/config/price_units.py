"""Prices by other units of time than HTAS's hour: what people write, and what they are to write."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from htas.config.values import shown
from htas.model.billing import HOURS_A_MONTH
from htas.model.money import NANOS, price_text

MONTH_H = 672
"""Hours of 28 days, by which providers mostly divide a month's rate: whoever stays longer pays no more."""
MOST_PLACES = 15
"""Before or after the point of a price that is reckoned anew; one with more is not meant so."""
_HOURS = {
    "second": Fraction(1, 3600),
    "minute": Fraction(1, 60),
    "day": Fraction(24),
    "week": Fraction(168),
    "month": Fraction(MONTH_H),
    "year": Fraction(8760),
}
_LY = {"day": "daily"} | {unit: f"{unit}ly" for unit in _HOURS if unit != "day"}
_PRICES = ("pricePer{unit}", "per{unit}", "costPer{unit}", "price{ly}", "{ly}Price", "{ly}Rate", "{ly}Cost")
_FEES = ("feePer{unit}", "{ly}Fee")
_KEYS = {_PRICES: ("pricePerHour", "perHour"), _FEES: ("feePerHour",)}
"""What people call a price and a fee by other units, and HTAS's keys by the hour; no section has both of a price's."""
_MEANT = {
    name.format(unit=unit, ly=ly).lower(): (unit, keys)
    for names, keys in _KEYS.items()
    for name in names
    for unit, ly in _LY.items()
}


def by_another_unit(name: str, written: Any, known: Collection[str]) -> str | None:
    """What to write for a price by the second, day or month; None: the name is of no such price.

    `known` are the keys of the section that the name stands in.
    """
    unit, key = _meant(name, known)
    if not key:
        return None
    hour = _an_hour(written, _HOURS[unit])
    if unit == "month":
        is_fee = key in _KEYS[_FEES]
        cap = f", and monthlyCap: {_quoted(written)} if a month costs no more than that" if not is_fee else ""
        twelfth = _an_hour(written, Fraction(HOURS_A_MONTH))
        by_hour = f'"{hour}" if the provider counts 28 days a month, "{twelfth}" if it counts {HOURS_A_MONTH} hours'
        return f"HTAS reckons by the hour; write {key}{cap}" + (f"; {key} is {by_hour}" if hour else "")
    told = f'{key}: "{hour}" for {shown(written)} a {unit}' if hour else key
    billed = f"; that a started {unit} is charged in full is billing.granularity" if _HOURS[unit] < 1 else ""
    return f"is by the {unit}, and HTAS reckons by the hour; write {told}{billed}"


def key_meant(name: str, known: Collection[str]) -> str:
    """The key by the hour that is meant by a price of another unit; empty: the name is of no such price."""
    return _meant(name, known)[1]


def _meant(name: str, known: Collection[str]) -> tuple[str, str]:
    unit, keys = _MEANT.get(re.sub("[^a-z]", "", name.lower()), ("", ()))
    return unit, next((key for key in keys if key in known), "")


def _an_hour(written: Any, hours: Fraction) -> str:
    """The price of an hour where so many cost what is written, rounded up to nine places; empty where that is none."""
    try:
        price = Decimal(str(written))
    except InvalidOperation:
        return ""
    if not price.is_finite() or price < 0 or (price and abs(price.adjusted()) > MOST_PLACES):
        return ""
    return price_text(math.ceil(Fraction(price) * NANOS / hours))


def _quoted(written: Any) -> str:
    return f'"{written}"' if isinstance(written, str) else "..."
