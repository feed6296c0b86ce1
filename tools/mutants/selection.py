"""Which tests run which line, by coverage's contexts: measured once, and again for tests that are new or changed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec
from coverage import CoverageData

from tools.mutants.mutations import Mutant

SUITE = (
    "tests/unit/cli",
    "tests/unit/daemon",
    "tests/unit/lab",
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

TESTS_FAILED = 1
"""pytest's exit status (ExitCode.TESTS_FAILED)."""

COVERED_S = 900
"""For one test, where every line it runs is noted: laws and stories take some ten times as long as the suite allows."""


class Selection:
    """The tests that run a line, those first that run least beside it: they fail soonest, and say most."""

    def __init__(self, root: Path, runs: Sequence[Run]) -> None:
        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._breadth: Counter[str] = Counter()
        current = {path: digest for path, digest in _test_files(root).items() if digest}
        for run in runs:
            still = {path for path, digest in run.tests.items() if current.get(path) == digest}
            data = CoverageData(str(run.data))
            data.read()
            for file in data.measured_files():
                module = self._lines[str(Path(file).relative_to(run.root))]
                for line, contexts in data.contexts_by_lineno(file).items():
                    kept = {each for each in contexts if not each or each.partition("::")[0] in still}
                    module[line] |= kept
                    self._breadth.update({_test(context) for context in kept})

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


class Run(msgspec.Struct, frozen=True):
    """A measurement: where the tree was, the file of contexts, and the digests of the test files that were run."""

    root: str
    data: str
    tests: dict[str, str]


def known(root: Path, cache: Path, packages: Sequence[str]) -> list[Run]:
    """What has been measured for the sources as they are."""
    folder = cache / _digest(root, packages)
    return [msgspec.json.decode(file.read_bytes(), type=Run) for file in sorted(folder.glob("*.json"))]


def measured(root: Path, cache: Path, packages: Sequence[str], workers: int) -> list[Run]:
    """What is known for the sources as they are; test files that are not part of it are measured now.

    All of them take some minutes. A change of the sources is another state of them, of which nothing is known yet.
    """
    folder, runs = cache / _digest(root, packages), known(root, cache, packages)
    done = {item for run in runs for item in run.tests.items()}
    missing = {path: digest for path, digest in _test_files(root).items() if (path, digest) not in done}
    for suite in SUITE:  # one after another: what is broken off goes on there
        part = {path: digest for path, digest in missing.items() if path.startswith(f"{suite}/")}
        if part:
            folder.mkdir(parents=True, exist_ok=True)
            runs.append(_measure(root, folder / f"{len(runs)}", packages, part, workers))
    return runs


def _measure(root: Path, path: Path, packages: Sequence[str], tests: dict[str, str], workers: int) -> Run:
    print(f"running {len(tests)} files of tests ({min(tests)} first) to see which runs which line", flush=True)
    rc = path.with_suffix(".coveragerc")
    rc.write_text(f"[run]\nsource = {','.join(packages)}\ndata_file = {path}.contexts\n")
    options = ["--cov", f"--cov-config={rc}", "--cov-context=test", "--cov-report=", f"--timeout={COVERED_S}"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers if workers > 1 else 0), *options, *sorted(tests)]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    if done.returncode not in (0, TESTS_FAILED):
        raise SystemExit(f"pytest ends with {done.returncode}:\n{done.stdout[-3000:]}")
    if done.returncode:  # one that is too slow here: whoever catches a mutant is asked about what is whole, too
        print(f"some fail as they are:\n{done.stdout[-1000:]}", flush=True)
    run = Run(str(root), f"{path}.contexts", tests)
    path.with_suffix(".json").write_bytes(msgspec.json.encode(run))
    return run


def _test_files(root: Path) -> dict[str, str]:
    """The suite's files and their digests; of a builder that changes nothing is told."""
    files = (file for folder in SUITE for file in sorted((root / folder).rglob("test_*.py")))
    paths = ((file.relative_to(root).as_posix(), file) for file in files)
    return {path: hashlib.sha256(file.read_bytes()).hexdigest()[:12] for path, file in paths if path not in WITHOUT}


def _digest(root: Path, packages: Sequence[str]) -> str:
    """Of the lines that contexts tell of."""
    found = hashlib.sha256()
    for folder in packages:
        for file in sorted((root / folder).rglob("*.py")):
            found.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:12]
