"""Breaking code at random places: which places, and which tests are asked."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from coverage import CoverageData

from tools.mutants.forking import Job
from tools.mutants.mutations import Mutant, sample
from tools.mutants.patching import Functions, changed_functions
from tools.mutants.selection import Run, Selection
from tools.mutants.trying import Found

MODULE = "planning.py"
TEXT = """from __future__ import annotations

def least(first: int | None, second: int = 3) -> int | None:
    return second if first is None or second < first else first
"""


FILE = "tests/laws/test_a.py"


def selection(root: Path, measured: Path) -> Selection:
    """As measured with the test files as they are."""
    for file in (FILE, "tests/corpus/test_b.py"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    digest = hashlib.sha256(b"").hexdigest()[:12]
    return Selection(root, [Run(str(root), str(measured), {FILE: digest, "tests/corpus/test_b.py": digest})])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / MODULE).write_text(TEXT)
    return tmp_path


def test_the_same_seed_draws_the_same_places(root: Path) -> None:
    few = sample(root, [MODULE], 3, seed=4)
    assert few == sample(root, [MODULE], 3, seed=4)
    assert len({(each.operator, each.occurrence) for each in few}) == 3


def test_only_what_is_evaluated_is_broken(root: Path) -> None:
    everything = sample(root, [MODULE], 1000, seed=1)
    assert {each.line for each in everything} == {3, 4}
    for each in everything:
        changed = each.source(root)
        assert changed != TEXT
        assert changed.count("int | None") == 2, "annotations are nobody's business"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("Rows = tuple[int | None, ...]", id="a name of a type"),
        pytest.param("@lru_cache(maxsize=8)\ndef f(x): return x", id="how many results are remembered"),
        pytest.param("pairs = list(zip(a, b, strict=True))", id="that lists of ours are of one length"),
        pytest.param("log.info('placed', count=-1)", id="a line of the log"),
        pytest.param("self.clock.work(nodes * 5e-4 + 1)", id="work counted for a search's clock"),
        pytest.param("@dataclass(frozen=True, slots=True)\nclass Row: ...", id="what a class is declared to be"),
    ],
)
def test_what_changes_no_behaviour_is_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / MODULE).write_text(f"{line}\n")
    assert sample(tmp_path, [MODULE], 1000, seed=1) == []


@pytest.mark.parametrize("line", ["x = tuple(n + 1 for n in rows)", "@property\ndef f(x): return x", "f(strict=True)"])
def test_what_changes_some_is_not(tmp_path: Path, line: str) -> None:
    (tmp_path / MODULE).write_text(f"{line}\n")
    assert sample(tmp_path, [MODULE], 1000, seed=1)


def test_tests_that_run_nearly_everything_are_always_asked_and_last(root: Path, tmp_path: Path) -> None:
    measured = tmp_path / "contexts"
    data = CoverageData(str(measured))
    for test in ("tests/corpus/test_b.py::all", f"{FILE}::one", f"{FILE}::two"):
        data.set_context(f"{test}|run")
        data.add_lines({str(root / MODULE): [4]})
    data.write()
    asked = selection(root, measured).tests(Mutant(MODULE, 4, 4, "core/AddNot", 0), 1)
    assert asked == [f"{FILE}::one", "tests/corpus/test_b.py::all"]


def test_the_tests_that_run_a_line_are_asked_the_narrowest_first(root: Path, tmp_path: Path) -> None:
    measured = tmp_path / "contexts"
    data = CoverageData(str(measured))
    for test, lines in ((f"{FILE}::broad", [3, 4]), (f"{FILE}::narrow", [4]), (f"{FILE}::elsewhere", [3])):
        data.set_context(f"{test}|run")
        data.add_lines({str(root / MODULE): lines})
    data.set_context("")
    data.add_lines({str(root / MODULE): [1]})
    data.write()
    chosen = selection(root, measured)
    on_line_4 = Mutant(MODULE, 4, 4, "core/AddNot", 0)
    assert chosen.tests(on_line_4, 10) == [f"{FILE}::narrow", f"{FILE}::broad"]
    assert chosen.tests(on_line_4, 1) == [f"{FILE}::narrow"]
    by_import_alone = Mutant(MODULE, 1, 1, "core/NumberReplacer", 0)
    assert len(chosen.tests(by_import_alone, 10)) == 3


def test_a_test_file_that_has_changed_since_is_not_believed_to_run_what_it_ran(root: Path, tmp_path: Path) -> None:
    measured = tmp_path / "contexts"
    data = CoverageData(str(measured))
    data.set_context(f"{FILE}::one|run")
    data.add_lines({str(root / MODULE): [4]})
    data.write()
    chosen = selection(root, measured)
    assert chosen.tests(Mutant(MODULE, 4, 4, "core/AddNot", 0), 1) == [f"{FILE}::one"]
    (root / FILE).write_text("def two(): ...")
    changed = Selection(root, [Run(str(root), str(measured), {FILE: "as it was"})])
    assert changed.tests(Mutant(MODULE, 4, 4, "core/AddNot", 0), 1) == []


WHOLE = """
MOST = 3

