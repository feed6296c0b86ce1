"""A short day of work: Jobs of the HTAS paper's shapes and Deployments, at seeded instants; as manifests for a peer."""

from __future__ import annotations

from random import Random
from typing import Any

from htas.model.pods import WorkKind
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, ControllerKind, Task, Workload
from htas.sandbox.workloads.day import SHAPES

Json = dict[str, Any]
JOBS_A_MINUTE = 37.5
"""450 jobs in twelve minutes."""
DEPLOYMENTS = 9
SHRINK = 6
"""The run lengths of Table 4 (60 to 720 s) are divided by this."""
RUNS = "pod-complete.stage.kwok.x-k8s.io/delay"
HTAS, DEFAULT = "htas", "default-scheduler"


def day(seed: int, minutes: float) -> Workload:
    """The same work for a seed and a length."""
    random = Random(f"peers/{seed}")
    length_s = 60 * minutes
    arrivals = [
        Arrival(random.uniform(0, length_s), _job(random, number)) for number in range(round(JOBS_A_MINUTE * minutes))
    ]
    for number in range(DEPLOYMENTS):
        _, cpu_m, gib, _, _ = random.choice(SHAPES)
        task = Task(f"web-{number}", _amounts(cpu_m, gib), labels={"app": f"web-{number}"})
        arrivals.append(
            Arrival(random.uniform(0, length_s / 2), task, ControllerKind.REPLICA_SET, random.randint(1, 3))
        )
    return Workload(f"a day of {minutes:g} min, seed {seed}", tuple(sorted(arrivals, key=lambda each: each.at_s)))


def _job(random: Random, number: int) -> Task:
    name, cpu_m, gib, shortest, longest = random.choice(SHAPES)
    runs_s = round(random.uniform(shortest, longest) / SHRINK, 1)
    return Task(f"{name}-{number:04d}", _amounts(cpu_m, gib), kind=WorkKind.BATCH, runs_s=runs_s, labels={"job": name})


def _amounts(cpu_m: int, gib: float) -> Resources:
    return Resources(cpu_m, round(gib * 1024) * 2**20, 0, 1)


def manifest(arrival: Arrival, scheduler: str) -> Json:
    """A Job or Deployment; jobs say how long they run, and Karpenter is told to leave them alone, as users do."""
    task = arrival.task
    requests = {"cpu": f"{task.requests.cpu_m}m", "memory": f"{task.requests.memory_bytes // 2**20}Mi"}
    container = {"name": "main", "image": "example.com/none", "resources": {"requests": requests}}
    pod: Json = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 1, "containers": [container]}
    if task.runs_s is None:
        template = {"metadata": {"labels": dict(task.labels)}, "spec": pod}
        spec = {"replicas": arrival.replicas, "selector": {"matchLabels": dict(task.labels)}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": task.name}, "spec": spec}
    notes = {RUNS: f"{task.runs_s}s", "htas.io/runtime": f"{task.runs_s}s"}
    if scheduler == DEFAULT:
        notes["karpenter.sh/do-not-disrupt"] = "true"
    template = {
        "metadata": {"labels": dict(task.labels), "annotations": notes},
        "spec": {**pod, "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": task.name},
        "spec": {"backoffLimit": 6, "template": template},
    }
