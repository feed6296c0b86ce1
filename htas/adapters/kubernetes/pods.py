"""Pods from the wire into the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from htas.adapters.kubernetes import selectors, wire
from htas.adapters.kubernetes.errors import ObjectError
from htas.adapters.kubernetes.requests import pod_requests
from htas.model.constraints import Constraints, Effect, HostPort, NodeSelectorTerm, Toleration
from htas.model.pods import (
    DISRUPTION_ANNOTATIONS,
    RUNTIME,
    SAFE_LOCAL_VOLUMES,
    WORKLOAD,
    Owner,
    Phase,
    Pod,
    RunLength,
    RunLengthSource,
    WorkKind,
)
from htas.model.resources import PODS, Resources

MIRROR = "kubernetes.io/config.mirror"
TOLERATION_OPERATORS = frozenset({"", "Equal", "Exists"})
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def epoch(instant: datetime | None) -> float | None:
    return instant.timestamp() if instant is not None else None


def translate(
    raw: wire.Pod,
    priorities: Mapping[str, int],
    default_priority: int,
    replicas: Mapping[tuple[str, str, str], int],
    deadlines: Mapping[tuple[str, str], float],
) -> tuple[Pod | None, list[ObjectError]]:
    """The pod (None: it has ended and holds nothing), and annotations that could not be understood.

    Raises ObjectError where the pod itself cannot be understood.
    """
    spec, meta = raw.spec, raw.metadata
    if raw.status.phase in (Phase.SUCCEEDED, Phase.FAILED):
        return None, []
    labels, annotations = meta.labels or {}, meta.annotations or {}
    requests, scoring_cpu_m, scoring_memory_bytes = pod_requests(raw)
    owner = _owner(meta, replicas)
    problems: list[ObjectError] = []
    kind = _kind(labels, owner, spec, problems)
    return Pod(
        namespace=meta.namespace or "default",
        name=meta.name,
        requests=Resources.of({**requests, PODS: 1}),
        uid=meta.uid,
        kind=kind,
        labels=labels,
        owner=owner,
        constraints=constraints(raw),
        scheduler=spec.scheduler_name,
        priority=_priority(spec, priorities, default_priority),
        preempts=spec.preemption_policy != "Never",
        phase=_phase(raw.status.phase),
        node=spec.node_name or None,
        nominated_node=raw.status.nominated_node_name or None,
        created_at=epoch(meta.creation_timestamp) or 0.0,
        started_at=epoch(raw.status.start_time),
        deleted_at=epoch(meta.deletion_timestamp),
        grace_s=_grace_s(raw),
        run_length=_run_length(raw, kind, owner, deadlines, problems),
        gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
        is_unschedulable=any(
            c.type == "PodScheduled" and c.status == "False" and c.reason == "Unschedulable"
            for c in raw.status.conditions or ()
        ),
        is_mirror=MIRROR in annotations,
        has_local_storage=_has_local_storage(raw),
        scoring_cpu_m=scoring_cpu_m,
        scoring_memory_bytes=scoring_memory_bytes,
        disruption={key: value for key, value in annotations.items() if key in DISRUPTION_ANNOTATIONS},
    ), problems


def _phase(text: str) -> Phase:
    try:
        return Phase(text)
    except ValueError:
        raise ObjectError("status.phase", f"{text!r} is not one of {', '.join(Phase)}") from None


def _grace_s(raw: wire.Pod) -> float:
    stated = raw.metadata.deletion_grace_period_seconds
    stated = stated if stated is not None else raw.spec.termination_grace_period_seconds
    return stated if stated is not None else 30.0


def _owner(meta: wire.Metadata, replicas: Mapping[tuple[str, str, str], int]) -> Owner | None:
    reference = next((ref for ref in meta.owner_references or () if ref.controller), None)
    if reference is None:
        return None
    wanted = replicas.get((reference.kind, meta.namespace, reference.name))
    return Owner(reference.kind, reference.name, reference.uid, wanted)


def _kind(labels: Mapping[str, str], owner: Owner | None, spec: wire.PodSpec, problems: list[ObjectError]) -> WorkKind:
    """DESIGN 3, stage 1: the label, else Jobs and pods that do not always restart are batch."""
    stated = labels.get(WORKLOAD)
    if stated in tuple(WorkKind):
        return WorkKind(stated)
    if stated is not None:
        problems.append(ObjectError(f"metadata.labels[{WORKLOAD}]", f"{stated!r} is neither service nor batch"))
    is_batch = (owner is not None and owner.kind == "Job") or spec.restart_policy != "Always"
    return WorkKind.BATCH if is_batch and not (owner is not None and owner.kind == "DaemonSet") else WorkKind.SERVICE


def _priority(spec: wire.PodSpec, priorities: Mapping[str, int], default: int) -> int:
    if spec.priority is not None:
        return spec.priority
    return priorities.get(spec.priority_class_name, default)


def _run_length(
    raw: wire.Pod,
    kind: WorkKind,
    owner: Owner | None,
    deadlines: Mapping[tuple[str, str], float],
    problems: list[ObjectError],
) -> RunLength | None:
    if kind is WorkKind.SERVICE:
        return None
    stated = (raw.metadata.annotations or {}).get(RUNTIME)
    if stated is not None:
        seconds = duration_s(stated)
        if seconds is not None:
            return RunLength(seconds, RunLengthSource.ANNOTATION)
        what = f"{stated!r} is not a duration above zero such as 90s, 5m or 1h30m"
        problems.append(ObjectError(f"metadata.annotations[{RUNTIME}]", what))
    deadline = raw.spec.active_deadline_seconds
    if deadline is None and owner is not None:
        deadline = deadlines.get((raw.metadata.namespace, owner.name))
    return RunLength(deadline, RunLengthSource.DEADLINE) if deadline is not None else None


def duration_s(text: str) -> float | None:
    """Seconds of "90s", "5m", "1h30m" or "90"; None for anything else and for nothing."""
    try:
        seconds = float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None
    except ValueError:
        seconds = None
    if seconds is None:
        match = _DURATION.fullmatch(text)
        if match is None:
            return None
        hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    return seconds if seconds > 0 else None


def _has_local_storage(raw: wire.Pod) -> bool:
    exempt = {name.strip() for name in (raw.metadata.annotations or {}).get(SAFE_LOCAL_VOLUMES, "").split(",")}
    return any(
        volume.name not in exempt
        and (volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != "Memory"))
        for volume in raw.spec.volumes or ()
    )


def constraints(raw: wire.Pod) -> Constraints:
    """Everything the filters read of a pod besides its resources."""
    spec, labels = raw.spec, raw.metadata.labels or {}
    affinity = spec.affinity or wire.Affinity()
    spread, unknown = selectors.spread(spec.topology_spread_constraints, labels, "spec.topologySpreadConstraints")
    if spec.resource_claims:
        unknown.append("dynamic resource allocation (resourceClaims)")
    tolerations, odd = _tolerations(spec)
    return Constraints(
        node_selector=tuple(sorted((spec.node_selector or {}).items())),
        node_affinity=_node_affinity(affinity.node_affinity),
        tolerations=tolerations,
        host_ports=_host_ports(spec),
        spread=spread,
        affinity=selectors.affinity_terms(affinity.pod_affinity, labels, "spec.affinity.podAffinity"),
        anti_affinity=selectors.affinity_terms(affinity.pod_anti_affinity, labels, "spec.affinity.podAntiAffinity"),
        claims=_claims(raw),
        unsupported=tuple(unknown + odd),
    )


def _node_affinity(item: wire.NodeAffinity | None) -> tuple[NodeSelectorTerm, ...] | None:
    required = item.required_during_scheduling_ignored_during_execution if item is not None else None
    if required is None:
        return None
    return selectors.node_terms(required, "spec.affinity.nodeAffinity")


def _tolerations(spec: wire.PodSpec) -> tuple[tuple[Toleration, ...], list[str]]:
    known: list[Toleration] = []
    odd: list[str] = []
    for i, item in enumerate(spec.tolerations or ()):
        if item.operator not in TOLERATION_OPERATORS:
            odd.append(f"toleration operator {item.operator}")
            continue
        try:
            effect = Effect(item.effect) if item.effect else None
        except ValueError:
            raise ObjectError(f"spec.tolerations[{i}].effect", f"{item.effect!r} is no taint effect") from None
        known.append(Toleration(item.key, item.operator or "Equal", item.value, effect))
    return tuple(known), odd


def _host_ports(spec: wire.PodSpec) -> tuple[HostPort, ...]:
    """Ports of containers and sidecars; on the host's network a container port is a host port."""
    sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    ports = []
    for container in [*spec.containers, *sidecars]:
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                ports.append(HostPort(number, port.protocol or "TCP", port.host_ip or "0.0.0.0"))
    return tuple(ports)


def _claims(raw: wire.Pod) -> tuple[str, ...]:
    """Claims by name; a generic ephemeral volume's claim is named after the pod and the volume."""
    names = []
    for volume in raw.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{raw.metadata.name}-{volume.name}")
    return tuple(sorted(set(names)))
