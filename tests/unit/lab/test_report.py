"""The report on an experiment: savings worked out by hand, tables, and figures whose bars are what was measured."""

from __future__ import annotations

import csv
import math
import sys
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from tests.unit.lab.invented import invented, run
from tools.lab.commands import app
from tools.lab.report.drawing import LOOKS, look_of, save, styled
from tools.lab.report.figures import CAPTIONS, FIGURES, cost_and_scheduling_time, migrations
from tools.lab.report.statistics import T_975, bills, over_time, paired_saving, smoothed, so_far
from tools.lab.report.tables import PAPER, ablation, left_out, outcomes, saving_text, savings, trace
from tools.lab.results import Results, RunResult, Sample, write_results


def lab_reports(*words: object) -> Result:
    return CliRunner().invoke(app, ["report", *(str(word) for word in words)])


def with_bill(policy: str, seed: int, nano_seconds: int, **fields: object) -> RunResult:
    return msgspec.structs.replace(run(policy, "stable", seed), bill_nano_seconds=nano_seconds, **fields)


def two_seeds(*runs: RunResult) -> Results:
    return Results("paper", "USD", ("htas", "default-kubernetes"), ("stable",), (1, 2), runs)


HTAS_PAYS_LESS = two_seeds(
    with_bill("htas", 1, 80 * 3600 * 10**9),
    with_bill("htas", 2, 140 * 3600 * 10**9),
    with_bill("default-kubernetes", 1, 100 * 3600 * 10**9),
    with_bill("default-kubernetes", 2, 200 * 3600 * 10**9),
)
"""It saves 20 % with one seed and 30 % with the other."""


def test_a_saving_is_the_mean_of_shares_seed_by_seed() -> None:
    found = paired_saving(
        bills(HTAS_PAYS_LESS.of("htas", "stable")), bills(HTAS_PAYS_LESS.of("default-kubernetes", "stable"))
    )
    assert found is not None
    assert found.share == Fraction(1, 4)
    # s = 0.1 ÷ √2, so t · s ÷ √2 = 12.706 · 0.05.
    assert found.half_width == pytest.approx(12.706 * 0.05)
    assert not found.is_certain
    assert saving_text(found) == "25.0 % ± 63.5"


def test_the_paper_as_printed_is_compared_with_baselines_and_ours_with_it() -> None:
    policies = "htas", "default-kubernetes", "paper-as-printed", "paper-as-printed/cores-and-gib"
    runs = tuple(
        with_bill(policy, 1, cents * 36 * 10**12) for policy, cents in zip(policies, (60, 100, 90, 80), strict=True)
    )
    told = savings(Results("paper", "USD", policies, ("stable",), (1,), runs))
    assert [line for line in told.splitlines() if line.startswith(("###", "| against"))] == [
        "### HTAS (paper's cycles)",
        "| against default Kubernetes | 40.0 %<br>paper 27 %: met |",
        "| against the paper as printed | 33.3 % |",
        "### the paper as printed",
        "| against default Kubernetes | 10.0 %<br>paper 27 %: **not met** |",
    ]


def test_one_seed_has_no_interval_and_none_in_common_no_saving() -> None:
    alone = paired_saving({1: 80}, {1: 100, 2: 50})
    assert alone is not None
    assert (saving_text(alone), alone.is_certain) == ("20.0 %", False)
    assert paired_saving({1: 80}, {2: 100}) is None


def test_equal_shares_are_certain() -> None:
    found = paired_saving({1: 8, 2: 16, 3: 24}, {1: 10, 2: 20, 3: 30})
    assert found is not None
    assert (found.share, found.half_width, found.is_certain) == (Fraction(1, 5), 0.0, True)


@pytest.mark.parametrize("df", [1, 2, 5, 9, 20, 30])
def test_the_t_table_is_that_of_students_distribution(df: int) -> None:
    """97.5 % of it lie below: a half, and Simpson's rule from 0 on."""
    factor = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)

    def density(x: float) -> float:
        return factor * (1 + x * x / df) ** (-(df + 1) / 2)

    steps, end = 4000, T_975[df - 1]
    h = end / steps
    inner = sum((4 if i % 2 else 2) * density(i * h) for i in range(1, steps))
    assert 0.5 + (density(0) + inner + density(end)) * h / 3 == pytest.approx(0.975, abs=2e-5)


