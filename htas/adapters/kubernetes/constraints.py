"""What a pod demands of its node, from the wire into the model.

Preferred terms, ScheduleAnyway and PreferNoSchedule only score and are passed over. What may forbid a node and is not
understood ends up in `unsupported`: such a pod is refused with that reason, and keeps its room where it runs already.
A toleration only allows more nodes: one that is not understood allows none, and forbids none either.

**How much may be demanded.** Kubernetes bounds an object by its bytes alone (1.5 MB): a pod may have 2,000 host ports
or 800 spread constraints, and fifty such pods once held up everybody's plan for minutes. A pod beyond the bounds waits,
with the reason; what a kubelet has taken keeps all of its terms, since others must respect them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from htas.adapters.kubernetes import selectors, wire
from htas.adapters.kubernetes.errors import Faults
from htas.model.constraints import Constraints, Effect, HostPort, NodeSelectorTerm, Toleration

_TOLERATION_OPERATORS = frozenset({"", "Equal", "Exists", "Gt", "Lt"})
_TOLERATION_EFFECTS = frozenset({"", *Effect})
MOST = {
    "host ports": 100,
    "tolerations": 500,
    "topology spread constraints": 20,
    "terms of pod affinity and anti-affinity": 100,
    "requirements of node selector and affinity": 200,
    "values in affinity and selectors": 10_000,
    "volume claims": 500,
}
"""Far above what people write: an attach limit is 256 at most, a cluster of 5,000 nodes may be named one by one."""
_TOLD = 3


def constraints(raw: wire.Pod) -> Constraints:
    """Everything the filters read of a pod besides its resources; of one that demands too much, the refusal."""
    has_started = raw.status.start_time is not None
    return within_budget(_demanded(raw), is_placed=bool(raw.spec.node_name), has_started=has_started)


def _demanded(raw: wire.Pod) -> Constraints:
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
        own_claims=_own_claims(raw),
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


def _own_claims(raw: wire.Pod) -> tuple[tuple[str, str], ...]:
    """Claims that must have been made for the pod itself, with its uid (kube-scheduler, ephemeral.VolumeIsForPod)."""
    meta = raw.metadata
    own = (f"{meta.name}-{volume.name}" for volume in raw.spec.volumes or () if volume.ephemeral is not None)
    return tuple(sorted((name, meta.uid) for name in own)) if meta.uid else ()


def within_budget(constraints: Constraints, *, is_placed: bool, has_started: bool) -> Constraints:
    """The constraints, or for a pod that demands too much and has not started, the refusal.

    Anybody may write a node's name into a pod: until its kubelet has taken the pod it holds ports and volumes there, as
    many as the bounds allow, and nobody has to respect its terms.
    """
    many = constraints.unsupported
    if len(many) > _TOLD:
        told = (*many[:_TOLD], f"{len(many) - _TOLD} things more that are not understood")
        constraints = msgspec.structs.replace(constraints, unsupported=told)
    if has_started:
        return constraints
    beyond = tuple(
        f"{count:,} {what}, more than {MOST[what]:,}" for what, count in _counts(constraints) if count > MOST[what]
    )
    if not beyond:
        return constraints
    if not is_placed:
        return Constraints(unsupported=beyond)
    ports, claims = constraints.host_ports[: MOST["host ports"]], constraints.claims[: MOST["volume claims"]]
    return Constraints(host_ports=ports, claims=claims, unsupported=beyond)


def _counts(constraints: Constraints) -> Iterator[tuple[str, int]]:
    terms = constraints.node_affinity or ()
    requirements = [each for term in terms for each in (*term.expressions, *term.fields)]
    near = (*constraints.affinity, *constraints.anti_affinity)
    selectors = [term.selector for term in near] + [term.namespace_selector for term in near]
    selectors += [spread.selector for spread in constraints.spread]
    chosen = [each for selector in selectors if selector is not None for each in selector.requirements]
    yield "host ports", len(constraints.host_ports)
    yield "tolerations", len(constraints.tolerations)
    yield "topology spread constraints", len(constraints.spread)
    yield "terms of pod affinity and anti-affinity", len(near)
    yield "requirements of node selector and affinity", len(constraints.node_selector) + len(requirements)
    named = sum(len(term.namespaces) for term in near)
    yield "values in affinity and selectors", named + sum(1 + len(each.values) for each in (*requirements, *chosen))
    yield "volume claims", len(constraints.claims)
