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


class Budget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget with minAvailable."""

    namespace: str
    name: str
    selector: LabelSelector
    min_available: int


class Workload(msgspec.Struct, frozen=True, omit_defaults=True):
    """What comes over time, and what is there from the start: DaemonSets, budgets and labels of namespaces."""

    name: str
    arrivals: tuple[Arrival, ...]
    rescales: tuple[Rescale, ...] = ()
    daemons: tuple[Task, ...] = ()
    budgets: tuple[Budget, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = {}
