"""The Alibaba cluster trace GPU v2023 ("openb") as a workload.

Source: repository alibaba/clusterdata, folder cluster-trace-gpu-v2023 (CC BY 4.0); columns cpu_milli, memory_mib,
num_gpu, gpu_milli, gpu_spec, creation_time and deletion_time in seconds.

Every task becomes a Job that arrives at its creation time and runs for deletion − creation (one second at least), also
those that the trace's own cluster never scheduled. GPUs are asked for as `alibabacloud.com/gpu-milli` = num_gpu ×
gpu_milli: that a share must lie on a single GPU is not modelled. A gpu_spec becomes a required node affinity.

The trace names no templates and no images. Tasks alike stand for one: those of one (qos, num_gpu, gpu_milli, gpu_spec)
for a template, which together with CPU and memory runs are learned of; of one (qos, gpu_spec) for an image; of one qos
for a kind of owner. Files without the column qos load as well: their tasks have none.
"""

from __future__ import annotations

import csv
from pathlib import Path

from htas.model.constraints import Constraints, NodeSelectorTerm
from htas.model.pods import WorkKind
from htas.model.resources import PODS, Resources
from htas.model.selectors import Operator, Requirement
from htas.ports import GivenError
from htas.sandbox.workload import Arrival, ControllerKind, Task, Workload

GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_MODEL = "alibabacloud.com/gpu-card-model"
SAMPLE = Path(__file__).with_name("openb_sample.csv")
"""The trace's 200 tasks from number 4000 on, with its licence beside it in openb_sample.md."""
COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time")


class TraceError(GivenError):
    """A trace file that cannot be read as one."""


def openb(path: Path) -> Workload:
    """The workload of a trace file; raises TraceError with the line and column that is wrong."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}:1: not an openb pod list: no column {', '.join(missing)}")
            arrivals = [_arrival(row, f"{path}:{number}") for number, row in enumerate(reader, 2)]
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise TraceError(f"{path}: cannot be read: it is no text in UTF-8") from None
    if not arrivals:
        raise TraceError(f"{path}: holds no tasks")
    first = min(arrival.at_s for arrival in arrivals)
    shifted = [Arrival(a.at_s - first, a.task, a.controller, a.replicas) for a in arrivals]
    return Workload(path.name, tuple(sorted(shifted, key=lambda arrival: (arrival.at_s, arrival.task.name))))


def _arrival(row: dict[str, str], where: str) -> Arrival:
    try:
        cpu_m, mib, gpus, gpu_milli, created, deleted = (
            int(row[column])
            for column in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time")
        )
    except (TypeError, ValueError) as error:
        raise TraceError(f"{where}: a whole number is wanted: {error}") from None
    runs_s = float(max(1, deleted - created))
    constraints = Constraints()
    if row["gpu_spec"]:
        models = Requirement(GPU_MODEL, Operator.IN, tuple(row["gpu_spec"].split("|")))
        constraints = Constraints(node_affinity=(NodeSelectorTerm((models,)),))
    qos, models_asked = row.get("qos") or "none", row["gpu_spec"] or "any"
    amounts = {"cpu": cpu_m, "memory": mib * 2**20, PODS: 1, GPU_MILLI: gpus * gpu_milli}
    task = Task(
        row["name"],
        Resources.of(amounts),
        kind=WorkKind.BATCH,
        runs_s=runs_s,
        stated_s=runs_s,
        constraints=constraints,
        labels={"job": row["name"]},
        template=f"{qos}/{gpus}x{gpu_milli}-{models_asked}",
        image=f"{qos}/{models_asked}",
    )
    return Arrival(float(created), task, ControllerKind.JOB)
