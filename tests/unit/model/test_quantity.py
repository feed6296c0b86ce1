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
        pytest.param("128Mi", Fraction(2**27), id="mebi"),
        pytest.param("4Ti", Fraction(2**42), id="tebi"),
        pytest.param("2Pi", Fraction(2**51), id="pebi"),
        pytest.param("1.5Gi", Fraction(3 * 2**29), id="a fraction of a gibi"),
        pytest.param("1Ei", Fraction(2**60), id="exbi"),
        pytest.param("1e3", Fraction(1000), id="a small exponent"),
        pytest.param("2E-3", Fraction(2, 1000), id="a negative exponent in capitals"),
        pytest.param(".5", Fraction(1, 2), id="no digit before the point"),
        pytest.param("5.", Fraction(5), id="no digit after the point"),
        pytest.param("-1", Fraction(-1), id="a sign"),
        pytest.param("+0.5Gi", Fraction(2**29), id="a plus"),
        pytest.param("1e+3", Fraction(1000), id="an exponent with a plus"),
        pytest.param("1e-07", Fraction(1, 10**7), id="an exponent as numbers are printed"),
        pytest.param("0.1", Fraction(1, 10), id="a tenth, exactly"),
        pytest.param("0012", Fraction(12), id="zeros in front"),
        pytest.param("12345678901234567890", Fraction(12345678901234567890), id="more than 64 bits"),
    ],
)
def test_parses(text: str, want: Fraction) -> None:
    assert parse_quantity(text) == want


@pytest.mark.parametrize("text", ["9" * 1001, "9" * 5000, f"0.{'0' * 5000}1", f"1{' ' * 5000}"])
def test_thousands_of_digits_are_no_quantity_and_are_not_told_in_full(text: str) -> None:
    with pytest.raises(QuantityError) as told:
        parse_quantity(text)
    assert len(str(told.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "+", "m", "1 Gi", " 1", "1\n", "1gi", "1K", "1ki", "0x10", "1e", "1e3.5", "1e3m", "1e9999", "1.2.3"),
        *("NaN", "inf", "1KiB", "--1", "1m5", "1,5", "1_000", "٣", "1/2"),
    ],
)
def test_refuses(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "milli", "units"),
    [
        pytest.param("100n", 1, 1, id="a trace of a core is a whole millicore"),
        pytest.param("1.0001", 1001, 2, id="rounded up, never down"),
        pytest.param("1500m", 1500, 2, id="one and a half"),
        pytest.param("9223372036854775807", MAX_AMOUNT, MAX_AMOUNT, id="the largest whole amount there is"),
        pytest.param("1e999", MAX_AMOUNT, MAX_AMOUNT, id="an absurd exponent"),
        pytest.param("0.0", 0, 0, id="nothing stays nothing"),
        pytest.param("16Ei", MAX_AMOUNT, MAX_AMOUNT, id="capped at 2^63 - 1"),
    ],
)
def test_rounds_up(text: str, milli: int, units: int) -> None:
    assert (to_milli(parse_quantity(text)), to_units(parse_quantity(text))) == (milli, units)


SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]


@given(st.integers(0, 10**12), st.sampled_from(SUFFIXES))
def test_suffixes_scale_exactly(number: int, suffix: str) -> None:
    assert parse_quantity(f"{number}{suffix}") == number * parse_quantity(f"1{suffix}")


@given(st.integers(0, 10**9), st.integers(0, 12), st.sampled_from(SUFFIXES))
def test_a_decimal_point_divides_by_a_power_of_ten(number: int, digits: int, suffix: str) -> None:
    whole, rest = divmod(number, 10**digits)
    text = f"{whole}.{rest:0{digits}d}{suffix}" if digits else f"{whole}{suffix}"
    assert parse_quantity(text) * 10**digits == number * parse_quantity(f"1{suffix}")


@given(st.integers(0, 10**12), st.sampled_from(SUFFIXES))
def test_rounding_up_adds_less_than_one(number: int, suffix: str) -> None:
    value = parse_quantity(f"{number}{suffix}")
    assert to_units(value) == MAX_AMOUNT or value <= to_units(value) < value + 1
    assert to_milli(value) == MAX_AMOUNT or value * 1000 <= to_milli(value) < value * 1000 + 1
