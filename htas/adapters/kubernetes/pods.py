"""Pods from the wire into the model."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import accumulate
from typing import Any

import msgspec

from htas.adapters.controllers import base_kind
from htas.adapters.kubernetes import wire
from htas.adapters.kubernetes.constraints import constraints
from htas.adapters.kubernetes.daemon_sets import DaemonSets, kind_of
from htas.adapters.kubernetes.errors import Fault, Faults
from htas.adapters.kubernetes.go_durations import go_duration_s
from htas.adapters.kubernetes.obstacles import indispensable, obstacles, only_read
from htas.adapters.kubernetes.requests import pod_needs
from htas.adapters.kubernetes.templates import template_of
from htas.model.deletion_costs import stated_cost
from htas.model.edge import DEFAULT_TARGET, QOS
from htas.model.migrations import MIGRATION, is_checkpoint
from htas.model.pods import (
    DISRUPTION_ANNOTATIONS,
    MAY_MIGRATE,
    RUNTIME,
    SCALE_UP_DELAY,
    SHARED_VOLUMES,
    TWIN_OF,
    WORKLOAD,
    Owner,
    Phase,
    Pod,
    RunLength,
    RunLengthSource,
    WorkKind,
)
from htas.model.snapshot import Ended

GANGS = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
)
"""Annotations and labels by which Volcano and the coscheduling plugin know the pods of a group."""
MIRROR = "kubernetes.io/config.mirror"
PREEMPTS = "PreemptLowerPriority"
_PHASES: Mapping[str, Phase] = {**{phase.value: phase for phase in Phase}, "": Phase.PENDING}
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)
_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)
_SHARE = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
"""0.5, 1, and also .5 and 1. as YAML takes them for numbers."""
_SAID = re.compile(r"[!-~]+", re.ASCII)
"""Names of owners and images: what can be seen, without spaces."""
LONGEST_KIND, LONGEST_NAME, LONGEST_IMAGE = 63, 253, 1024
"""What the API server takes of kinds and names; references of images are 255 of name, 128 of tag and a digest.

Nobody checks what a pod says of its owner, or its image before a kubelet does: it may be a megabyte, and is kept with
every run on record.
"""
LONGEST_PROMISE = 256
"""Of annotations that hold a pod where it is: "true", "false", a duration, names of volumes. They may be 256 KiB."""
MOST_LABELS = 500
"""Of a pod, which may have a megabyte of them: a hundred such took 2.6 s and 77 MB with each cycle on record."""
MOST_OF_LABELS = 16 * 2**10
"""Characters of a pod's labels, keys and values, where twenty of 40 are usual: 500 of the longest are 190,000."""
_YES_OR_NO = (MAY_MIGRATE, SHARED_VOLUMES)
"""Marks that mean nothing but "true" and "false"."""


class _Journal(msgspec.Struct):
    """What matters here of a restored pod's move."""

    base_images: tuple[str, ...] = ()


class PriorityClass(msgspec.Struct, frozen=True):
    value: int = 0
    preemption_policy: str = PREEMPTS


SYSTEM_PRIORITIES = {
    "system-cluster-critical": PriorityClass(2_000_000_000),
    "system-node-critical": PriorityClass(2_000_001_000),
}
"""Classes every cluster has (apis/scheduling/v1/helpers.go), also where a dump leaves them out."""


class Surroundings(msgspec.Struct, frozen=True):
    """What other objects say of pods: priority classes by name, and controllers by (kind, namespace, name).

    `replicas` are those wanted; `deadlines_s` are Jobs' activeDeadlineSeconds by (namespace, name).
    """

    priorities: Mapping[str, PriorityClass]
    default_priority: PriorityClass
    replicas: Mapping[tuple[str, str, str], int]
    deadlines_s: Mapping[tuple[str, str], float | None]
    daemon_sets: DaemonSets | None = None
    """None: it is not known which there are."""


def namespace(meta: wire.Metadata) -> str:
    """A manifest without a namespace is meant for `default`."""
    return meta.namespace or "default"


def epoch(instant: datetime | None) -> float | None:
    return instant.timestamp() if instant is not None else None


def ready(conditions: Iterable[wire.Condition] | None) -> wire.Condition | None:
    """The condition Ready where it stands at True, of a pod or a node."""
    return next((each for each in conditions or () if each.type == "Ready" and each.status == "True"), None)


