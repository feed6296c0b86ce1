"""A copy of the tree for each worker, in which one module at a time is broken and its tests are run.

That takes seconds more than a fork (`tools/mutants/forking.py`), and is for what only an import tells: constants,
defaults, decorators.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tools.mutants.mutations import Mutant

COPIED = ("htas", "tests", "tools", "config", "deploy", "docs", "pyproject.toml", "README.md")
HANGS_S = 120
"""A mutant that makes something loop is noticed, too. The tests chosen for one take some seconds of the processor."""
STANDS_STILL_S = 1200.0
"""One that waits for ever, as well; by the clock on the wall, which other work beside it slows down."""

HUNG = "it does not end"

NO_SUCH_TEST = 4
"""pytest's exit status for a name that it cannot find (ExitCode.USAGE_ERROR): that is nobody's catch."""


class Found(msgspec.Struct, frozen=True):
    """What became of a mutant: caught by a test, by time, or by none of `tests` tests."""

    mutant: str
    is_caught: bool
    how: str
    tests: int


class Workshop:
    """A copy of the tree at `folder`."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self.folder = root, folder
        self._sound: set[str] = set()
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, folder / name)

    def try_in_forks(self, jobs: Path, kept: Path, tests: Sequence[str], forks: int) -> None:
        """Those of the jobs that a fork can tell of, each written to `kept` as soon as it is known."""
        options = ["--mutants", str(jobs), "--found", str(kept), "--forks", str(forks), "-s", "--timeout=900"]
        # Else the folder that the tests and both files have in common would name them.
        whose = ["--rootdir", str(self.folder), "-c", str(self.folder / "pyproject.toml")]
        command = [sys.executable, "-B", "-m", "pytest", "-p", "tools.mutants.forking", *whose, "-n0", *options, *tests]
        temporary = self.folder / "temporary"
        temporary.mkdir()
        places = {"PYTEST_DEBUG_TEMPROOT": str(temporary), "HYPOTHESIS_STORAGE_DIRECTORY": str(temporary / "examples")}
        subprocess.run(command, cwd=self.folder, env={**os.environ, **places}, check=False)

    def try_one(self, mutant: Mutant, tests: list[str]) -> Found:
        """Break it, run its tests, mend it."""
        if not tests:
            return Found(mutant.name, False, "no test runs it", 0)
        broken = self.folder / mutant.module
        broken.write_text(mutant.source(self._root))
        try:
            how = self._failing(tests)
        finally:
            broken.write_text((self._root / mutant.module).read_text())
        self._make_sure_of(how)
        return Found(mutant.name, how != "", how or "by no test", len(tests))

    def _make_sure_of(self, test: str) -> None:
        """A test that fails on what is whole, too, would catch everything; raises RuntimeError then."""
        if test.startswith("tests/") and test not in self._sound:
            if self._run([test])[0] != 0:
                raise RuntimeError(f"{test} fails in a copy of the tree, though nothing is broken; mend that first")
            self._sound.add(test)

    def _failing(self, tests: list[str]) -> str:
        """The first test that fails; empty: none does."""
        status, said = self._run(tests)
        if status == NO_SUCH_TEST:
            raise RuntimeError(f"a test that was measured is not there any more: {said[-300:]}")
        if status in (0, None, -signal.SIGXCPU, -signal.SIGKILL):
            return "" if status == 0 else HUNG
        failed = max(
            (test for test in tests if f"FAILED {test}" in said or f"ERROR {test}" in said), key=len, default=""
        )
        return failed or f"pytest ends with {status}"

    def _run(self, tests: list[str]) -> tuple[int | None, str]:
        """pytest's status (None: it does not end) and what it said."""
        names = self.folder / "tests.txt"
        names.write_text("".join(f"{test}\n" for test in tests))
        options = ["-x", "-q", "-n0", "--tb=no", "-p", "no:cacheprovider"]
        with subprocess.Popen(
            [
                "bash",
                "-c",
                f'ulimit -t {HANGS_S}; exec "$@"',
                "-",
                sys.executable,
                "-B",
                "-m",
                "pytest",
                *options,
                f"@{names}",
            ],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=STANDS_STILL_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None, ""
        return process.returncode, said
