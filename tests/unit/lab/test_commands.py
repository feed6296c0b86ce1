"""`python -m tools.lab`: a workload of one's own is made, played and written down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import htas
from htas.cli.console import InputError
from tools.lab.commands import app, seeds_named
from tools.lab.designs import EXPERIMENTS, design
from tools.lab.results import Results, read_results
from tools.lab.workloads.table import read_workload

ONE_OF_EACH = """at_s,name,kind,controller,replicas,cpu,memory,runs_s,stated_s
120,job-1,batch,Job,2,200m,0.6Gi,90,120
130,web,service,ReplicaSet,1,100m,0.4Gi,,
"""


def lab_says(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_workload_of_ones_own_is_played_by_the_policies_asked_for(tmp_path: Path) -> None:
    table, to = tmp_path / "mine.csv", tmp_path / "results"
    table.write_text(ONE_OF_EACH)
    words = (
        "--workload",
        table,
        "--policy",
        "stratus",
        "--policy",
        "htas",
        "--policy",
        "htas",
        "--seeds",
        1,
        "--workers",
        1,
        "--to",
        to,
    )
    said = lab_says("run", "paper", *words)
    assert said.exit_code == 0, said.output
    results = read_results(to, Results)
    assert (results.policies, results.patterns, results.currency) == (("stratus", "htas"), ("mine",), "USD")
    assert [(run.finished, run.tasks, run.note) for run in results.runs] == [(2, 3, ""), (2, 3, "")]
    assert sorted(path.name for path in to.iterdir()) == ["results.json", "runs.csv", "samples.csv", "timings.csv"]


def test_it_is_billed_by_a_price_list_of_ones_own(tmp_path: Path) -> None:
    """One flavour of four cores, at a round price: whoever knows one flavour alone takes it for the paper's."""
    table, prices, to = tmp_path / "mine.csv", tmp_path / "prices.yaml", tmp_path / "results"
    table.write_text(ONE_OF_EACH)
    prices.write_text("currency: EUR\nflavours: [{name: c4, cpu: 4, memory: 8Gi, pricePerHour: '6'}]\n")
    words = ["--workload", table, "--prices", prices, "--seeds", "11-11", "--workers", 1, "--to", to]
    for policy in ("default-kubernetes", "coca", "htas"):
        words += ["--policy", policy]
    said = lab_says("run", "paper", *words)
    assert said.exit_code == 0, said.output
    results = read_results(to, Results)
    assert (results.currency, results.seeds) == ("EUR", (11,))
    assert [run.cost * 10 % 1 for run in results.runs] == [0, 0, 0]  # a minute costs 0.1
    assert all(run.finished == 2 for run in results.runs)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        pytest.param("", (), id="as many as the experiment has"),
        pytest.param("3", (1, 2, 3), id="how many"),
        pytest.param("101,102", (101, 102), id="a list"),
        pytest.param("11-13, 20,12", (11, 12, 13, 20), id="ranges, each seed once"),
        pytest.param("101-101", (101,), id="a single one"),
    ],
)
def test_seeds_are_named_or_counted(text: str, seeds: tuple[int, ...]) -> None:
    assert seeds_named(text) == seeds


@pytest.mark.parametrize("text", ["0", "x", "3-1", "1-99999", "1,,2", "-1"])
def test_what_is_no_seed_is_told(text: str) -> None:
    with pytest.raises(InputError, match="is no seed; write how many, or name them"):
        seeds_named(text)


def test_a_workload_is_written_as_asked_for(tmp_path: Path) -> None:
    to = tmp_path / "mine.csv"
    words = ("--pattern", "on-off", "--high", 20, "--minutes", 10, "--period", 4, "--on-share", 0.25, "--seed", 5)
    said = lab_says("workload", "--to", to, *words)
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
        pytest.param(
            ("run", "trace", "--prices", "p.yaml"),
            "prices: the trace has flavours of its own",
            id="prices of the trace",
        ),
        pytest.param(
            ("run", "trace", "--pattern", "cycle"),
            "cycle: has no effect where the trace is played",
            id="no pattern in a trace",
        ),
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
    said = lab_says(*words)
    assert said.exit_code == 2
    assert message in " ".join(said.output.split())


