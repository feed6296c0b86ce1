"""What a pod demands of its node, from the wire into the model.

Preferred terms, ScheduleAnyway and PreferNoSchedule only score and are passed over. What may forbid a node and is not
understood ends up in `unsupported`: such a pod is refused with that reason, and keeps its room where it runs already.
A toleration only allows more nodes: one that is not understood allows none, and forbids none either.
"""

from __future__ import annotations

from htas.adapters.kubernetes import selectors, wire
from htas.adapters.kubernetes.errors import Faults
from htas.model.constraints import Constraints, Effect, HostPort, NodeSelectorTerm, Toleration

_TOLERATION_OPERATORS = frozenset({"", "Equal", "Exists", "Gt", "Lt"})
_TOLERATION_EFFECTS = frozenset({"", *Effect})


def constraints(raw: wire.Pod) -> Constraints:
    """Everything the filters read of a pod besides its resources."""
    spec, labels = raw.spec, raw.metadata.labels or {}
    affinity = spec.affinity or wire.Affinity()
    odd: Faults = []
    spread, unknown = selectors.spread(spec.topology_spread_constraints, labels, "spec.topologySpreadConstraints", odd)
    if spec.resource_claims:
        unknown.append("dynamic resource allocation (resourceClaims)")
    node_affinity = _node_affinity(affinity.node_affinity, odd)
    near = selectors.affinity_terms(affinity.pod_affinity, labels, "spec.affinity.podAffinity", odd)
    apart = selectors.affinity_terms(affinity.pod_anti_affinity, labels, "spec.affinity.podAntiAffinity", odd)
    return Constraints(
        node_selector=tuple(sorted((spec.node_selector or {}).items())),
        node_affinity=node_affinity,
        tolerations=_tolerations(spec),
        host_ports=_host_ports(spec),
        spread=spread,
        affinity=near,
        anti_affinity=apart,
        claims=_claims(raw),
        unsupported=(*unknown, *(f"{fault.path} ({fault.what})" for fault in odd)),
    )


def _node_affinity(item: wire.NodeAffinity | None, odd: Faults) -> tuple[NodeSelectorTerm, ...] | None:
    required = item.required_during_scheduling_ignored_during_execution if item is not None else None
    if required is None:
        return None
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    return selectors.node_terms(required, path, odd)


def _tolerations(spec: wire.PodSpec) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(item.key, item.operator or "Equal", item.value, Effect(item.effect) if item.effect else None)
        for item in spec.tolerations or ()
        if item.operator in _TOLERATION_OPERATORS and item.effect in _TOLERATION_EFFECTS
    )


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