def test_a_run_that_was_given_up_is_not_compared_but_named() -> None:
    short = msgspec.structs.replace(HTAS_PAYS_LESS.runs[2], finished=399, note="given up")
    results = msgspec.structs.replace(HTAS_PAYS_LESS, runs=(*HTAS_PAYS_LESS.runs[:2], short, HTAS_PAYS_LESS.runs[3]))
    assert "| against default Kubernetes | 30.0 %<br>paper 27 %: met |" in savings(results)
    assert left_out(results) == ["default Kubernetes, Stable, seed 1: 399 of 400 tasks ended; given up"]


def test_the_papers_goals_stand_beside_what_was_saved() -> None:
    assert "25.0 % ± 63.5<br>paper 27 %: **not met**" in savings(HTAS_PAYS_LESS)
    assert {policy for policy, _ in PAPER} == {"default-kubernetes", "coca", "stratus"}


def test_outcomes_have_exact_means_of_money() -> None:
    assert "| HTAS (paper's cycles) | 110.0000 (80.0000–140.0000) |" in outcomes(HTAS_PAYS_LESS)


def test_a_part_is_worth_what_the_whole_pays_less_without_it() -> None:
    runs = [
        msgspec.structs.replace(each, policy="htas/no-time-bins") if each.policy != "htas" else each
        for each in HTAS_PAYS_LESS.runs
    ]
    results = msgspec.structs.replace(HTAS_PAYS_LESS, policies=("htas", "htas/no-time-bins"), runs=tuple(runs))
    assert "| no time bins | 25.0 % ± 63.5 |" in ablation(results)


def test_the_trace_has_a_line_for_each_policy() -> None:
    lines = trace(HTAS_PAYS_LESS).splitlines()
    assert lines[2].startswith("| HTAS (paper's cycles) | 110.0000 (80.0000–140.0000) |")
    assert lines[3].endswith("| 800 of 800 |")


def test_curves_are_means_over_the_runs_that_go_on() -> None:
    def seen(seed: int, *nodes: int) -> RunResult:
        samples = tuple(Sample(30.0 * i, 0.0, 0.0, count, count, 0) for i, count in enumerate(nodes))
        return msgspec.structs.replace(run("htas", "stable", seed), samples=samples)

    runs = [seen(1, 2, 4, 6), seen(2, 4, 8), seen(3, 6, 9, 10, 12)]
    assert over_time(runs, "nodes") == ([0.0, 0.5, 1.0], [4.0, 7.0, 8.0])


def test_events_are_counted_in_steps() -> None:
    runs = [
        msgspec.structs.replace(run("htas", "stable", 1), migrated_at_s=(60.0, 120.0), ended_at_s=180.0),
        msgspec.structs.replace(run("htas", "stable", 2), migrated_at_s=(), ended_at_s=240.0),
    ]
    assert so_far(runs, "migrated_at_s") == ([0.0, 1.0, 1.0, 2.0, 2.0, 4.0], [0.0, 0.0, 0.5, 0.5, 1.0, 1.0])


def test_every_bar_is_as_high_as_the_mean_of_what_was_measured() -> None:
    results = invented(seeds=2)
    with styled():
        above, below = cost_and_scheduling_time(results).axes
    costs = [
        sum(float(run.cost) for run in results.of(policy, pattern)) / 2
        for policy in results.policies
        for pattern in results.patterns
    ]
    assert [bar.get_height() for bar in above.patches] == pytest.approx(costs)
    assert len(below.patches) == len(costs)


def test_a_pattern_without_moves_says_so() -> None:
    with styled():
        panels = migrations(invented(seeds=2)).axes
    said = {axes.get_title(loc="left"): [text.get_text() for text in axes.texts] for axes in panels}
    assert said["(b) Growing"] == ["no task was moved"]
    assert said["(a) Stable"] == []