@pytest.mark.parametrize("to", ["nodir/x.csv", "."])
def test_a_workload_that_cannot_be_written_is_told(to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = lab_says("workload", "--to", to)
    assert (said.exit_code, f"--to: {to}: cannot be written" in said.output) == (2, True)


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_played(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_text("")
    said = lab_says("run", "paper", "--seeds", 10_000, "--to", file / "results")
    assert (said.exit_code, "cannot be written to" in said.output) == (2, True)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=["by Ctrl-C", "by a time limit"])
def test_what_was_played_is_kept_when_interrupted(tmp_path: Path, sign: signal.Signals) -> None:
    """Of ten thousand trials some are over when it is ended."""
    table, to = tmp_path / "mine.csv", tmp_path / "results"
    table.write_text(ONE_OF_EACH)
    words = ("run", "paper", "--workload", table, "--policy", "htas", "--seeds", 10_000, "--workers", 1)
    code = "import os, sys, tools.lab.playing as e, threading as t\n"
    code += "from tools.lab.commands import app\nplay = e._play_into\n"
    code += "def until(done, *rest):\n"
    code += "    t.Thread(target=lambda: ([None for _ in iter(lambda: len(done) < 2, False)], os.kill(os.getpid(), SIGN))).start()\n"
    code = code.replace("SIGN", str(sign.value)) + "    play(done, *rest)\n"
    code += "if __name__ == '__main__':\n    e._play_into = until\n    app()\n"
    (script := tmp_path / "interrupted.py").write_text(code)
    here = {**os.environ, "PYTHONPATH": str(Path(htas.__file__).parents[1])}
    command = [sys.executable, str(script), *map(str, words), "--to", str(to)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, env=here)
    assert ended.returncode == 1, ended.stderr
    assert "interrupted" in ended.stderr and "Traceback" not in ended.stderr
    assert 2 <= len(read_results(to, Results).runs) < 10_000


@pytest.mark.parametrize(
    ("name", "runs"),
    [pytest.param("paper", 10, id="HTAS: ten runs each"), pytest.param("edge", 20, id="KubeDSM: it does not say")],
)
def test_an_experiment_has_as_many_seeds_as_its_document_has_runs(name: str, runs: int) -> None:
    played = design(name)
    assert played.seeds == tuple(range(1, runs + 1))
    assert played.runs == runs * len(played.contenders) * len(played.sources)


def test_the_cheapest_mix_plays_in_paper_only_where_it_is_named() -> None:
    mixes = ("htas-mix", "htas-default-mix")
    assert not {*mixes} & {*design("paper").contenders}
    assert design("paper", policies=mixes).contenders == mixes
    by_default, on_request = lab_says("list").output.splitlines()[:2]
    assert (by_default.partition(":")[0], "mix" in by_default) == ("paper", False)
    assert on_request.startswith(
        "paper, only with --policy: htas-mix, htas-default-mix, paper-as-printed/cores-and-gib, "
    )
    assert "paper-as-printed," not in on_request


def test_the_list_names_every_experiment_and_all_that_can_be_played_in_it() -> None:
    said = dict(line.split(": ") for line in lab_says("list").output.splitlines())
    assert [name for name in said if "only" not in name] == [*EXPERIMENTS, "patterns", "patterns of edge"]
    for name in EXPERIMENTS:
        assert said[name].split(", ") == list(design(name).contenders)
    assert said["patterns of edge"].startswith("1.1_0.4, ")
    assert [source.name for source in design("edge").sources] == said["patterns of edge"].split(", ")


def test_the_list_names_every_part_of_the_ablation() -> None:
    said = lab_says("list").output
    for part in (
        "htas/no-bundling",
        "htas-default/no-time-bins",
        "htas/no-zero-bin",
        "no-rescheduling",
        "no-cleaner",
        "htas/cheapest-mix",
        "htas-default/consolidation",
        "htas-default/no-look-ahead",
    ):
        assert part in said
