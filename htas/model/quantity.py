"""Kubernetes quantities, exact.

Source: Kubernetes API conventions, "Quantity": a decimal number and one suffix of n, u, m, k, M, G, T, P, E
(powers of 1000), Ki … Ei (powers of 1024), or a decimal exponent (`1e3`, `2E-3`).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

MAX_AMOUNT = 2**63 - 1
"""Kubernetes caps amounts at the largest signed 64-bit integer; so does HTAS."""

LONGEST = 1000
"""Characters. An API server writes 20 at most; of more than 4,300 digits Python makes no number at all."""

_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([eE][+-]?\d{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?", re.ASCII)
_SUFFIX = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


class QuantityError(ValueError):
    """The text is not a Kubernetes quantity."""


@lru_cache(maxsize=65536)
def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity such as `100m`, `1.5Gi` or `2e3`; raises QuantityError."""
    if len(text) > LONGEST:
        raise QuantityError(f"{text[:20]!r} … of {len(text):,} characters is not a quantity: {LONGEST} are the most")
    match = _FORM.fullmatch(text)
    if match is None:
        raise QuantityError(f"{text!r} is not a quantity: a number with one of n u m k M G T P E Ki Mi Gi Ti Pi Ei")
    sign, digits, exponent, suffix = match.groups()
    value = Fraction(digits)
    if exponent:
        value *= Fraction(10) ** int(exponent[1:])
    elif suffix:
        value *= _SUFFIX[suffix]
    return -value if sign == "-" else value


def to_units(value: Fraction) -> int:
    """Whole units, rounded up as Kubernetes' Value() does, capped at 2^63 - 1: 1500m pods are 2."""
    return min(-(-value.numerator // value.denominator), MAX_AMOUNT)


def to_milli(value: Fraction) -> int:
    """Thousandths, rounded up as Kubernetes' MilliValue() does: 100n of a core is 1 millicore."""
    return to_units(value * 1000)
