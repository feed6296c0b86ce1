"""What YAML from outside may come to: laws of the counter, and what people write."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.yaml_bounds import MOST_DEEP, MOST_VALUES, YamlBoundsError, check, load

PLAIN = st.recursive(
    st.one_of(st.integers(0, 9), st.text("ab", max_size=3), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text("ab", min_size=1), inner, max_size=4)),
    max_leaves=20,
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(PLAIN)
def test_what_is_plain_is_read_as_it_is(value: Any) -> None:
    assert load(yaml.safe_dump(value)) == value


def size(value: Any) -> int:
    """How many values it comes to."""
    if isinstance(value, dict):
        return 1 + sum(size(key) + size(each) for key, each in value.items())
    return 1 + sum(map(size, value)) if isinstance(value, list) else 1


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PLAIN, st.integers(0, 4), st.integers(0, 4))
def test_aliases_count_as_often_as_they_are_written_out(value: Any, first: int, second: int) -> None:
    """`b` repeats the value, `c` repeats `b`."""
    text = f"a: &a {yaml.safe_dump([value], default_flow_style=True)}b: &b [{'*a, ' * first}]\nc: [{'*b, ' * second}]\n"
    repeated = first * size([value]) + second * (1 + first * size([value]))
    check(text, repeated)
    if repeated:
        with pytest.raises(YamlBoundsError, match="once its aliases are written out"):
            check(text, repeated - 1)


def test_it_may_be_as_deep_as_any_object_is() -> None:
    assert load("[" * MOST_DEEP + "]" * MOST_DEEP) is not None
    with pytest.raises(YamlBoundsError, match="is nested too deeply"):
        check("[" * (MOST_DEEP + 1))


def test_the_line_is_told() -> None:
    text = "a: &a [x, x]\n\nb: [" + "*a, " * (MOST_VALUES // 3 + 1) + "]\n"
    with pytest.raises(YamlBoundsError) as told:
        check(text)
    assert told.value.line == 3


def test_what_is_malformed_is_left_to_the_reader() -> None:
    check("a: [")
    with pytest.raises(yaml.YAMLError):
        load("a: [")


def test_a_number_without_end_is_refused_before_it_is_made() -> None:
    """YAML 1.1 reads 1:59:59 in base 60: 750 kB of it took 47 s."""
    with pytest.raises(YamlBoundsError, match="a number of"):
        check("y: 1" + ":59" * 5_000)
    check("y: '1" + ":59" * 5_000 + "'")
