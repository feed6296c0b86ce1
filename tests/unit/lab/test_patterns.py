"""The patterns of Figure 2, and workloads as tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from htas.model.pods import MAY_MIGRATE, WorkKind
from htas.sandbox.workload import ControllerKind
from tools.lab.workloads.patterns import (
    PAPER,
    TABLE_4,
    Pattern,
    PatternError,
    Shape,
    named,
    with_movable_services,
    workload,
)
from tools.lab.workloads.table import COLUMNS, TableError, read_workload, write_workload

HOUR = 3600.0


@pytest.mark.parametrize(
    ("shape", "minute", "want"),
    [
        pytest.param(Shape.STABLE, 0, 8.0, id="stable: all of it from the start"),
        pytest.param(Shape.STABLE, 59, 8.0, id="stable: and to the end"),
        pytest.param(Shape.GROWING, 0, 2.0, id="growing: little at first"),
        pytest.param(Shape.GROWING, 30, 3.5, id="growing: a quarter of the way after half of the time"),
        pytest.param(Shape.GROWING, 60, 8.0, id="growing: all of it at the end"),
        pytest.param(Shape.CYCLE, 0, 2.0, id="cycle: from the bottom"),
        pytest.param(Shape.CYCLE, 15, 8.0, id="cycle: to the peak half-way"),
        pytest.param(Shape.CYCLE, 30, 2.0, id="cycle: and back"),
        pytest.param(Shape.ON_OFF, 14, 8.0, id="on-off: on"),
        pytest.param(Shape.ON_OFF, 15, 2.0, id="on-off: off from the middle of a period"),
        pytest.param(Shape.ON_OFF, 30, 8.0, id="on-off: on again"),
    ],
)
def test_the_rate_follows_the_shape(shape: Shape, minute: float, want: float) -> None:
    pattern = Pattern("p", shape, high=8.0, low=2.0, length_s=HOUR, period_s=HOUR / 2)
    assert pattern.rate(minute * 60) == pytest.approx(want)


@pytest.mark.parametrize("pattern", PAPER, ids=lambda pattern: pattern.name)
def test_as_many_tasks_arrive_as_the_rates_add_up_to(pattern: Pattern) -> None:
    """Within four standard deviations over ten seeds; every arrival lies in the pattern's time."""
    expected = sum(pattern.rate(second) / 60 for second in range(int(pattern.length_s)))
    works = [workload(pattern, seed) for seed in range(10)]
    assert abs(sum(len(work.arrivals) for work in works) / 10 - expected) < 4 * (expected / 10) ** 0.5
    for work in works:
        assert all(0 <= a.at_s - pattern.begins_s < pattern.length_s for a in work.arrivals)


