"""Hostile dumps in small: whatever a namespace writes, the quiet one has its room, and twice as much costs about twice."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from tools.adversary.dumps import QUIET, cost_of, dump_of
from tools.adversary.shapes import SHAPES, TAKES_ALL

ONCE_WORSE = (
    "a hundred host ports",
    "sixteen namespace selectors",
    "own selectors of namespaces",
    "terms of node affinity",
    "volumes with terms",
    "names of namespaces in affinity",
    "invented resources",
    "nineteen spread constraints",
)
"""What once cost the square or the cube of their number, or seconds for each pod."""


@pytest.mark.parametrize("shape", [name for name in SHAPES if name not in TAKES_ALL])
def test_a_quiet_namespace_has_its_room_beside_it(shape: str) -> None:
    assert cost_of(dump_of(shape, 6, 20)).served == QUIET


def calls(shape: str, count: int) -> int:
    """Functions called to read and plan for so many hostile objects, beside what the cluster itself takes."""
    called = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        del frame, argument
        nonlocal called
        called += event in ("call", "c_call")

    text = dump_of(shape, count, 40)
    sys.setprofile(note)
    try:
        cost_of(text)
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.parametrize("shape", ONCE_WORSE)
def test_twice_as_much_costs_about_twice(shape: str) -> None:
    cost_of(dump_of(shape, 2, 40))  # what is loaded and remembered once is no part of it
    base = calls(shape, 0)
    once, twice = calls(shape, 20) - base, calls(shape, 40) - base
    assert twice < 2.7 * once
