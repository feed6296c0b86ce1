"""Stories are compared with how they went before, while they are told; tests on the machine get a second chance."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tracebacks import with_lines
from tests.turns import due

TOLD = ("tests/stories/", "tests/unit/execution/")
ON_THE_MACHINE = tuple(
    f"tests/{each}/" for each in ("contracts", "unit/adapters", "unit/cli", "unit/daemon", "unit/tools", "unit/web")
)
"""Tests with programs, sockets and threads: two cores that others share may starve one of them for seconds."""
HOW_TO_RENEW = """
The story still ends as it should, but goes another way than the one on record (tests/corpus/stories.jsonl).
If that is meant: python -m tools.corpus renew --stories
It prints where each story that changed begins to differ; read that before you commit what it wrote."""

settings.register_profile("htas", derandomize=True, deadline=None)
settings.load_profile("htas")
"""Where a test asks for nothing else: the same examples each time, however slow a machine that others share may be."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What fails for the machine's sake is told once more, and shown (RERUN); plans, laws and stories never are."""
    items[:], left_out = due(items, os.environ.get("HTAS_TURN") or str(date.today().toordinal()))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    for item in items:
        if item.nodeid.startswith(ON_THE_MACHINE):
            item.add_marker(pytest.mark.flaky(reruns=1))


@cache
def recorded() -> dict[str, tuple[str, ...]]:
    from tools.corpus import stories

    return stories.read(Path(__file__).parent / "corpus" / stories.STORIES)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[object]) -> Iterator[None]:
    """A time limit's signal may strike where Python has no line, and then the failure is still shown."""
    if call.excinfo is not None:
        call.excinfo = pytest.ExceptionInfo.from_exception(with_lines(call.excinfo.value))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A daemon's calls on cluster and cloud, and outcomes that no call shows, are as recorded."""
    is_recording = item.config.getoption("--corpus", None) is not None
    if is_recording or not item.nodeid.startswith(TOLD) or item.nodeid not in recorded():
        return (yield)
    from tools.corpus import stories

    with stories.listening() as lines:
        result = yield
    how = stories.first_difference(recorded()[item.nodeid], stories.shortened(lines))
    if how:
        pytest.fail(f"{how}{HOW_TO_RENEW}", pytrace=False)
    return result
