"""Prices by other units of time than HTAS's hour: what people write, and what they are to write."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from htas.config.values import shown
from htas.model.money import NANOS, price_text

MONTH_H = 672
"""Hours of four weeks, by which providers mostly divide a month's rate: whoever stays longer pays no more."""
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
_NAMES = ("pricePer{unit}", "per{unit}", "costPer{unit}", "price{ly}", "{ly}Price", "{ly}Rate", "{ly}Cost")
_UNIT_OF = {name.format(unit=unit, ly=ly).lower(): unit for unit, ly in _LY.items() for name in _NAMES}


def by_another_unit(name: str, written: Any, key: str) -> str | None:
    """What to write for a price by the second, day or month under HTAS's `key`; None: the name is of no such price."""
    unit = _UNIT_OF.get(re.sub("[^a-z]", "", name.lower()))
    if unit is None:
        return None
    hour = _an_hour(written, _HOURS[unit])
    if unit == "month":
        most = f"monthlyCap: {_quoted(written)} if a month costs no more than that"
        by_hour = f'; by {MONTH_H} hours a month, {shown(written)} is {key}: "{hour}"' if hour else ""
        return f"HTAS reckons by the hour; write {key}, and {most}{by_hour}"
    told = f'{key}: "{hour}" for {shown(written)} a {unit}' if hour else f"{key}, the price of an hour"
    billed = f"; that a started {unit} is charged in full is billing.granularity" if _HOURS[unit] < 1 else ""
    return f"is a price a {unit}, and HTAS reckons by the hour; write {told}{billed}"


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
