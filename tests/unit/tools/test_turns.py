"""Of a story's many cases some run each day, and within some days all of them."""

from __future__ import annotations

import pytest

from tests.turns import ALL, due

pytest_plugins = ("pytester",)
STORIES = """
import pytest
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("point", range(7))
def test_many(point): ...
@pytest.mark.in_turn(3)
def test_one(): ...
def test_plain(): ...
"""


@pytest.fixture
def items(pytester: pytest.Pytester) -> list[pytest.Item]:
    pytester.makeini("[pytest]\nmarkers = in_turn(n)")
    return pytester.getitems(STORIES)


def names(items: list[pytest.Item]) -> list[str]:
    return [item.name for item in items]


def test_every_case_has_its_day_and_a_single_one_runs_each_day(items: list[pytest.Item]) -> None:
    days = [names(due(items, str(day))[0]) for day in range(3)]
    assert [name for name in days[0] if "many" in name] == [f"test_many[{i}]" for i in (0, 3, 6)]
    assert {name for day in days for name in day} == set(names(items))
    assert all({"test_one", "test_plain"} <= set(day) for day in days)


def test_all_run_where_all_are_asked_for(items: list[pytest.Item]) -> None:
    assert due(items, ALL) == (items, [])