def test_counts_that_differ_by_far_stand_on_a_logarithmic_scale() -> None:
    few = msgspec.structs.replace(run("htas", "stable", 1), migrated_at_s=(60.0,), migration_s=(8.0,))
    many = msgspec.structs.replace(run("coca", "stable", 1), migrated_at_s=tuple(60.0 + i for i in range(100)))
    with styled():
        far = migrations(Results("paper", "USD", ("htas", "coca"), ("stable",), (1,), (few, many)))
        near = migrations(Results("paper", "USD", ("htas",), ("stable",), (1,), (few,)))
    assert (far.axes[0].get_yscale(), near.axes[0].get_yscale()) == ("symlog", "linear")


def test_smoothing_is_the_mean_of_neighbours_and_keeps_the_length() -> None:
    assert smoothed([0.0, 0.0, 5.0, 0.0, 0.0, 10.0]) == [5 / 3, 5 / 4, 1.0, 3.0, 15 / 4, 10 / 3]


def test_no_two_policies_look_alike() -> None:
    looks = list(LOOKS.values())
    assert len({look.colour for look in looks}) == len({look.hatch for look in looks}) == len(looks)
    many = tuple(f"htas-without-{i}" for i in range(14))
    assert len({look_of(policy, many) for policy in many}) == 14


def written(folder: Path) -> Path:
    """A folder with the results of an experiment, of an ablation and of a trace."""
    write_results(invented(seeds=2), [], folder)
    write_results(invented(2, ("htas", "htas/no-time-bins"), "ablation"), [], folder / "ablation")
    write_results(invented(1, ("htas", "stratus"), "trace"), [], folder / "trace")
    return folder


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a report: drawing takes seconds, so the tests share it."""
    folder = written(tmp_path_factory.mktemp("results"))
    assert lab_reports(folder, "--into", folder / "report").exit_code == 0
    return folder / "report"


def test_a_report_is_tables_and_six_figures_in_two_forms(reported: Path) -> None:
    drawn = [f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")]
    assert sorted(path.name for path in reported.iterdir()) == sorted(["report.md", "savings.csv", *drawn])


@pytest.mark.parametrize("name", ["figure-5-nodes", "figure-8-migration-overhead"])
def test_the_same_results_give_the_same_bytes(reported: Path, tmp_path: Path, name: str) -> None:
    with styled():
        save(FIGURES[name](invented(seeds=2)), tmp_path / name)
    for kind in ("png", "svg"):
        again = (tmp_path / f"{name}.{kind}").read_bytes()
        assert again == (reported / f"{name}.{kind}").read_bytes()
        assert b"<dc:date>" not in again
        assert b"atplotlib v" not in again


def test_the_report_has_all_its_parts(reported: Path) -> None:
    assert set(CAPTIONS) == set(FIGURES)
    told = (reported / "report.md").read_text()
    heads = [line for line in told.splitlines() if line.startswith(("# ", "## "))]
    assert heads == [
        "# Experiment paper", "## Savings", "## What each policy came to", "## Figures",
        "# What each part saves (ablation)", "# The whole trace (trace)",
    ]  # fmt: skip
    for name in FIGURES:
        assert f"({name}.svg)" in told
    with (reported / "savings.csv").open(newline="") as file:
        assert {row["experiment"] for row in csv.DictReader(file)} == {"paper", "trace"}


def test_without_matplotlib_the_tables_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = lab_reports(folder)
    assert told.exit_code == 1
    assert "matplotlib, which is not installed: run make setup; the tables are written:" in told.stderr
    assert "## Savings" in (folder / "report.md").read_text()
    assert "## Figures" not in (folder / "report.md").read_text()
    assert not list(folder.glob("*.svg"))


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    told = lab_reports(tmp_path)
    assert told.exit_code == 2
    assert "`python -m tools.lab run` writes such files" in told.stderr
    (tmp_path / "results.json").write_text("{}")
    told = lab_reports(tmp_path)
    assert told.exit_code == 2
    assert "is not the results of an experiment" in told.stderr
    write_results(msgspec.structs.replace(HTAS_PAYS_LESS, runs=()), [], tmp_path)
    assert "has no runs; was it interrupted?" in lab_reports(tmp_path).stderr
