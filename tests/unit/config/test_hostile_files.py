"""Files that would hang whoever reads them, or fill the memory: refused at once, with the reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from htas.config.document import MOST_BYTES, read_document
from htas.config.loader import ConfigurationError, load_catalogue, load_configuration

SEQUENCES = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
MERGES = "a0: &a0 {k: v}\n" + "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 30))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(SEQUENCES, "values once its aliases are written out", id="aliases of aliases"),
        pytest.param(MERGES, "values once its aliases are written out", id="merges of merges"),
        pytest.param("a: &a\n  b: *a\n", "values once its aliases are written out", id="an alias within itself"),
        pytest.param("# " + "x" * MOST_BYTES, "has at most 1,048,576", id="too large"),
        pytest.param(
            "a: &a " + "x" * 2**19 + "\nb: [" + "*a, " * 200 + "]",
            "more than 64 MiB once its aliases",
            id="a long text",
        ),
        pytest.param("[" * 5_000, "is nested too deeply", id="too deep"),
    ],
)
def test_what_would_be_huge_is_refused(content: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(content)
    document, problems = read_document(path)
    assert document is None
    assert [why in problem.what for problem in problems] == [True]
    for load in (load_configuration, load_catalogue):
        with pytest.raises(ConfigurationError, match=r"bomb\.yaml"):
            load(path)


def test_what_was_meant_is_looked_for_fifty_times_and_no_more(tmp_path: Path) -> None:
    """Each look costs 2 ms; a thousand wrong keys are known, fifty are told: 9,000 were, in 1.5 MB."""
    path = tmp_path / "wrong.yaml"
    path.write_text("".join(f"clustr{number}: x\n" for number in range(1000)))
    with pytest.raises(ConfigurationError) as told:
        load_configuration(path)
    unknown = [problem.what for problem in told.value.problems if problem.what.startswith("unknown key")]
    assert len(unknown) == 1000
    assert 1 <= sum("did you mean cluster" in what for what in unknown) <= 50
    *lines, last = str(told.value).splitlines()
    assert (len(lines), last) == (50, f"and {len(told.value.problems) - 50:,} more")


def test_a_key_as_long_as_a_file_is_told_shortly(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("".join(f"? {'x' * 20_000}{number}\n: x\n" for number in range(50)))
    for load in (load_configuration, load_catalogue):
        with pytest.raises(ConfigurationError) as told:
            load(path)
        assert len(str(told.value)) < 30_000


@pytest.mark.parametrize("path", [Path("/dev/zero"), Path("/dev/null")])
def test_a_device_is_no_file(path: Path) -> None:
    assert [problem.what for problem in read_document(path)[1]] == ["is no file; name one"]


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert [problem.what for problem in read_document(tmp_path / "pipe.yaml")[1]] == ["is no file; name one"]


def test_aliases_that_people_write_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text("cluster: demo\nbase: &base {a: 1}\none: {<<: *base, b: 2}\ntwo: *base\n")
    document, problems = read_document(path)
    assert document is not None
    assert not problems
    assert document.at(("one",)) == {"a": "1", "b": "2"}
    assert document.at(("two", "a")) == "1"
