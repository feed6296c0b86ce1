"""`htas demo`: what it plays, and what it says of files that cannot be played."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from htas.cli.demo_state import DemoState
from htas.cli.demo_view import summary_view
from htas.cli.main import app
from htas.documents.alternatives import Alternative
from htas.sandbox.world import World
from tests.builders import make_policy

ROWS = [
    ("early", 0, 600),
    ("late", 86_400, 90_000),
]


def trace(folder: Path) -> Path:
    path = folder / "trace.csv"
    head = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    lines = [f"{name},1000,1024,0,0,,LS,Succeeded,{start},{end},{start}" for name, start, end in ROWS]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


@pytest.mark.parametrize(("words", "arrived"), [((), 2), (("--hours", "1"), 1)])
def test_so_much_of_a_trace_is_played_as_is_asked_for(tmp_path: Path, words: tuple[str, ...], arrived: int) -> None:
    found = CliRunner().invoke(app, ["demo", "--trace", str(trace(tmp_path)), *words])
    assert found.exit_code == 0, found.stderr
    assert f"of {arrived} ended" in found.stdout


def test_a_trace_that_is_not_there_is_named_in_words(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["demo", "--trace", str(tmp_path / "none.csv")])
    assert found.exit_code != 0
    said = " ".join(found.stderr.split())
    assert "none.csv: cannot be read: No such file or directory" in said
    assert "Errno" not in said


def test_the_comparison_is_followed_by_what_it_assumes(capsys: pytest.CaptureFixture[str]) -> None:
    state = DemoState(make_policy(), "day", World(), 3600.0)
    one = Alternative("The same work on a alone", "a", 1, 3600 * 10**9, ("a is the cheapest.", "Empty machines go."))
    Console(width=200).print(summary_view(state, one))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    begins = next(i for i, line in enumerate(lines) if line.startswith(one.told))
    assert lines[begins + 1 : begins + 3] == ["a is the cheapest.", "Empty machines go."]
