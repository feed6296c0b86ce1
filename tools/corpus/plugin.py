"""A pytest plugin that looks at the planner and at what a daemon does, while tests run.

    python -m pytest -p tools.corpus.plugin --corpus FOLDER [--only-stories] ...

It is imported before any test is, so that whoever imports `plan` gets the one that is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from htas.planning import planner
from tools.corpus.decisions import write
from tools.corpus.recording import Recorder

recorder = Recorder()
planner.plan = recorder.watching(planner.plan)  # type: ignore[assignment] # its last argument has a default there

from tools.corpus import stories  # noqa: E402 - it imports the daemon, which has to find the planner looked at

told: dict[str, tuple[str, ...]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--corpus", type=Path, required=True, help="folder for what was recorded")
    parser.addoption("--only-stories", action="store_true", help="what daemons do, and no plans")


def pytest_configure(config: pytest.Config) -> None:
    recorder.is_off = config.getoption("--only-stories")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    recorder.source = item.nodeid
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with stories.listening() as lines:
        result = yield
    if lines:
        told[item.nodeid] = stories.shortened(lines)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    part = session.config.getoption("--corpus") / os.environ.get("PYTEST_XDIST_WORKER", "all")
    write(part, recorder.questions, recorder.answers, recorder.policies)
    (part / "passed-over.json").write_bytes(msgspec.json.encode(recorder.passed_over))
    stories.write(part / stories.STORIES, told)
