"""Money, exact.

A price is an integer of billionths of the currency an hour (`nanos_per_hour`). A bill is price × billed seconds, an
integer of "nano-hours × seconds": adding bills is adding integers, and the division by 3600 happens once, at the edge.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

NANOS = 10**9
DEAREST = 10**6 * NANOS
"""A million an hour: 9,000 such machines still add up within 64 bits."""


class PriceError(ValueError):
    """The text is not a price HTAS can hold exactly."""


def parse_price(text: str) -> int:
    """Billionths of the currency from a decimal such as `0.1371`; raises PriceError on NaN, negative or finer ones."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise PriceError(with_point(text) or f"{text!r} is not a decimal number") from None
    if not value.is_finite():
        raise PriceError(f"{text!r} is not a finite number")
    if value < 0:
        raise PriceError(f"{text!r} is negative")
    if value and not -10 < value.adjusted() < 12:
        raise PriceError(f"{text!r} is no price an hour: it has too many places")
    nanos = value * NANOS
    if nanos != nanos.to_integral_value():
        raise PriceError(f"{text!r} has more than nine decimal places")
    return int(nanos)


_DECIMAL_COMMA = re.compile(r"[0-9]{1,12},[0-9]{1,9}")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?")
_BOTH = re.compile(r"[1-9][0-9]{0,2}(\.[0-9]{3})+,[0-9]+")


def with_point(text: str) -> str:
    """What to write for a number with commas; empty where it is none."""
    thousands, comma = _THOUSANDS.fullmatch(text), _DECIMAL_COMMA.fullmatch(text)
    plain = text.replace(",", "")
    if thousands and comma:
        return (
            f"{text!r} has a comma; the decimal sign is a point:"
            f' write "{text.replace(",", ".")}", or "{plain}" if the comma separates thousands'
        )
    if comma:
        return f'{text!r} has a comma; write it with a point: "{text.replace(",", ".")}"'
    if _BOTH.fullmatch(text):
        plain = text.replace(".", "").replace(",", ".")
    elif not thousands:
        return ""
    return f'{text!r} separates thousands; write it without, and with a decimal point: "{plain}"'


def price_text(nanos_per_hour: int) -> str:
    """A price as people write it: at least two decimal places, no superfluous zeros (0.1371, 12.50)."""
    digits = f"{Decimal(nanos_per_hour) / NANOS:.9f}".rstrip("0")
    whole, _, places = digits.partition(".")
    return f"{whole}.{places:0<2}"


def billed_seconds(held_s: float, granularity_s: int, minimum_s: int) -> int:
    """Seconds charged for a machine held so long: rounded up to the granularity, never under the minimum.

    Source: HTAS paper 3.1.2 (1): charged by the minute, any partial usage rounded up. 61 s at 60 s are 120 s.
    """
    whole = max(0, -int(-held_s // 1))
    return max(-(-whole // granularity_s) * granularity_s, minimum_s)


def bill_amount(nano_seconds: int) -> Decimal:
    """The currency amount of a sum of price × billed seconds, to a millionth."""
    return (Decimal(nano_seconds) / (NANOS * 3600)).quantize(Decimal("0.000001"), rounding=ROUND_HALF_EVEN)
