"""Builders with sensible defaults: a test states only what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from htas.model.billing import Billing
from htas.model.budgets import DisruptionBudget
from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import Constraints, Effect, Taint
from htas.model.flavours import Catalogue, Flavour, Learned
from htas.model.money import parse_price
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.nodes import (
    CLAIM_LABEL,
    CLUSTER_LABEL,
    GROUP_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    Node,
)
from htas.model.packing import Packing, PackingAlgorithm
from htas.model.pods import Owner, Phase, Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import Cycles, NodeGroup, Policy, Workload
from htas.model.quantity import parse_quantity, to_milli, to_units
from htas.model.resources import Resources
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster.simulated import SimulatedCluster, open_simulation

NOW = 1_000_000.0


def amounts(cpu: str = "0", memory: str = "0", pods: int = 0, **extended: int) -> Resources:
    return Resources(
        to_milli(parse_quantity(cpu)),
        to_units(parse_quantity(memory)),
        0,
        pods,
        tuple(sorted((name.replace("__", "/"), n) for name, n in extended.items())),
    )


def make_pod(name: str = "pod", cpu: str = "100m", memory: str = "128Mi", **overrides: Any) -> Pod:
    fields: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "requests": amounts(cpu, memory, 1),
        "uid": name,
        "scheduler": "htas",
        "created_at": NOW - 10,
        "owner": Owner("ReplicaSet", "web", "web-uid", 3),
    }
    fields.update(overrides)
    return Pod(**fields)


def make_job(name: str = "job", runs_s: float = 120.0, **overrides: Any) -> Pod:
    fields: dict[str, Any] = {
        "kind": WorkKind.BATCH,
        "owner": Owner("Job", name, f"{name}-uid"),
        "run_length": RunLength(runs_s, RunLengthSource.ANNOTATION),
    }
    fields.update(overrides)
    return make_pod(name, **fields)


def running(pod: Pod, node: str, since_s: float = 30.0) -> Pod:
    import msgspec

    since = NOW - since_s
    return msgspec.structs.replace(pod, node=node, phase=Phase.RUNNING, started_at=since, ready_since=since)


def make_move(pod: str, source: str, target: str, method: MigrationMethod = MigrationMethod.EVICT) -> Move:
    """A move off a node that is drained."""
    return Move(pod, pod.rpartition("/")[2], source, target, method, MoveReason.NODE_DRAINED)


def make_node(name: str = "node", cpu: str = "4", memory: str = "8Gi", pods: int = 110, **overrides: Any) -> Node:
    labels = {HOSTNAME_LABEL: name, **overrides.pop("labels", {})}
    extended = overrides.pop("extended", {})
    return Node(name=name, allocatable=amounts(cpu, memory, pods, **extended), labels=labels, **overrides)


def owned_node(name: str, group: str = "any", flavour: str = "medium", **overrides: Any) -> Node:
    """A node that HTAS bought: its name is its claim's."""
    labels = {
        CLUSTER_LABEL: "test",
        CLAIM_LABEL: name,
        GROUP_LABEL: group,
        INSTANCE_TYPE_LABEL: flavour,
        **overrides.pop("labels", {}),
    }
    return make_node(name, labels=labels, **overrides)


def ready_claim(node: Node, since_s: float = 3600.0) -> NodeClaim:
    return NodeClaim(
        id=node.name,
        group=node.group or "",
        flavour=node.flavour or "",
        state=ClaimState.READY,
        created_at=NOW - since_s,
        since=NOW - since_s,
        instance=f"vm-{node.name}",
        node=node.name,
    )


def learned(cpu: str, memory: str) -> Learned:
    """What a flavour of four cores was learned to offer."""
    return Learned(*amounts(cpu, memory, 10).parts, promised=amounts("4", "16Gi", 10))


def make_flavour(name: str, cpu: str, memory: str, price: str, pods: int = 110, **overrides: Any) -> Flavour:
    extended = overrides.pop("extended", {})
    return Flavour(name, amounts(cpu, memory, pods, **extended), parse_price(price), **overrides)


NECTAR = (
    make_flavour("t3.xsmall", "1", "1Gi", "0.0198"),
    make_flavour("m3.xsmall", "1", "2Gi", "0.0344"),
    make_flavour("m3.small", "2", "4Gi", "0.0686"),
    make_flavour("m1.medium", "2", "8Gi", "0.1371"),
    make_flavour("m1.large", "4", "16Gi", "0.2746"),
    make_flavour("m1.xlarge", "8", "32Gi", "0.5479"),
)
"""Table 7 of the HTAS paper."""


def make_policy(groups: Iterable[NodeGroup] = (), flavours: Iterable[Flavour] = NECTAR, **overrides: Any) -> Policy:
    fields: dict[str, Any] = {
        "cluster": "test",
        "catalogue": Catalogue(tuple(flavours), "USD", Billing()),
        "groups": tuple(groups) or (NodeGroup("any", Workload.ANY),),
        "cycles": Cycles(),
    }
    fields.update(overrides)
    return Policy(**fields)


def batch_group(**overrides: Any) -> NodeGroup:
    fields: dict[str, Any] = {
        "name": "batch",
        "workload": Workload.BATCH,
        "packing": Packing(PackingAlgorithm.TIME_BIN_BFD),
    }
    fields.update(overrides)
    return NodeGroup(**fields)


def make_snapshot(nodes: Iterable[Node] = (), pods: Iterable[Pod] = (), **overrides: Any) -> ClusterSnapshot:
    """A snapshot; fields of the view (budgets, namespaces, volumes, unread) may be given beside those of the snapshot."""
    view = {key: overrides.pop(key) for key in ("budgets", "namespaces", "volumes", "unread") if key in overrides}
    return ClusterSnapshot(NOW, ClusterView(tuple(nodes), tuple(pods), **view), **overrides)


def opened(
    nodes: Iterable[Node], pods: Iterable[Pod] = (), policy: Policy | None = None, **overrides: Any
) -> SimulatedCluster:
    return open_simulation(make_snapshot(nodes, pods, **overrides), policy or make_policy(), NOW)


def verdicts(node: Iterable[Node], incoming: Pod, placed: Iterable[Pod] = (), **overrides: Any) -> dict[str, str]:
    """Which nodes refuse a pod and in what words (several reasons joined by "; "); accepting nodes are left out."""
    from htas.planning.cluster.feasibility import FILTERS

    opening = opened(node, [*placed, incoming], **overrides)
    cls = opening.book.class_of(incoming)
    found: dict[str, list[str]] = {}
    for refuse in FILTERS:
        fresh: dict[str, list[str]] = {}
        for refusal in refuse(opening.sim.filter_context, cls, opening.sim.all_rows):
            for row in refusal.where.nonzero()[0]:
                name = opening.sim.table.nodes[row].name
                if name not in found:
                    fresh.setdefault(name, []).append(refusal.reason)
        found.update(fresh)
    return {name: "; ".join(reasons) for name, reasons in found.items()}


def labels_are(**labels: str) -> LabelSelector:
    return LabelSelector(tuple(Requirement(k, Operator.IN, (v,)) for k, v in sorted(labels.items())))


def constrained(**fields: Any) -> Constraints:
    return Constraints(**fields)


def no_schedule(key: str, value: str = "") -> Taint:
    return Taint(key, Effect.NO_SCHEDULE, value)


def budget(allowed: int, labels: Mapping[str, str], name: str = "budget") -> DisruptionBudget:
    return DisruptionBudget("default", name, labels_are(**labels), allowed)
