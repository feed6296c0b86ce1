"""Which tests run which line: measured once, with the whole suite, by coverage's contexts."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

from coverage import CoverageData

from tools.mutants.mutations import Mutant

SUITE = (
    "tests/unit/cli",
    "tests/unit/daemon",
    "tests/unit/experiments",
    "tests/unit/planning",
    "tests/unit/execution",
    "tests/unit/sandbox",
    "tests/unit/profiler",
    "tests/laws",
    "tests/stories",
    "tests/corpus",
)
"""The tests that are meant to notice; those left out read files, servers and clouds."""
WITHOUT = ("tests/laws/test_fuzz.py", "tests/stories/test_adversary.py")
"""They run every line and compare few results: no test of theirs would be chosen."""

BROAD = "tests/corpus/"
"""Tests that run nearly every line and compare all that comes of it: they are always tried, and last."""

COVERED_S = 900
"""For one test, where every line it runs is noted: laws and stories take some ten times as long as the suite allows."""


class Selection:
    """The tests that run a line, those first that run least beside it: they fail soonest, and say most."""

    def __init__(self, root: Path, measured: Path) -> None:
        self._root = root
        data = CoverageData(str(measured))
        data.read()
        self._lines: dict[str, dict[int, list[str]]] = {}
        self._breadth: Counter[str] = Counter()
        for file in data.measured_files():
            lines = data.contexts_by_lineno(file)
            self._lines[str(Path(file).relative_to(root))] = lines
            for contexts in lines.values():
                self._breadth.update({_test(context) for context in contexts})

    def tests(self, mutant: Mutant, most: int) -> list[str]:
        """At most so many, and the broad ones; where a line is run by import alone, those of any line of its module."""
        lines = self._lines.get(mutant.module, {})
        contexts = {context for line in range(mutant.line, mutant.last_line + 1) for context in lines.get(line, ())}
        tests = _tests(contexts) or _tests({context for each in lines.values() for context in each})
        in_turn = sorted(tests, key=lambda test: (self._breadth[test], test))
        narrow = [test for test in in_turn if not test.startswith(BROAD)]
        return narrow[:most] + [test for test in in_turn if test.startswith(BROAD)]


def _test(context: str) -> str:
    return context.rpartition("|")[0]


def _tests(contexts: set[str]) -> set[str]:
    return {_test(context) for context in contexts if context.endswith("|run")}


def measured(root: Path, folder: Path, packages: tuple[str, ...], workers: int) -> Path:
    """The file of contexts for the sources and tests as they are; made where it is not there yet (some minutes)."""
    path = folder / f"contexts-{_digest(root, packages)}"
    if path.exists():
        return path
    print(f"running the suite once, to see which test runs which line ({path.name})", flush=True)
    rc = folder / "coveragerc"
    rc.write_text(f"[run]\nsource = {','.join(packages)}\ndata_file = {path}.part\n")
    options = [
        "--cov",
        f"--cov-config={rc}",
        "--cov-context=test",
        "--cov-report=",
        f"--timeout={COVERED_S}",
        *(f"--ignore={each}" for each in WITHOUT),
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), *options, *SUITE]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"the suite fails as it is; mend it first:\n{done.stdout[-3000:]}")
    Path(f"{path}.part").rename(path)
    return path


def _digest(root: Path, packages: tuple[str, ...]) -> str:
    """Of what contexts depend on: lines of the packages, and the tests' names."""
    found = hashlib.sha256()
    for folder in (*packages, *SUITE):
        for file in sorted((root / folder).rglob("*.py")):
            found.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:12]
