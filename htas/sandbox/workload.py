"""Workloads: what arrives in a sandbox, and when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from htas.model.constraints import UNCONSTRAINED, Constraints
from htas.model.edge import DEFAULT_TARGET
from htas.model.pods import WorkKind
from htas.model.resources import Resources
from htas.model.selectors import LabelSelector

_NUMBER = re.compile("[0-9]+")


class ControllerKind(StrEnum):
    JOB = "Job"
    REPLICA_SET = "ReplicaSet"
    STATEFUL_SET = "StatefulSet"
    """Its pods come back under their own names (db-0, db-1 …); all at once, as podManagementPolicy Parallel has it."""
    BARE = "Bare"
    """No controller: an evicted pod is lost."""


class Task(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod template. `runs_s` is how long it really runs (None: for ever), `stated_s` what it says of itself.

    `template` is what its pods say they were made of; left empty it follows from the name (see `made_of`).
    """

    name: str
    requests: Resources
    kind: WorkKind = WorkKind.SERVICE
    namespace: str = "default"
    runs_s: float | None = None
    stated_s: float | None = None
    labels: Mapping[str, str] = {}
    constraints: Constraints = UNCONSTRAINED
    priority: int = 0
    disruption: Mapping[str, str] = {}
    scheduler: str = "htas"
    template: str = ""
    image: str = ""
    qos: float = DEFAULT_TARGET

    def made_of(self, kind: ControllerKind) -> str:
        """What pods of this task call their template: `Job/train-#` of Jobs train-1, train-2 …; bare pods have none."""
        if self.template or kind is ControllerKind.BARE:
            return self.template
        return f"{kind.value}/{_NUMBER.sub('#', self.name)}"


class Arrival(msgspec.Struct, frozen=True, omit_defaults=True):
    """A controller with its pods appears, seconds after the workload's start."""

    at_s: float
    task: Task
    controller: ControllerKind = ControllerKind.JOB
    replicas: int = 1


class Rescale(msgspec.Struct, frozen=True):
    """A ReplicaSet or StatefulSet that has arrived is scaled to another size; 0 ends it."""

    at_s: float
    namespace: str
    name: str
    replicas: int


class Load(msgspec.Struct, frozen=True):
    """From `at_s` on, a service with a HorizontalScaler gets so many requests a second."""

    at_s: float
    namespace: str
    name: str
    requests_per_s: float

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class HorizontalScaler(msgspec.Struct, frozen=True):
    """A HorizontalPodAutoscaler over a ReplicaSet or StatefulSet, with Kubernetes's defaults.

    A pod is rated for `requests_per_pod` requests a second; its use is what it gets over that. With `is_saturating` no
    pod is seen to be used beyond 1, as where the metric is CPU under a limit: a surge is answered in several steps.
    Without, the metric is the requests themselves.
    """

    namespace: str
    name: str
    requests_per_pod: float
    target_utilization: float = 0.8
    min_replicas: int = 1
    max_replicas: int = 10
    sync_s: float = 15.0
    tolerance: float = 0.1
    shrink_window_s: float = 300.0
    is_saturating: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Budget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget with minAvailable; `always_allows_unready`: unhealthyPodEvictionPolicy is AlwaysAllow."""

    namespace: str
    name: str
    selector: LabelSelector
    min_available: int
    always_allows_unready: bool = False


class Workload(msgspec.Struct, frozen=True, omit_defaults=True):
    """What comes over time, and what is there from the start: scalers, DaemonSets, budgets, labels of namespaces."""

    name: str
    arrivals: tuple[Arrival, ...]
    rescales: tuple[Rescale, ...] = ()
    daemons: tuple[Task, ...] = ()
    budgets: tuple[Budget, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = {}
    scalers: tuple[HorizontalScaler, ...] = ()
    loads: tuple[Load, ...] = ()

    @property
    def last_change_s(self) -> float:
        """When the last of it arrives, is rescaled or gets other requests: from then on it only runs."""
        events: tuple[Arrival | Rescale | Load, ...] = (*self.arrivals, *self.rescales, *self.loads)
        return max((event.at_s for event in events), default=0.0)

    @property
    def could_end_s(self) -> float:
        """When the last of its tasks would end, had none waited, and nothing of it changes any more."""
        ends = [arrival.at_s + (arrival.task.runs_s or 0.0) for arrival in self.arrivals]
        return max([*ends, self.last_change_s])
