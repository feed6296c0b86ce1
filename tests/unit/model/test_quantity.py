from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htas.model.quantity import MAX_AMOUNT, QuantityError, parse_quantity, to_milli, to_units


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("0", Fraction(0), id="zero"),
        pytest.param("100m", Fraction(1, 10), id="milli"),
        pytest.param("5n", Fraction(5, 10**9), id="nano"),
        pytest.param("7u", Fraction(7, 10**6), id="micro"),
        pytest.param("2k", Fraction(2000), id="kilo"),
        pytest.param("3M", Fraction(3 * 10**6), id="mega"),
        pytest.param("1G", Fraction(10**9), id="giga"),
        pytest.param("1T", Fraction(10**12), id="tera"),
        pytest.param("1P", Fraction(10**15), id="peta"),
        pytest.param("1E", Fraction(10**18), id="exa, not an exponent"),
        pytest.param("1Ki", Fraction(2**10), id="kibi"),
        pytest.param("1.5Gi", Fraction(3 * 2**29), id="a fraction of a gibi"),
        pytest.param("1Ei", Fraction(2**60), id="exbi"),
        pytest.param("1e3", Fraction(1000), id="a small exponent"),
        pytest.param("2E-3", Fraction(2, 1000), id="a negative exponent in capitals"),
        pytest.param(".5", Fraction(1, 2), id="no digit before the point"),
        pytest.param("5.", Fraction(5), id="no digit after the point"),
        pytest.param("-1", Fraction(-1), id="a sign"),
    ],
)
def test_parses(text: str, want: Fraction) -> None:
    assert parse_quantity(text) == want


@pytest.mark.parametrize("text", ["", "m", "1 Gi", "1gi", "0x10", "1e", "1.2.3", "NaN", "inf", "1KiB", "--1", "1m5"])
def test_refuses(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "milli", "units"),
    [
        pytest.param("100n", 1, 1, id="a trace of a core is a whole millicore"),
        pytest.param("1.0001", 1001, 2, id="rounded up, never down"),
        pytest.param("1500m", 1500, 2, id="one and a half"),
        pytest.param("16Ei", MAX_AMOUNT, MAX_AMOUNT, id="capped at 2^63 - 1"),
    ],
)
def test_rounds_up(text: str, milli: int, units: int) -> None:
    assert (to_milli(parse_quantity(text)), to_units(parse_quantity(text))) == (milli, units)


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "Mi", "Gi"]))
def test_suffixes_scale_exactly(number: int, suffix: str) -> None:
    assert parse_quantity(f"{number}{suffix}") == number * parse_quantity(f"1{suffix}")
