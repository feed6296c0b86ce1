"""Breaking code at random places: which places, and which tests are asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from coverage import CoverageData

from tools.mutants.mutations import Mutant, sample
from tools.mutants.selection import Selection

MODULE = "planning.py"
TEXT = """from __future__ import annotations

def least(first: int | None, second: int = 3) -> int | None:
    return second if first is None or second < first else first
"""


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
    for test in ("tests/corpus/a.py::all", "tests/a.py::one", "tests/a.py::two"):
        data.set_context(f"{test}|run")
        data.add_lines({str(root / MODULE): [4]})
    data.write()
    asked = Selection(root, measured).tests(Mutant(MODULE, 4, 4, "core/AddNot", 0), 1)
    assert asked == ["tests/a.py::one", "tests/corpus/a.py::all"]


def test_the_tests_that_run_a_line_are_asked_the_narrowest_first(root: Path, tmp_path: Path) -> None:
    measured = tmp_path / "contexts"
    data = CoverageData(str(measured))
    for test, lines in (("tests/a.py::broad", [3, 4]), ("tests/a.py::narrow", [4]), ("tests/a.py::elsewhere", [3])):
        data.set_context(f"{test}|run")
        data.add_lines({str(root / MODULE): lines})
    data.set_context("")
    data.add_lines({str(root / MODULE): [1]})
    data.write()
    selection = Selection(root, measured)
    on_line_4 = Mutant(MODULE, 4, 4, "core/AddNot", 0)
    assert selection.tests(on_line_4, 10) == ["tests/a.py::narrow", "tests/a.py::broad"]
    assert selection.tests(on_line_4, 1) == ["tests/a.py::narrow"]
    by_import_alone = Mutant(MODULE, 1, 1, "core/NumberReplacer", 0)
    assert len(selection.tests(by_import_alone, 10)) == 3
