"""`htas history` on a terminal: one line an event, at any width; whole in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from htas.cli.history import table_of
from htas.profiler.history import Entry
from tests.builders import NOW

WHY = "from htas-batch-0123456789 to htas-batch-9876543210 in 12.3 s (checkpoint 4.1 s, copy 6.2 s, restore 2.0 s), 512.0 MiB"
EVENTS = [
    Entry(12, NOW - 60, "moved", "default/a-rather-long-name-of-a-pod-0123456789", "done", WHY, None),
    Entry(13, NOW - 30, "launch", "htas-batch-0123456789", "failed", "QuotaReached: no more", None),
    Entry(14, NOW, "drain", "n", "done", "utilisation 12% ≤ 50%", 100_000_000),
]


@pytest.mark.parametrize("width", [80, 100, 120, 160, 300])
def test_an_event_is_a_line(width: int) -> None:
    lines = shown(width)
    assert len(lines) == 1 + len(EVENTS)
    assert max(map(len, lines)) <= width
    assert ("…" in lines[1]) == (width < 300)
    assert "failed" in lines[2]
    assert "QuotaReached" in lines[2]


def shown(width: int) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=True, file=io.StringIO(), highlight=False)
    console.print(table_of(EVENTS, NOW, width))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_narrow_ones_leave_out_the_cycle() -> None:
    assert shown(80)[0].split() == ["when", "what", "on", "why"]
    assert shown(120)[0].split()[0] == "cycle"


def test_without_a_width_all_is_said() -> None:
    console = Console(width=1000, color_system=None, file=io.StringIO(), highlight=False)
    console.print(table_of(EVENTS, NOW, None))
    assert isinstance(console.file, io.StringIO)
    assert WHY in console.file.getvalue()