def translate(raw: wire.Pod, around: Surroundings, faults: Faults, doubts: Faults) -> Pod | None:
    """The pod, or None: it has ended and holds nothing.

    With `faults` the pod cannot be relied on; `doubts` are parts without which it goes on (a wrong annotation).
    """
    spec, meta = raw.spec, raw.metadata
    phase = _PHASES.get(raw.status.phase)
    if phase in (Phase.SUCCEEDED, Phase.FAILED):
        return None
    if phase is None:
        faults.append(Fault("status.phase", f"{raw.status.phase!r} is not one of {', '.join(Phase)}"))
    labels, annotations = meta.labels or {}, meta.annotations or {}
    needs = pod_needs(raw, faults)
    owner = _owner(meta, around)
    priority = _priority(spec, around, doubts)
    return Pod(
        namespace=namespace(meta),
        name=meta.name,
        requests=needs.requests,
        uid=meta.uid,
        kind=_kind(labels, owner, spec, doubts),
        labels=_counted(labels, doubts),
        owner=owner,
        constraints=constraints(raw),
        scheduler=spec.scheduler_name,
        priority=priority.value,
        preempts=priority.preemption_policy != "Never",
        phase=phase or Phase.UNKNOWN,
        node=spec.node_name or None,
        nominated_node=raw.status.nominated_node_name or None,
        created_at=epoch(meta.creation_timestamp) or 0.0,
        started_at=epoch(raw.status.start_time),
        deleted_at=epoch(meta.deletion_timestamp),
        grace_s=_grace_s(raw),
        run_length=_run_length(raw, owner, around, doubts),
        gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
        is_unschedulable=any(
            c.type == "PodScheduled" and c.status == "False" and c.reason == "Unschedulable"
            for c in raw.status.conditions or ()
        ),
        is_mirror=_is_mirror(raw),
        has_local_storage=bool(local := _local_volumes(raw)),
        local_volumes=local,
        scoring_cpu_m=needs.scoring_cpu_m,
        scoring_memory_bytes=needs.scoring_memory_bytes,
        disruption=_disruption(labels, annotations, doubts),
        template=template_of(meta, owner),
        image=_image(spec, annotations),
        twin_of=labels.get(TWIN_OF, ""),
        is_moved=MIGRATION in annotations,
        containers=len(spec.containers) or 1,
        obstacles=obstacles(raw),
        only_read=only_read(raw),
        qos=_target(labels, annotations, doubts),
        ready_since=_ready_since(raw),
        gang=_gang(labels, annotations),
        deletion_cost=stated_cost(annotations),
        prefers_apart=_prefers_apart(spec),
        launch_delay_s=_launch_delay_s(annotations, doubts),
    )


def _launch_delay_s(annotations: Mapping[str, str], doubts: Faults) -> float:
    """How old the pod is before a machine is launched for it; no delay where what it says is no duration."""
    stated = annotations.get(SCALE_UP_DELAY)
    if stated is None:
        return 0.0
    seconds = go_duration_s(stated)
    if seconds is None:
        what = f"{stated[:64]!r} is not a duration such as 30s, 5m or 1h30m: there is no delay"
        doubts.append(Fault(f"metadata.annotations[{SCALE_UP_DELAY}]", what))
    return seconds or 0.0


def _prefers_apart(spec: wire.PodSpec) -> bool:
    affinity = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
    if affinity is not None and affinity.preferred_during_scheduling_ignored_during_execution:
        return True
    return any(item.when_unsatisfiable == "ScheduleAnyway" for item in spec.topology_spread_constraints or ())


