"""The workloads: a seeded day, and the trace."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from htas.model.pods import WorkKind
from htas.model.selectors import Operator
from htas.sandbox.workload import Arrival, ControllerKind
from htas.sandbox.workloads.day import DAY_S, SHAPES, day
from htas.sandbox.workloads.openb import COLUMNS, GPU_MILLI, GPU_MODEL, SAMPLE, TraceError, openb
from htas.sandbox.world import World

HEADER = ",".join(COLUMNS)


def trace(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def only(tmp_path: Path, row: str) -> Arrival:
    (arrival,) = openb(trace(tmp_path, row)).arrivals
    return arrival


@pytest.mark.parametrize(
    ("gpus", "milli", "expected"),
    [
        pytest.param(0, 0, (), id="no GPU"),
        pytest.param(1, 460, ((GPU_MILLI, 460),), id="a share of one"),
        pytest.param(8, 1000, ((GPU_MILLI, 8000),), id="eight whole ones"),
    ],
)
def test_a_task_of_the_trace_is_a_job(gpus: int, milli: int, expected: object, tmp_path: Path) -> None:
    arrival = only(tmp_path, f"t,12500,57344,{gpus},{milli},,100,350")
    assert (arrival.controller, arrival.replicas, arrival.task.kind) == (ControllerKind.JOB, 1, WorkKind.BATCH)
    requests = arrival.task.requests
    assert (requests.cpu_m, requests.memory_bytes, requests.pods) == (12_500, 57_344 * 2**20, 1)
    assert requests.extended == expected
    assert (arrival.task.runs_s, arrival.task.stated_s) == (250.0, 250.0)


def test_a_task_that_is_deleted_at_once_runs_for_a_second(tmp_path: Path) -> None:
    assert only(tmp_path, "t,1,1,0,0,,100,100").task.runs_s == 1.0


def test_gpu_models_become_a_required_affinity(tmp_path: Path) -> None:
    affinity = only(tmp_path, "t,1,1,1,1000,V100M16|V100M32,0,9").task.constraints.node_affinity
    assert affinity is not None
    ((requirement,),) = [term.expressions for term in affinity]
    assert (requirement.key, requirement.operator) == (GPU_MODEL, Operator.IN)
    assert requirement.values == ("V100M16", "V100M32")


@pytest.mark.parametrize(
    ("row", "template", "image"),
    [
        pytest.param("t,1,1,1,460,T4|P100,0,9,LS", "LS/1x460-T4|P100", "LS/T4|P100", id="a share of certain models"),
        pytest.param("t,1,1,0,0,,0,9,BE", "BE/0x0-any", "BE/any", id="no GPU"),
        pytest.param("t,1,1,0,0,,0,9", "none/0x0-any", "none/any", id="a row that ends before its QoS"),
    ],
)
def test_tasks_alike_stand_for_a_template(row: str, template: str, image: str, tmp_path: Path) -> None:
    (arrival,) = openb(trace(tmp_path, row, header=f"{HEADER},qos")).arrivals
    assert (arrival.task.template, arrival.task.image) == (template, image)


def test_the_first_task_arrives_at_the_start_and_order_follows_time(tmp_path: Path) -> None:
    work = openb(trace(tmp_path, "late,1,1,0,0,,500,600", "early,1,1,0,0,,200,300"))
    assert [(arrival.task.name, arrival.at_s) for arrival in work.arrivals] == [("early", 0.0), ("late", 300.0)]


@pytest.mark.parametrize(
    ("rows", "header", "words"),
    [
        pytest.param([], HEADER, "holds no tasks", id="nothing in it"),
        pytest.param(["x"], "name,cpu_milli", r":1: .*no column memory_mib, num_gpu", id="columns missing"),
        pytest.param(["t,1,1,0,0,,0,9", "u,many,1,0,0,,0,9"], HEADER, r":3: .*many", id="no number, in line 3"),
        pytest.param(["t,1,1"], HEADER, r":2: ", id="a line cut short"),
    ],
)
def test_a_file_that_is_no_trace_is_told_with_its_line(
    rows: list[str], header: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(TraceError, match=words):
        openb(trace(tmp_path, *rows, header=header))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.csv: cannot be read"):
        openb(tmp_path / "none.csv")


def test_the_sample_comes_with_its_licence_and_loads() -> None:
    work = openb(SAMPLE)
    assert len(work.arrivals) == 200
    World().load(work)
    licence = SAMPLE.with_suffix(".md").read_text()
    assert "CC BY 4.0" in licence
    assert "alibaba/clusterdata" in licence


def test_a_seed_gives_the_same_day_to_the_byte_and_another_seed_another() -> None:
    assert msgspec.json.encode(day(3)) == msgspec.json.encode(day(3))
    assert day(3).arrivals != day(4).arrivals


def test_a_days_jobs_are_the_papers() -> None:
    shapes = {name: (cpu_m, int(gib * 2**30), low, high) for name, cpu_m, gib, low, high in SHAPES}
    jobs = [arrival.task for arrival in day(1).arrivals if arrival.controller is ControllerKind.JOB]
    assert {task.labels["app"] for task in jobs} == set(shapes)
    for task in jobs:
        cpu_m, memory_bytes, low, high = shapes[task.labels["app"]]
        assert (task.requests.cpu_m, task.requests.memory_bytes) == (cpu_m, memory_bytes)
        assert task.runs_s is not None
        assert task.stated_s is not None
        assert low <= task.runs_s <= high
        assert 0 <= task.stated_s - task.runs_s < 30


@pytest.mark.parametrize("length_s", [1800.0, 6 * 3600.0, DAY_S])
def test_a_part_of_a_day_loads_and_nothing_comes_after_it(length_s: float) -> None:
    work = day(1, length_s=length_s)
    World().load(work)
    assert all(item.at_s < length_s for item in (*work.arrivals, *work.rescales))


def test_density_scales_how_much_comes() -> None:
    sparse, full = (sum(a.controller is ControllerKind.JOB for a in day(1, density).arrivals) for density in (0.5, 1.0))
    assert sparse == pytest.approx(full / 2, rel=0.1)
