"""Pods: the work."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from htas.model.constraints import UNCONSTRAINED, Constraints
from htas.model.edge import DEFAULT_TARGET
from htas.model.migrations import Refusal
from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT
from htas.model.resources import Resources


class WorkKind(StrEnum):
    """Batch work ends by itself and may be moved; services run on and are moved only if they opt in."""

    SERVICE = "service"
    BATCH = "batch"


class Phase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class RunLengthSource(StrEnum):
    """Where an estimate of the run length comes from, best first."""

    ANNOTATION = "annotation"
    LEARNED = "learned"
    DEADLINE = "deadline"
    DEFAULT = "default"


TEMPLATE, IMAGE, KIND_OF_OWNER = "template", "image", "kind of owner"
"""What runs had in common that an estimate was learned from, nearest first."""


class RunLength(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long a pod is thought to run.

    Of what was learned: `basis` is what the runs had in common (TEMPLATE, IMAGE, KIND_OF_OWNER), `runs` how many there
    were, and `confidence` the share of them, newer ones counting more, that ended within a quarter of it.
    """

    seconds: float
    source: RunLengthSource
    basis: str = ""
    runs: int = 0
    confidence: float = 0.0


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """The controller of a pod; `replicas` is what that controller wants, where it is known."""

    kind: str
    name: str
    uid: str = ""
    replicas: int | None = None


def with_article(kind: str) -> str:
    """`a Workflow`, `an InstanceManager`."""
    return f"{'an' if kind[:1] in 'AEIOaeio' else 'a'} {kind}"


class Pod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod as the planner sees it. `requests.pods` is always 1; terminal pods are never part of a snapshot.

    `scoring_cpu_m` and `scoring_memory_bytes` are what kube-scheduler's scores count: a missing request counts
    100m / 200 MiB a container. `disruption` keeps only the annotations that promise something about disruption.
    """

    namespace: str
    name: str
    requests: Resources
    uid: str = ""
    kind: WorkKind = WorkKind.SERVICE
    labels: Mapping[str, str] = {}
    owner: Owner | None = None
    constraints: Constraints = UNCONSTRAINED
    scheduler: str = "default-scheduler"
    priority: int = 0
    preempts: bool = True
    phase: Phase = Phase.PENDING
    node: str | None = None
    nominated_node: str | None = None
    created_at: float = 0.0
    started_at: float | None = None
    deleted_at: float | None = None
    grace_s: float = 30.0
    run_length: RunLength | None = None
    gates: tuple[str, ...] = ()
    is_unschedulable: bool = False
    is_mirror: bool = False
    has_local_storage: bool = False
    local_volumes: tuple[str, ...] = ()
    """The volumes that are its local storage."""
    scoring_cpu_m: int = 0
    scoring_memory_bytes: int = 0
    disruption: Mapping[str, str] = {}
    template: str = ""
    """What its owner makes pods of (`CronJob/backup`, `Job/train-#`, `Deployment/web`).

    Pods of one template run about as long, and are one service.
    """
    image: str = ""
    """That of its first container."""
    twin_of: str = ""
    """The uid of the pod whose place it will take: it runs already where that one is being moved."""
    is_moved: bool = False
    """It came here by a move, or is on one (the annotation htas.io/migration)."""
    containers: int = 1
    obstacles: tuple[Refusal, ...] = ()
    """What in its manifest keeps it from being moved with its progress."""
    only_read: tuple[str, ...] = ()
    """Of its claims: those that it cannot write to."""
    qos: float = DEFAULT_TARGET
    """The share of its service's pods, 0 to 1, that should run on the edge."""
    ready_since: float | None = None
    """Since when its users are sent to it (its condition Ready); None: they are not."""
    gang: str = ""
    """The group it is scheduled with, all or none: evicting one of it commonly restarts all. "": none."""
    deletion_cost: int | None = None
    """DELETION_COST: of a ReplicaSet's pods the one with the lowest goes first; None: unstated, which counts as 0."""
    prefers_apart: bool = False
    """It would rather not be with its like (ScheduleAnyway, preferred anti-affinity). Nobody is placed by that."""
    launch_delay_s: float = 0.0
    """No machine is launched for it before it is so old (SCALE_UP_DELAY)."""
    passed_over: str = ""
    """Why it may be disturbed though it says otherwise: it is beyond what its namespace may pin. "": it is not."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def since(self) -> float:
        """Since when it runs, or else has been there."""
        return self.started_at if self.started_at is not None else self.created_at

    def has_come_since(self, instant: float) -> bool:
        """Whether it began on its node later than that; of one that has not begun, when it was bound is not known."""
        return self.started_at is None or self.started_at > instant

    @property
    def service(self) -> str | None:
        """Whose pods are counted together: `shop/Deployment/web`, over its ReplicaSets; None: it has no controller."""
        if self.owner is None or not self.is_work:
            return None
        return f"{self.namespace}/{self.template or f'{self.owner.kind}/{self.owner.name}'}"

    @property
    def maker(self) -> str:
        """What makes pods like it: `Deployment/web`; a pod without a controller is its own."""
        owned = f"{self.owner.kind}/{self.owner.name}" if self.owner is not None else f"Pod/{self.name}"
        return self.template or owned

    @property
    def is_daemon(self) -> bool:
        """Whether it belongs to its node and ends with it: a DaemonSet's, or of another controller that says so."""
        return (self.owner is not None and self.owner.kind == "DaemonSet") or self.disruption.get(
            DAEMONSET_POD
        ) == "true"

    @property
    def is_work(self) -> bool:
        """Whether it is what nodes are there for: neither a DaemonSet's nor the kubelet's own."""
        return not self.is_daemon and not self.is_mirror

    @property
    def is_charged(self) -> bool:
        """Whether its namespace pays for its part of a machine: an owner is believed, an annotation is anybody's."""
        return not self.is_mirror and not (self.owner is not None and self.owner.kind == "DaemonSet")

    def is_placed_by(self, scheduler: str) -> bool:
        """Whether room is found or bought for it: it names this scheduler, or its own has found none."""
        return self.scheduler == scheduler or self.is_unschedulable

    @property
    def is_terminating(self) -> bool:
        return self.deleted_at is not None


