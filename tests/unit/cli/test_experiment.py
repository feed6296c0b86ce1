"""htas experiment: a workload of one's own is made, played and written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from htas.experiments.results import read_results
from htas.experiments.workloads.table import read_workload
from tests.unit.cli.test_commands import htas_says

ONE_OF_EACH = """at_s,name,kind,controller,replicas,cpu,memory,runs_s,stated_s
120,job-1,batch,Job,2,200m,0.6Gi,90,120
130,web,service,ReplicaSet,1,100m,0.4Gi,,
"""


def test_a_workload_of_ones_own_is_played_by_the_policies_asked_for(tmp_path: Path) -> None:
    table, to = tmp_path / "mine.csv", tmp_path / "results"
    table.write_text(ONE_OF_EACH)
    words = ("--workload", table, "--policy", "stratus", "--policy", "htas", "--seeds", 1, "--workers", 1, "--to", to)
    said = htas_says("experiment", "run", "paper", *words)
    assert said.exit_code == 0, said.output
    results = read_results(to)
    assert (results.policies, results.patterns, results.currency) == (("stratus", "htas"), ("mine",), "USD")
    assert [(run.finished, run.tasks, run.note) for run in results.runs] == [(2, 3, ""), (2, 3, "")]
    assert sorted(path.name for path in to.iterdir()) == ["results.json", "runs.csv", "samples.csv", "timings.csv"]


def test_a_workload_is_written_as_asked_for(tmp_path: Path) -> None:
    to = tmp_path / "mine.csv"
    words = ("--pattern", "on-off", "--high", 20, "--minutes", 10, "--period", 4, "--on-share", 0.25, "--seed", 5)
    said = htas_says("experiment", "workload", "--to", to, *words)
    assert said.exit_code == 0, said.output
    instants = [arrival.at_s - 120 for arrival in read_workload(to).arrivals]
    assert all(at_s < 600 and at_s % 240 < 60 for at_s in instants)
    assert f"{len(instants)} tasks" in said.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("run", "papers"), "no experiment 'papers'; there are paper, ablation, trace", id="no experiment"),
        pytest.param(("run", "paper", "--policy", "k9s"), "no policy k9s; there are htas", id="no policy"),
        pytest.param(("run", "paper", "--pattern", "flat"), "no pattern flat; there are stable", id="no pattern"),
        pytest.param(("run", "paper", "--workload", "none.csv"), "none.csv: cannot be read", id="no file"),
        pytest.param(("workload", "--to", "x.csv", "--high", "0"), "its high makes no sense", id="no tasks"),
        pytest.param(("workload", "--to", "x.csv", "--high", "1e300"), "lower its rate or its length", id="for ever"),
        *(
            pytest.param(
                ("workload", "--to", "x.csv", "--pattern", "on-off", option, number),
                f"is {number}; write a finite",
                id=f"{option} {number}",
            )
            for option in ("--high", "--low", "--minutes", "--period", "--on-share")
            for number in ("nan", "inf")
        ),
    ],
)
def test_what_cannot_be_played_is_told(words: tuple[str, ...], message: str) -> None:
    said = htas_says("experiment", *words)
    assert said.exit_code == 1
    assert message in " ".join(said.output.split())


def test_the_list_names_every_part_of_the_ablation() -> None:
    said = htas_says("experiment", "list").output
    for part in ("htas/no-bundling", "htas-default/no-time-bins", "htas/no-zero-bin", "no-rescheduling", "no-cleaner"):
        assert part in said
