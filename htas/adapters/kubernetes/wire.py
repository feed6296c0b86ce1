"""Kubernetes objects as they are on the wire: only the fields HTAS reads. Unknown fields are skipped."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

import msgspec

Amount = str | int | float
Amounts = dict[str, Amount]
Labels = dict[str, str]
_T = TypeVar("_T")


class Wire(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """The base of all. Wire objects cannot form cycles, so the garbage collector need not walk 50,000 of them."""


class OwnerReference(Wire, frozen=True):
    kind: str
    name: str
    uid: str = ""
    controller: bool | None = None
    api_version: str = ""


class Metadata(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Labels | None = None
    annotations: Labels | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: float | None = None
    owner_references: list[OwnerReference] | None = None


class Head(Wire, frozen=True):
    """Enough of any object to tell what it is; nothing more of the kinds that HTAS passes over is looked at."""

    kind: str = ""
    api_version: str = ""
    metadata: msgspec.Raw = msgspec.Raw()
    items: msgspec.Raw = msgspec.Raw()


class Identity(Wire, frozen=True):
    name: str = ""
    namespace: str = ""


class Requirement(Wire, frozen=True):
    key: str
    operator: str
    values: list[str] | None = None


class Selector(Wire, frozen=True):
    match_labels: Labels | None = None
    match_expressions: list[Requirement] | None = None


class Taint(Wire, frozen=True):
    key: str
    effect: str
    value: str = ""


class Toleration(Wire, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Condition(Wire, frozen=True):
    type: str
    status: str
    reason: str = ""
    last_transition_time: datetime | None = None


class NodeSpec(Wire, frozen=True):
    taints: list[Taint] | None = None
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeInfo(Wire, frozen=True):
    container_runtime_version: str = ""
    kubelet_version: str = ""


class NodeStatus(Wire, frozen=True):
    allocatable: Amounts | None = None
    capacity: Amounts | None = None
    conditions: list[Condition] | None = None
    node_info: NodeInfo = NodeInfo()


class Node(Wire, frozen=True):
    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ResourceNeeds(Wire, frozen=True):
    requests: Amounts | None = None
    limits: Amounts | None = None


class ContainerPort(Wire, frozen=True):
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class VolumeMount(Wire, frozen=True):
    name: str = ""
    read_only: bool = False


class Container(Wire, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceNeeds = ResourceNeeds()
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    volume_devices: list[dict[str, object]] | None = None
    volume_mounts: list[VolumeMount] | None = None


class NodeTerm(Wire, frozen=True):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(Wire, frozen=True):
    node_selector_terms: list[NodeTerm] = []


class NodeAffinity(Wire, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Wire, frozen=True):
    topology_key: str
    label_selector: Selector | None = None
    namespaces: list[str] | None = None
    namespace_selector: Selector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PodAffinity(Wire, frozen=True):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[msgspec.Raw] | None = None


class Affinity(Wire, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(Wire, frozen=True):
    topology_key: str
    max_skew: int
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: Selector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] | None = None


class ClaimSource(Wire, frozen=True):
    claim_name: str
    read_only: bool = False


class EmptyDir(Wire, frozen=True):
    medium: str = ""


class Existing(Wire, frozen=True):
    """Something of which it is only asked whether it is there."""


class Volume(Wire, frozen=True):
    name: str
    config_map: Existing | None = None
    secret: Existing | None = None
    projected: Existing | None = None
    downward_api: Existing | None = msgspec.field(default=None, name="downwardAPI")
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, object] | None = None
    empty_dir: EmptyDir | None = None
    host_path: dict[str, object] | None = None


class Gate(Wire, frozen=True):
    name: str


class PodSpec(Wire, frozen=True):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    restart_policy: str = "Always"
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    active_deadline_seconds: float | None = None
    termination_grace_period_seconds: float | None = None
    node_selector: Labels | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    overhead: Amounts | None = None
    resources: ResourceNeeds | None = None
    resource_claims: list[object] | None = None
    readiness_gates: list[object] | None = None
    scheduling_gates: list[Gate] | None = None
    volumes: list[Volume] | None = None


class Terminated(Wire, frozen=True):
    finished_at: datetime | None = None


class ContainerState(Wire, frozen=True):
    terminated: Terminated | None = None


class ContainerStatus(Wire, frozen=True):
    name: str = ""
    state: ContainerState | None = None
    allocated_resources: Amounts | None = None
    resources: ResourceNeeds | None = None


class PodStatus(Wire, frozen=True):
    phase: str = "Pending"
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resize: str = ""


class Pod(Wire, frozen=True):
    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(Wire, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class DaemonSetSpec(Wire, frozen=True):
    template: PodTemplate = PodTemplate()


class DaemonSet(Wire, frozen=True):
    metadata: Metadata
    spec: DaemonSetSpec = DaemonSetSpec()


class BudgetSpec(Wire, frozen=True):
    selector: Selector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetMetadata(Metadata, frozen=True):
    generation: int = 0


class BudgetStatus(Wire, frozen=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0


class Budget(Wire, frozen=True):
    metadata: BudgetMetadata
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class PriorityClass(Wire, frozen=True):
    metadata: Metadata
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class Namespace(Wire, frozen=True):
    metadata: Metadata


class ControllerSpec(Wire, frozen=True):
    """`parallelism` and the deadline are a Job's, `replicas` the others'."""

    replicas: int | None = None
    parallelism: int | None = None
    active_deadline_seconds: float | None = None


class Controller(Wire, frozen=True):
    """A ReplicaSet, ReplicationController, StatefulSet or Job."""

    metadata: Metadata
    spec: ControllerSpec = ControllerSpec()


def decode(raw: bytes | msgspec.Raw, form: type[_T]) -> _T:
    """Decode, taking null for absent as Kubernetes does, also where a text or a number belongs (rare, hence second)."""
    try:
        return msgspec.json.decode(raw, type=form)
    except msgspec.ValidationError:
        if b"null" not in bytes(raw):
            raise
    return msgspec.convert(_without_nulls(msgspec.json.decode(raw)), type=form)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value
