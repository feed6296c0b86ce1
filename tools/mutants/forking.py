"""A pytest plugin that collects tests once, and asks them about each mutant in a fork of its own.

    python -m pytest -p tools.mutants.forking --mutants JOBS --found FILE --forks 2 tests/...

To import numpy, the solvers and the tests takes seconds, to run the tests that notice a mutant mostly less than one.
What only an import would tell is left to the workshop (`tools/mutants/trying.py`), as is a test of which it is not
known whether it passes on what is whole.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from tools.mutants.mutations import Mutant
from tools.mutants.patching import Changes, Functions, changed_functions
from tools.mutants.trying import HUNG, Found

HANGS_S = 90
"""Of the processor: one that does so is noticed. The tests for one mutant take half of that at most."""
MOST_MEMORY = 4 * 2**30


class Job(msgspec.Struct, frozen=True):
    """A mutant and the tests that are to notice it, in their turn; `source` is its module broken."""

    module: str
    name: str
    source: str
    tests: tuple[str, ...]


def job(mutant: Mutant, root: Path, tests: Sequence[str]) -> Job:
    return Job(mutant.module, mutant.name, mutant.source(root), tuple(tests))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", type=Path, required=True, help="file of jobs")
    parser.addoption("--found", type=Path, required=True, help="file to which is added what was found")
    parser.addoption("--forks", type=int, default=2)
    parser.addoption("--most-seconds", type=int, default=HANGS_S, help="of the processor, for all tests of a mutant")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Forks(config), "mutants")


class Forks:
    """Runs each job in a fork, as many at a time as are allowed."""

    def __init__(self, config: pytest.Config) -> None:
        self._jobs = msgspec.json.decode(config.getoption("--mutants").read_bytes(), type=list[Job])
        self._found: Path = config.getoption("--found")
        self._forks: int = config.getoption("--forks")
        self._most_s: int = config.getoption("--most-seconds")
        self._sound: dict[str, bool] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("some tests cannot be collected")
        items = {item.nodeid: item for item in session.items}
        root = Path.cwd()
        functions = Functions(str(root / each.module) for each in self._jobs)
        gc.collect()
        gc.freeze()
        under_way: dict[int, tuple[Job, int]] = {}
        for each in self._jobs:
            changes = changed_functions((root / each.module).read_text(), each.source, str(root / each.module))
            if changes is None or not functions.have(str(root / each.module), changes):
                continue
            asked = _named(each.tests, items)
            if not asked:
                continue
            pid, told = _forked(_asking(asked, functions, str(root / each.module), changes), self._most_s)
            under_way[pid] = each, told
            if len(under_way) >= self._forks:
                self._one_ends(under_way, items)
        while under_way:
            self._one_ends(under_way, items)
        return True

    def _one_ends(self, under_way: dict[int, tuple[Job, int]], items: dict[str, pytest.Item]) -> None:
        pid, status = os.wait()
        each, told = under_way.pop(pid)
        test = _read(told)
        how = test or (HUNG if os.WIFSIGNALED(status) else "")
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            print(f"\n{each.name} is left: its tests ended the process", flush=True)
            return
        if test and not self._is_sound(items[test]):
            print(f"\n{test} fails though nothing is broken; {each.name} is left", flush=True)
            return
        found = Found(each.name, bool(how), how or "by no test", len(each.tests))
        with self._found.open("ab") as written:
            written.write(msgspec.json.encode(found) + b"\n")
        print(f"\n{'caught' if how else 'SURVIVED':8}  {each.name}  {found.how}", flush=True)

    def _is_sound(self, item: pytest.Item) -> bool:
        """A test that fails on what is whole, too, would catch everything."""
        if item.nodeid not in self._sound:
            pid, told = _forked(lambda: _first_failing([item]), self._most_s)
            _, status = os.waitpid(pid, 0)
            self._sound[item.nodeid] = not _read(told) and not status
        return self._sound[item.nodeid]


def _named(tests: Sequence[str], items: dict[str, pytest.Item]) -> list[pytest.Item]:
    """In their turn; a file or a folder stands for all of its tests."""
    found = dict[str, pytest.Item]()
    for test in tests:
        if test in items:
            found[test] = items[test]
        elif "::" not in test:
            found |= {name: item for name, item in items.items() if name.startswith((f"{test}::", f"{test}/"))}
    return list(found.values())


def _asking(items: list[pytest.Item], functions: Functions, file: str, changes: Changes) -> Callable[[], str]:
    def ask() -> str:
        functions.exchange(file, changes)
        return _first_failing(items)

    return ask


def _first_failing(items: list[pytest.Item]) -> str:
    """The name of the first test that fails; empty: none does."""
    failed: list[str] = []

    class Listening:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    items[0].config.pluginmanager.register(Listening())
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            return failed[0]
    return ""


def _forked(work: Callable[[], str], most_s: int) -> tuple[int, int]:
    """The id of a process that works, and a pipe on which it tells what comes of it."""
    told, telling = os.pipe()
    pid = os.fork()
    if pid:
        os.close(telling)
        return pid, told
    status = 1
    try:
        os.close(told)
        resource.setrlimit(resource.RLIMIT_CPU, (most_s, most_s))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device
            sys.stdout = sys.stderr = nowhere
            os.write(telling, work().encode())
        status = 0
    except Exception:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(status)


def _read(pipe: int) -> str:
    with open(pipe, "rb") as told:
        return told.read().decode()