def test_tasks_are_those_of_table_4() -> None:
    work = workload(named("growing"), 1)
    kinds = {kind.name: kind for kind in TABLE_4}
    for arrival in work.arrivals:
        kind = kinds[arrival.task.name.rpartition("-")[0]]
        assert (arrival.task.requests.cpu_m, arrival.task.requests.memory_bytes) == (kind.cpu_m, kind.memory_bytes)
        if kind.is_batch:
            runs_s, stated_s = arrival.task.runs_s or 0, arrival.task.stated_s or 0
            assert kind.shortest_s <= runs_s <= kind.longest_s
            assert 0 <= stated_s - runs_s < 30
            assert arrival.controller is ControllerKind.JOB
        else:
            assert (arrival.task.runs_s, arrival.controller) == (None, ControllerKind.REPLICA_SET)
    counts = Counter(arrival.task.name.rpartition("-")[0] for arrival in work.arrivals)
    assert min(counts[name] for name in ("batch-small", "batch-med", "batch-large")) > counts["nginx"] > 0


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:
    first, again, other = (msgspec.json.encode(workload(named("cycle"), seed)) for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_nothing_comes_while_a_pattern_is_off() -> None:
    pattern = named("on-off")
    on_s = pattern.on_share * pattern.period_s
    assert all((arrival.at_s - pattern.begins_s) % pattern.period_s < on_s for arrival in workload(pattern, 3).arrivals)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param({"high": 0.0}, "its high makes no sense", id="nothing ever comes"),
        pytest.param({"low": 9.0}, "its high makes no sense", id="the lowest above the highest"),
        pytest.param({"length_s": 0.0}, "its length", id="no time"),
        pytest.param({"period_s": 0.0}, "its period", id="no period"),
        pytest.param({"on_share": 1.5}, "its on share", id="more than all of the time"),
        pytest.param({"kinds": ()}, "its kinds", id="no kinds of tasks"),
        pytest.param({"high": 0.001, "length_s": 1.0}, "no task arrives", id="too little to come"),
    ],
)
def test_a_pattern_that_cannot_be_played_is_refused(wrong: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {"name": "mine", "shape": Shape.STABLE, "high": 8.0, "low": 0.0}
    with pytest.raises(PatternError, match=message):
        workload(Pattern(**{**fields, **wrong}), 1)  # type: ignore[arg-type] # wrong on purpose


def test_an_unknown_pattern_is_told_with_those_there_are() -> None:
    with pytest.raises(PatternError, match=r"no pattern 'sawtooth'; there are stable, growing, cycle, on-off"):
        named("sawtooth")


def test_services_may_be_made_movable_and_batch_jobs_stay_as_they_are() -> None:
    work = workload(named("stable"), 1)
    changed = with_movable_services(work)
    for before, after in zip(work.arrivals, changed.arrivals, strict=True):
        is_service = before.task.kind is WorkKind.SERVICE
        assert (after.task.disruption == {MAY_MIGRATE: "true"}) == is_service
        assert is_service or after == before


def test_a_table_gives_back_the_workload_that_was_written(tmp_path: Path) -> None:
    """All but labels, for which it has no column."""
    path = tmp_path / "mine.csv"
    work = workload(named("on-off"), 2)
    write_workload(work, path)
    read = read_workload(path)
    unlabelled = tuple(
        msgspec.structs.replace(arrival, task=msgspec.structs.replace(arrival.task, labels={}))
        for arrival in work.arrivals
    )
    assert (read.name, read.arrivals) == ("mine", unlabelled)


GOOD = "5.0,job-1,batch,Job,1,100m,0.3Gi,60,90"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("x,job-1,batch,Job,1,100m,0.3Gi,60,90", "mine.csv:3: at_s: could not convert", id="no number"),
        pytest.param("-1,job-1,batch,Job,1,100m,0.3Gi,60,90", "counted from the start", id="before the start"),
        pytest.param("5.0,job-1,batch,Job,0,100m,0.3Gi,60,90", "replicas from 1", id="no replicas"),
        pytest.param("5.0,job-1,night,Job,1,100m,0.3Gi,60,90", "kind: found 'night'; write ", id="no kind"),
        pytest.param("5.0,job-1,batch,Cron,1,100m,0.3Gi,60,90", "controller: found 'Cron'; write ", id="no controller"),
        pytest.param("5.0,job-1,batch,Job,1,much,0.3Gi,60,90", "'much' is not a quantity", id="no quantity"),
        pytest.param("5.0,job-1,batch,Job,1,100m,0.3Gi,,90", "needs runs_s", id="a job without an end"),
        pytest.param("5.0,job-1,batch,Job,1,100m,0.3Gi,inf,90", "no number of seconds", id="a job that never ends"),
        pytest.param("5.0,job-1,batch,Job,1,0,0.3Gi,60,90", "cpu: 0 asks for nothing", id="nothing asked for"),
        pytest.param("5.0,job-1,batch,Job,1,100m,-1,60,90", "memory: -1 asks for nothing", id="less than nothing"),
        pytest.param("5.0,,batch,Job,1,100m,0.3Gi,60,90", "name: '' is no name", id="no name"),
        pytest.param("5.0,job-1,batch,Job,1", "mine.csv:3: has 5 cells", id="a short line"),
        pytest.param(
            "5.0,Job_1,batch,Job,1,x,0.3Gi,60,90", r"(?s)name: 'Job_1' is no name.*:3: cpu: ", id="all at once"
        ),
    ],
)
def test_a_line_that_is_wrong_is_named(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("\n".join([",".join(COLUMNS), GOOD, line]) + "\n")
    with pytest.raises(TableError, match=message):
        read_workload(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("name,cpu\n", "not a workload: no column at_s, kind", id="another table"),
        pytest.param(",".join(COLUMNS) + "\n", "holds no tasks", id="no lines"),
    ],
)
def test_a_file_that_is_no_workload_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(TableError, match=message):
        read_workload(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"nothing\.csv: cannot be read"):
        read_workload(tmp_path / "nothing.csv")