def _gang(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The group that it starts with and fails with, as its scheduler knows it; "": none."""
    return next((said[key] for said in (annotations, labels) for key in GANGS if said.get(key)), "")


def _counted(labels: Mapping[str, str], doubts: Faults) -> Mapping[str, str]:
    """The labels, the first by their keys where there are more, or longer ones, than count."""
    length = sum(map(len, labels)) + sum(map(len, labels.values()))
    if len(labels) <= MOST_LABELS and length <= MOST_OF_LABELS:
        return labels
    first = sorted(labels)[:MOST_LABELS]
    lengths = accumulate(len(key) + len(labels[key]) for key in first)
    kept = [key for key, end in zip(first, lengths, strict=True) if end <= MOST_OF_LABELS]
    told = f"{len(labels):,} labels of {length:,} characters in all, of which the first {len(kept)} count"
    doubts.append(Fault("metadata.labels", told))
    return {key: labels[key] for key in kept}


def _image(spec: wire.PodSpec, annotations: Mapping[str, str]) -> str:
    """Of the first container; of one that was restored, what it starts from otherwise.

    A checkpoint's name is known to nobody else (everybody who may ask for a snapshot would know it), and tells nothing
    of how long its work runs.
    """
    image = spec.containers[0].image if spec.containers else ""
    if not is_checkpoint(image):
        return image if _could_be(image, LONGEST_IMAGE) else ""
    try:
        journal = msgspec.json.decode(annotations.get(MIGRATION, ""), type=_Journal)
    except msgspec.DecodeError:
        return ""
    base = journal.base_images[0] if journal.base_images else ""
    return base if _could_be(base, LONGEST_IMAGE) else ""


def _could_be(name: str, longest: int) -> bool:
    """Whether there can be something of that name."""
    return len(name) <= longest and _SAID.fullmatch(name) is not None


def _ready_since(raw: wire.Pod) -> float | None:
    """Where a condition does not say since when, as in a dump that was thinned out, since the pod was started."""
    condition = ready(raw.status.conditions)
    if condition is None:
        return None
    since = condition.last_transition_time or raw.status.start_time or raw.metadata.creation_timestamp
    return epoch(since) or 0.0


def ended(raw: wire.Pod, around: Surroundings) -> Ended | None:
    """How the pod ended; None: it has not."""
    phase = _PHASES.get(raw.status.phase)
    if phase not in (Phase.SUCCEEDED, Phase.FAILED):
        return None
    states = [status.state.terminated for status in raw.status.container_statuses or () if status.state is not None]
    instants = [state.finished_at.timestamp() for state in states if state is not None and state.finished_at]
    meta, at = raw.metadata, max(instants, default=None)
    maker = f"{namespace(meta)}/{template_of(meta, _owner(meta, around))}"
    return Ended(meta.uid, phase is Phase.SUCCEEDED, at, raw.spec.node_name or None, maker)


def _grace_s(raw: wire.Pod) -> float:
    stated = raw.metadata.deletion_grace_period_seconds
    stated = stated if stated is not None else raw.spec.termination_grace_period_seconds
    return stated if stated is not None else 30.0


def _controller(meta: wire.Metadata) -> wire.OwnerReference | None:
    return next((ref for ref in meta.owner_references or () if ref.controller), None)


def _owner(meta: wire.Metadata, around: Surroundings) -> Owner | None:
    """Its controller, where there can be such a one; nobody starts a pod again for one that there cannot be."""
    reference = _controller(meta)
    if reference is None or not (_could_be(reference.kind, LONGEST_KIND) and _could_be(reference.name, LONGEST_NAME)):
        return None
    kind = kind_of(reference, namespace(meta), around.daemon_sets)
    wanted = around.replicas.get((kind, namespace(meta), reference.name))
    return Owner(kind, reference.name, reference.uid, wanted)


def _is_mirror(raw: wire.Pod) -> bool:
    """Whether a kubelet shows a static pod of its own: annotated, and controlled by the Node that it is on.

    Kubelets write both since Kubernetes 1.17. The annotation alone anybody can write, who would not be preempted then.
    """
    controller = _controller(raw.metadata)
    return (
        MIRROR in (raw.metadata.annotations or {})
        and controller is not None
        and (controller.api_version, controller.kind, controller.name) == ("v1", "Node", raw.spec.node_name)
    )


def _kind(labels: Mapping[str, str], owner: Owner | None, spec: wire.PodSpec, doubts: Faults) -> WorkKind:
    """The label, else Jobs (of whatever group) and pods that do not always restart are batch."""
    stated = labels.get(WORKLOAD)
    if stated in tuple(WorkKind):
        return WorkKind(stated)
    if stated is not None:
        doubts.append(Fault(f"metadata.labels[{WORKLOAD}]", f"{stated!r} is neither service nor batch"))
    is_batch = (owner is not None and base_kind(owner.kind) == "Job") or spec.restart_policy != "Always"
    return WorkKind.BATCH if is_batch else WorkKind.SERVICE


def _target(labels: Mapping[str, str], annotations: Mapping[str, str], doubts: Faults) -> float:
    """The share of its service that should be on the edge; an annotation goes before a label."""
    where = "annotations" if QOS in annotations else "labels"
    stated = annotations.get(QOS, labels.get(QOS))
    if stated is None:
        return DEFAULT_TARGET
    target = float(stated) if _SHARE.fullmatch(stated) else math.inf
    if target <= 1:
        return target
    what = f"{stated!r} is no share from 0 to 1 such as 0.5; {DEFAULT_TARGET:g} is assumed"
    doubts.append(Fault(f"metadata.{where}[{QOS}]", what))
    return DEFAULT_TARGET


def _disruption(labels: Mapping[str, str], annotations: Mapping[str, str], doubts: Faults) -> Mapping[str, str]:
    """What the pod promises itself: annotations alone, as safe-to-evict is one."""
    for key in _YES_OR_NO:
        if annotations.get(key, "true") not in ("true", "false"):
            what = f'{annotations[key]!r} is neither "true" nor "false"; it is as if it were not there'
            doubts.append(Fault(f"metadata.annotations[{key}]", what))
        if key in labels and key not in annotations:
            doubts.append(Fault(f"metadata.labels[{key}]", "has an effect as an annotation alone; write it as one"))
    return {key: value[:LONGEST_PROMISE] for key, value in annotations.items() if key in DISRUPTION_ANNOTATIONS}


def _priority(spec: wire.PodSpec, around: Surroundings, doubts: Faults) -> PriorityClass:
    """As the priority admission plugin fills it in where a manifest leaves it out."""
    named = around.priorities.get(spec.priority_class_name) if spec.priority_class_name else around.default_priority
    if named is None:
        named = around.default_priority
        if spec.priority is None:
            what = f"there is no PriorityClass {spec.priority_class_name!r}; {named.value} is assumed"
            doubts.append(Fault("spec.priorityClassName", what))
    return PriorityClass(
        spec.priority if spec.priority is not None else named.value,
        spec.preemption_policy or (named.preemption_policy if spec.priority is None else PREEMPTS),
    )


def _run_length(raw: wire.Pod, owner: Owner | None, around: Surroundings, doubts: Faults) -> RunLength | None:
    """What the pod states, else the deadline by which it or its Job is ended."""
    stated = (raw.metadata.annotations or {}).get(RUNTIME)
    if stated is not None:
        seconds = duration_s(stated)
        if seconds is not None:
            return RunLength(seconds, RunLengthSource.ANNOTATION)
        what = f"{stated!r} is not a duration above zero such as 90s, 5m or 1h30m"
        doubts.append(Fault(f"metadata.annotations[{RUNTIME}]", what))
    deadline = raw.spec.active_deadline_seconds
    if deadline is None and owner is not None and owner.kind == "Job":
        deadline = around.deadlines_s.get((namespace(raw.metadata), owner.name))
    return ended_by(deadline)


def states_its_length(raw: wire.Pod) -> bool:
    """Whether the pod says itself how long it runs, so that its Job's deadline does not count."""
    stated = (raw.metadata.annotations or {}).get(RUNTIME)
    return raw.spec.active_deadline_seconds is not None or (stated is not None and duration_s(stated) is not None)


def ended_by(deadline_s: float | None) -> RunLength | None:
    """The run length of a pod that is ended after so many seconds; None: it is not."""
    return RunLength(deadline_s, RunLengthSource.DEADLINE) if deadline_s is not None and deadline_s > 0 else None


def duration_s(text: str) -> float | None:
    """Seconds of "90s", "5m", "1h30m" or "90"; None for anything else, for nothing and for more than can be counted."""
    if _NUMBER.fullmatch(text):
        seconds = float(text)
    else:
        match = _DURATION.fullmatch(text)
        if match is None:
            return None
        hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    return seconds if 0 < seconds < math.inf else None


def _local_volumes(raw: wire.Pod) -> tuple[str, ...]:
    """Volumes with data on the node, without those that may be lost by an annotation."""
    return tuple(
        volume.name
        for volume in indispensable(raw)
        if volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != "Memory")
    )


def priorities_of(classes: Collection[wire.PriorityClass]) -> dict[str, Any]:
    """The `priorities` and the `default_priority` of Surroundings."""
    told = {raw.metadata.name: PriorityClass(raw.value, raw.preemption_policy or PREEMPTS) for raw in classes}
    defaults = [told[raw.metadata.name] for raw in classes if raw.global_default]
    return {
        "priorities": SYSTEM_PRIORITIES | told,
        # Of several, the lowest holds.
        "default_priority": min(defaults, key=lambda each: each.value, default=PriorityClass()),
    }


def waits_for(pod: Pod, scheduler: str) -> bool:
    """Whether a pod waits for a node that HTAS, under a scheduler's name, should find or buy."""
    return pod.node is None and not pod.gates and not pod.is_terminating and pod.is_placed_by(scheduler)