def priority_sort(pod: Pod) -> tuple[int, float, str]:
    """A sorting key: higher priority first, then the older, then by name (kube-scheduler's PrioritySort)."""
    return -pod.priority, pod.created_at, pod.key


SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""The annotation that allows ("true") or forbids ("false") to evict a pod; "on-completion": the pod ends first."""
DAEMONSET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"
"""The annotation by which a custom controller's pod says that it is as a DaemonSet's: "true"."""
SCALE_UP_DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
"""The annotation by which a pod says how old it is before a machine is launched for it: a duration."""
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
"""The annotation with the names of local volumes whose data may be lost, separated by commas."""
SHARED_VOLUMES = "htas.io/migrate-shared-volumes"
"""The annotation by which a pod that writes to a shared volume says that it may be moved all the same: "true"."""
MAY_MIGRATE = "htas.io/migrate"
"""The annotation by which a service opts in to being moved ("true"), and any pod opts out ("false")."""
RUNTIME = "htas.io/runtime"
"""The annotation with how long a batch pod runs: a duration."""
WORKLOAD = "htas.io/workload"
"""The label that states what a pod is: `service` or `batch`."""
TWIN_OF = "htas.io/twin-of"
"""The label of a pod that will take another's place, with that one's uid."""
MOVING = "htas.io/moving"
"""The label of a pod that is being moved by way of a checkpoint, and of its twin, with the move's id."""
DISRUPTION_ANNOTATIONS = frozenset(
    {
        SAFE_TO_EVICT,
        SAFE_LOCAL_VOLUMES,
        DAEMONSET_POD,
        KARPENTER_DO_NOT_DISRUPT,
        DO_NOT_DISRUPT,
        MAY_MIGRATE,
        SHARED_VOLUMES,
    }
)
