"""Results: what is written is read again, exactly, and tables say the same."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from tools.lab.results import Results, ResultsError, RunResult, Sample, Timing, read_results, write_results


def made(seed: int = 1, **fields: object) -> RunResult:
    whole: dict[str, object] = {
        "policy": "htas",
        "pattern": "stable",
        "seed": seed,
        "bill_nano_seconds": 1_234_567_890_123_456,
        "ended_at_s": 4321.5,
        "tasks": 3,
        "finished": 2,
        "lost": 0,
        "mean_scheduling_s": 10.25,
        "max_scheduling_s": 20.0,
        "p99_scheduling_s": 20.0,
        "machines": 2,
        "machine_hours": 1.5,
        "peak_nodes": 2,
        "mean_cpu_utilization": 0.5,
        "mean_memory_utilization": 0.75,
        "samples": (Sample(0.0, 0.0, 0.0, 0, 1, 3), Sample(30.0, 0.25, 0.5, 2, 2, 0)),
    }
    return RunResult(**{**whole, **fields})  # type: ignore[arg-type] # fields of a test's own


RESULTS = Results("paper", "USD", ("htas", "stratus"), ("stable",), (1, 2), (made(), made(2), made(policy="stratus")))


def test_results_are_read_as_they_were_written_and_twice_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_results(RESULTS, [Timing("htas", "stable", 1, 2.0, 10, 1.5, 0.25)], tmp_path / folder)
    assert read_results(tmp_path / "one", Results) == RESULTS
    for name in ("results.json", "runs.csv", "samples.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_tables_hold_a_line_a_run_and_a_line_a_sample(tmp_path: Path) -> None:
    write_results(RESULTS, [], tmp_path)
    with (tmp_path / "runs.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    assert [(run["policy"], run["seed"], run["cost"]) for run in runs] == [
        ("htas", "1", "342.935525"),
        ("htas", "2", "342.935525"),
        ("stratus", "1", "342.935525"),
    ]
    with (tmp_path / "samples.csv").open(newline="") as file:
        samples = list(csv.DictReader(file))
    assert len(samples) == 6
    assert (samples[1]["at_s"], samples[1]["memory_utilization"], samples[1]["nodes"]) == ("30", "0.5", "2")


def test_a_run_counts_what_it_dates() -> None:
    run = made(migrated_at_s=(5.0, 6.0), migration_s=(4.0, 8.0), deprovisioned_at_s=(7.0,))
    assert (run.migrations, run.deprovisionings, run.mean_migration_s) == (2, 1, 6.0)
    assert made().mean_migration_s == 0.0
    assert made().cost == Decimal("342.935525")


def test_runs_are_found_by_policy_and_pattern() -> None:
    assert [run.seed for run in RESULTS.of("htas", "stable")] == [1, 2]
    assert RESULTS.of("htas", "cycle") == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "cannot be read", id="no file"),
        pytest.param(b"{", "is not the results of an experiment", id="no JSON"),
        pytest.param(b'{"experiment": 1}', "is not the results of an experiment", id="another document"),
    ],
)
def test_a_folder_without_results_is_told(content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(ResultsError, match=message):
        read_results(tmp_path, Results)
