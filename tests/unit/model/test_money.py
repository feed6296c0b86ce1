import re

import pytest

from htas.model.money import PriceError, billed_seconds, parse_price, price_text


@pytest.mark.parametrize(
    ("text", "nanos", "shown"),
    [
        pytest.param("0.0198", 19_800_000, "0.0198", id="the paper's smallest price"),
        pytest.param("12.5", 12_500_000_000, "12.50", id="two places at least"),
        pytest.param("0", 0, "0.00", id="free"),
        pytest.param("0.000000001", 1, "0.000000001", id="the finest price"),
    ],
)
def test_prices_are_exact(text: str, nanos: int, shown: str) -> None:
    assert parse_price(text) == nanos
    assert price_text(nanos) == shown


@pytest.mark.parametrize("text", ["NaN", "inf", "-0.1", "abc", "", "0.0000000001"])
def test_refuses_what_is_no_price(text: str) -> None:
    with pytest.raises(PriceError):
        parse_price(text)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        pytest.param("0,12", 'write it with a point: "0.12"', id="a decimal comma"),
        pytest.param("1,234", 'write "1.234", or "1234" if the comma separates thousands', id="either"),
        pytest.param("1,2345", 'write it with a point: "1.2345"', id="no group of three"),
        pytest.param("0,123", 'write it with a point: "0.123"', id="no thousands begin with 0"),
        pytest.param("1,234,567", 'with a decimal point: "1234567"', id="thousands"),
        pytest.param("1,234.56", 'with a decimal point: "1234.56"', id="thousands and a point"),
        pytest.param("1.234,56", 'with a decimal point: "1234.56"', id="the other way round"),
        pytest.param("1,,2", "is not a decimal number", id="no number"),
    ],
)
def test_a_comma_in_a_price_is_answered_with_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(PriceError, match=re.escape(advice)):
        parse_price(text)


@pytest.mark.parametrize(
    ("held_s", "want"),
    [
        pytest.param(0.0, 60, id="the minimum"),
        pytest.param(59.2, 60, id="part of a minute is a minute"),
        pytest.param(60.0, 60, id="a minute is a minute"),
        pytest.param(60.001, 120, id="a moment more is another minute"),
        pytest.param(3600.0, 3600, id="an hour"),
    ],
)
def test_billing_rounds_up(held_s: float, want: int) -> None:
    assert billed_seconds(held_s, 60, 60) == want
