"""How many modules a plan enters: both of its plans decide one thing."""

from __future__ import annotations

import sys

import pytest

from tools import entered


def test_one_bind_and_one_launch_are_planned_and_the_profiler_is_gone_then(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.getprofile()
    assert entered.main(["--modules"]) == 0
    told = capsys.readouterr().out
    assert sys.getprofile() is before
    assert "one Bind: " in told
    assert "one Launch: " in told
    assert "  planner.py\n" in told
