"""The ratchet: what it counts, and when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from tools import ratchet
from tools.ratchet import RECORD, ROOT, WHAT, Record, constants, counted, judged, keys, lowered, read

RAISED = '[[raised]]\nwhat = "lines"\nby = 20\nfeature = "gangs"\nreason = "a pass of its own"\n'
BASE = "[base]\n" + "".join(f"{what} = 100\n" for what in WHAT)
FULL = dict.fromkeys(WHAT, 100)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("SOON_S = 3600.0", 1, id="a number"),
        pytest.param("SHARE: float = 0.5", 1, id="an annotated one"),
        pytest.param("_LEAST = -2 * 60", 1, id="arithmetic"),
        pytest.param("MIB = 2**20\nMOST = 4 * MIB", 2, id="arithmetic with a constant"),
        pytest.param("FEW, MANY = 3, 50", 2, id="two at once"),
        pytest.param("ALIAS = OTHER", 0, id="another name for a constant"),
        pytest.param("IS_ON = True", 0, id="a switch"),
        pytest.param("NAME = 'x'\nSIZES = (1, 2)", 0, id="text, a table"),
        pytest.param("number = 3\ndef f():\n    MOST = 3", 0, id="no constant of the module"),
    ],
)
def test_numbers_that_are_constants_of_a_module_are_counted(text: str, count: int) -> None:
    assert constants(text) == count


def test_keys_of_sections_are_counted_and_sections_are_not() -> None:
    class Inner(BaseModel):
        one: int = 1
        two: int = 2

    class Outer(BaseModel):
        inner: Inner = Inner()
        many: list[Inner] = []
        own: str = ""

    assert keys(Outer) == 5


@pytest.mark.parametrize(
    ("raised", "lines", "is_above", "is_below"),
    [
        pytest.param("", 100, False, False, id="as recorded"),
        pytest.param("", 101, True, False, id="one more"),
        pytest.param(RAISED, 120, False, False, id="as much more as a feature may"),
        pytest.param(RAISED, 121, True, False, id="more than that"),
        pytest.param("", 99, False, True, id="one less"),
    ],
)
def test_a_number_may_not_be_above_its_limit(raised: str, lines: int, is_above: bool, is_below: bool) -> None:
    above, below = judged(read(BASE + raised), {**FULL, "lines": lines})
    assert (bool(above), bool(below)) == (is_above, is_below)


def test_what_is_lower_is_recorded_below_what_it_was_raised_by() -> None:
    text = BASE + RAISED
    numbers = {**FULL, "lines": 110, "modules": 90}
    record = read(lowered(text, read(text), numbers))
    assert (record.limit("lines"), record.limit("modules"), record.limit("suppressions")) == (110, 90, 100)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(BASE.replace("lines = 100\n", ""), id="a number is missing"),
        pytest.param(BASE + RAISED.replace("gangs", " "), id="no feature"),
        pytest.param(BASE + RAISED.replace("a pass of its own", ""), id="no reason"),
        pytest.param(BASE + RAISED.replace("20", "-20"), id="it is lowered"),
        pytest.param(BASE + RAISED.replace("lines", "words"), id="a number that nobody counts"),
        pytest.param(BASE + RAISED + 'since = "now"\n', id="a key that is not known"),
    ],
)
def test_a_record_that_explains_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read(text)


def test_the_command_fails_above_and_records_what_is_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ratchet, "ROOT", tmp_path)
    monkeypatch.setattr(ratchet, "counted", lambda root: {**FULL, "modules": 90})
    (tmp_path / RECORD).write_text(BASE)
    assert ratchet.main(["--write"]) == 0
    assert ratchet.main([]) == 0
    monkeypatch.setattr(ratchet, "counted", lambda root: FULL)
    capsys.readouterr()
    assert ratchet.main([]) == 1
    assert 'what = "modules"\nby = 10' in capsys.readouterr().out


def test_each_size_is_counted() -> None:
    assert all(counted(ROOT).values())
    assert isinstance(read((ROOT / RECORD).read_text()), Record)
