"""Long real stories with many cases run some of them each day, in turn; `HTAS_TURN=all` runs them all.

A function marked `@pytest.mark.in_turn(n)` runs every n-th of its cases, beginning with another one each day.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest

ALL = "all"


def due(items: Sequence[pytest.Item], turn: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The items that run and those that do not; `turn` is a number of days, or `all`."""
    if turn == ALL:
        return list(items), []
    left_out = set[pytest.Item]()
    for cases in _by_function(items).values():
        marker = cases[0].get_closest_marker("in_turn")
        every = marker.args[0] if marker is not None else 1
        left_out |= {case for number, case in enumerate(cases) if (number + int(turn)) % every and len(cases) >= every}
    return [each for each in items if each not in left_out], [each for each in items if each in left_out]


def _by_function(items: Sequence[pytest.Item]) -> dict[str, list[pytest.Item]]:
    found = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        found[item.nodeid.partition("[")[0]].append(item)
    return found
