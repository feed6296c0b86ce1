"""Pauses that double with each failure."""

from __future__ import annotations

import pytest

from htas.model.pauses import doubled_s, is_on
from tests.builders import NOW


@pytest.mark.parametrize(
    ("times", "length_s"), [(0, 20.0), (1, 20.0), (2, 40.0), (3, 80.0), (8, 1800.0), (5000, 1800.0)]
)
def test_a_pause_doubles_up_to_the_longest(times: int, length_s: float) -> None:
    assert doubled_s(times, 20.0, 1800.0) == length_s


@pytest.mark.parametrize(
    ("begun_at", "on"),
    [
        pytest.param(NOW, True, id="now"),
        pytest.param(NOW - 59, True, id="a second is left"),
        pytest.param(NOW - 60, False, id="over"),
        pytest.param(NOW + 1, False, id="begun by a clock that was ahead"),
    ],
)
def test_a_pause_is_on_from_its_beginning_to_its_end(begun_at: float, *, on: bool) -> None:
    assert is_on(begun_at + 60, 60, NOW) is on