def capped(amount, most=MOST):
    return min(amount, most)

class Sum:
    total = 0

    def add(self, amount):
        return sum(each + 1 for each in [amount, self.total])

KEYS = [key for key in "ab"]
ORDER = lambda item: -item
"""


@pytest.mark.parametrize(
    ("was", "becomes", "functions"),
    [
        pytest.param("min(amount", "max(amount", ["capped"], id="in a function"),
        pytest.param("each + 1", "each - 1", ["add"], id="in a method, within what it is made of"),
        pytest.param("-item", "+item", ["<lambda>"], id="in a lambda"),
        pytest.param("most=MOST", "most=1", None, id="a default"),
        pytest.param("MOST = 3", "MOST = 4", None, id="a constant"),
        pytest.param("total = 0", "total = 1", None, id="a class's own"),
        pytest.param('in "ab"', 'in "abc"', None, id="what is made at import"),
        pytest.param("MOST = 3", "MOST = 3", None, id="nothing at all"),
    ],
)
def test_what_an_import_does_not_run_again_can_be_exchanged(
    was: str, becomes: str, functions: list[str] | None
) -> None:
    changes = changed_functions(WHOLE, WHOLE.replace(was, becomes), "m.py")
    assert (None if changes is None else [code.co_name for code in changes]) == functions


def test_functions_are_exchanged_wherever_they_are_known(tmp_path: Path) -> None:
    file = str(tmp_path / "m.py")
    module: dict[str, Any] = {}
    exec(compile(WHOLE, file, "exec", dont_inherit=True), module)
    elsewhere = module["capped"]
    changes = changed_functions(WHOLE, WHOLE.replace("min(amount", "max(amount"), file)
    assert changes is not None
    functions = Functions([file])
    assert functions.have(file, changes)
    assert not functions.have(str(tmp_path / "other.py"), changes)
    assert elsewhere(5) == 3
    functions.exchange(file, changes)
    assert elsewhere(5) == 5


TESTS = """
from m import capped

def test_few():
    assert capped(1) == 1

def test_many():
    assert capped(9) == 3
"""


def test_forks_tell_which_test_notices_and_leave_the_module_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(WHOLE)
    (tmp_path / "test_m.py").write_text(TESTS)
    tests = ("test_m.py::test_few", "test_m.py::test_many")

    def job(name: str, was: str, becomes: str, *asked: str) -> Job:
        return Job("m.py", name, WHOLE.replace(was, becomes), asked)

    jobs = [
        job("larger", "min(amount", "max(amount", *tests),
        job("the same", "min(amount", "min(+amount", *tests),
        job("unseen", "each + 1", "each - 1", *tests),
        job("whole file", "min(amount", "max(amount", "test_m.py"),
        job("endless", "return min", "return sum(0 for _ in iter(int, 1)) + min", *tests),
        job("constant", "MOST = 3", "MOST = 2", *tests),
    ]
    (tmp_path / "jobs.json").write_bytes(msgspec.json.encode(jobs))
    options = ["--mutants", "jobs.json", "--found", "found", "--forks", "2", "--most-seconds", "1", "-n0"]
    command = [sys.executable, "-m", "pytest", "-p", "tools.mutants.forking", "-p", "no:cacheprovider", *options, "."]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3]}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    found = [msgspec.json.decode(line, type=Found) for line in (tmp_path / "found").read_bytes().splitlines()]
    assert {each.mutant: each.how for each in found} == {
        "larger": "test_m.py::test_few",
        "the same": "by no test",
        "unseen": "by no test",
        "whole file": "test_m.py::test_few",
        "endless": "it does not end",
    }, done.stdout
