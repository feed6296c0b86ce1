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
