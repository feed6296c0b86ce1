"""Controllers: Jobs, ReplicaSets and StatefulSets that keep their pods coming."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from random import Random

from htas.model.pods import Owner, Phase, Pod, RunLength, RunLengthSource
from htas.sandbox.workload import ControllerKind, Task


@dataclass(slots=True)
class Controller:
    """One controller and how many pods it still wants."""

    kind: ControllerKind
    task: Task
    wanted: int
    serial: int = 0
    pods: set[str] = field(default_factory=set)
    starts: int = 0
    most_wanted: int = 0

    @property
    def key(self) -> str:
        return f"{self.task.namespace}/{self.task.name}"

    def starts_first(self) -> bool:
        """Told of each pod that starts: whether it begins work, or takes the place of a lost one."""
        self.starts += 1
        return self.starts <= self.most_wanted

    def next_pod(self, now: float) -> Pod:
        """The next pod of the template. A name is used once; a StatefulSet's come again, with another uid."""
        self.serial += 1
        task, name = self.task, self._next_name()
        return Pod(
            namespace=task.namespace,
            name=name,
            requests=task.requests,
            uid=f"uid-{task.namespace}-{task.name}-{self.serial}",
            kind=task.kind,
            labels=task.labels,
            owner=self._owner(),
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
            template=task.made_of(self.kind),
            image=task.image,
            qos=task.qos,
        )

    def _next_name(self) -> str:
        name = self.task.name
        if self.kind is ControllerKind.BARE:
            return name
        if self.kind is ControllerKind.STATEFUL_SET:
            return next(f"{name}-{i}" for i in count() if f"{self.key}-{i}" not in self.pods)
        return f"{name}-{self.serial}"

    def _owner(self) -> Owner | None:
        if self.kind is ControllerKind.BARE:
            return None
        replicas = self.wanted if self.kind is not ControllerKind.JOB else None
        return Owner(self.kind.value, self.task.name, f"uid-{self.task.namespace}-{self.task.name}", replicas)

    def surplus(self, pods: Iterable[Pod], now: float) -> list[Pod]:
        """Which of its pods a controller deletes when it wants fewer; those on their way out are gone to it already.

        A StatefulSet gives up its highest ordinals. A ReplicaSet gives up first what does not run, then pods that share
        their node with the most others of it, then the younger, whose ages count by powers of two; among equals the UID
        decides, which is as good as a lot (Kubernetes, pkg/controller/controller_utils.go, ActivePodsWithRanks).
        """
        active = [pod for pod in pods if not pod.is_terminating]
        if self.kind is ControllerKind.STATEFUL_SET:
            return sorted(active, key=_number)[self.wanted :]
        on_node = Counter(pod.node for pod in active)

        def kept_first(pod: Pod) -> tuple[bool, bool, int, int, int, float]:
            if pod.node is None:
                return True, True, 0, 0, 0, _lot(pod)
            cost = pod.deletion_cost or 0
            return False, pod.phase is not Phase.RUNNING, -cost, on_node[pod.node], -_age(pod, now), _lot(pod)

        return sorted(active, key=kept_first)[self.wanted :]


def _age(pod: Pod, now: float) -> int:
    """For how long a pod has run, as the power of two of its nanoseconds; -1: not at all."""
    ran_s = now - pod.started_at if pod.started_at is not None else 0.0
    return int(math.log2(ran_s * 1e9)) if ran_s > 0 else -1


def _lot(pod: Pod) -> float:
    """A number that says nothing of the pod: the sandbox's UIDs count up, those of a cluster are drawn."""
    return Random(pod.uid).random()


def _number(pod: Pod) -> int:
    """The number at the end of a pod's name: web-12 is 12."""
    return int(pod.name.rpartition("-")[2])
