"""Controllers: Jobs and ReplicaSets that keep their pods coming."""

from __future__ import annotations

from dataclasses import dataclass, field

from htas.model.pods import Owner, Pod, RunLength, RunLengthSource
from htas.sandbox.workload import ControllerKind, Task


@dataclass(slots=True)
class Controller:
    """One controller and how many pods it still wants."""

    kind: ControllerKind
    task: Task
    wanted: int
    serial: int = 0
    pods: set[str] = field(default_factory=set)

    @property
    def key(self) -> str:
        return f"{self.task.namespace}/{self.task.name}"

    def next_pod(self, now: float) -> Pod:
        """The next pod of the template; names are never used twice."""
        self.serial += 1
        task = self.task
        name = task.name if self.kind is ControllerKind.BARE else f"{task.name}-{self.serial}"
        owner = None
        if self.kind is not ControllerKind.BARE:
            replicas = self.wanted if self.kind is ControllerKind.REPLICA_SET else None
            owner = Owner(self.kind.value, task.name, f"uid-{task.namespace}-{task.name}", replicas)
        return Pod(
            namespace=task.namespace,
            name=name,
            requests=task.requests,
            uid=f"uid-{task.namespace}-{name}",
            kind=task.kind,
            labels=task.labels,
            owner=owner,
            constraints=task.constraints,
            scheduler=task.scheduler,
            priority=task.priority,
            created_at=now,
            run_length=RunLength(task.stated_s, RunLengthSource.ANNOTATION) if task.stated_s is not None else None,
            scoring_cpu_m=task.requests.cpu_m,
            scoring_memory_bytes=task.requests.memory_bytes,
            disruption=task.disruption,
            is_unschedulable=task.scheduler != "htas",
            grace_s=2.0,
        )
