"""Random clusters of which searches and simulations are on record: small, and with every kind of obstacle in them.

A decision on record comes from a story or a test. The optimiser's search and `htas simulate` are run by no plan, so
theirs are recorded of clusters made here, from a seed each: what is written down is the cluster, not the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

import msgspec

from htas.model.billing import Billing
from htas.model.budgets import DisruptionBudget
from htas.model.constraints import (
    Constraints,
    Effect,
    HostPort,
    NodeSelectorTerm,
    PodAffinityTerm,
    SpreadConstraint,
    Taint,
    Toleration,
)
from htas.model.edge import TIER_LABEL
from htas.model.flavours import Catalogue, Flavour
from htas.model.moves import MigrationMethod
from htas.model.nodes import DO_NOT_DISRUPT, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, Node
from htas.model.pods import MAY_MIGRATE, SAFE_TO_EVICT, Owner, Phase, Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import CleaningRules, Cycles, NodeGroup, Policy, Workload
from htas.model.resources import Resources
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.model.volumes import PersistentVolume, VolumeClaim, Volumes

NOW = 1_000_000.0
GIB = 2**30
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
GPU = "nvidia.com/gpu"
APPS = ("front", "cart", "search")

Item = TypeVar("Item")
Change = Callable[[Random, Pod], dict[str, Any]]


def labelled(app: str) -> LabelSelector:
    return LabelSelector((Requirement("app", Operator.IN, (app,)),))


def one(name: str, cpu_m: int, memory: int, node: str, app: str, random: Random) -> Pod:
    started = NOW - random.choice((30.0, 900.0, 7200.0, 200_000.0))
    return Pod(
        namespace="shop",
        name=name,
        requests=Resources(cpu_m, memory, 0, 1),
        uid=f"{name}-uid",
        scheduler="htas",
        created_at=started - 5,
        started_at=started,
        ready_since=started,
        phase=Phase.RUNNING,
        node=node,
        labels={"app": app},
        owner=Owner("ReplicaSet", app, f"{app}-uid", random.choice((1, 2, 3))),
    )


def _anywhere(name: str, operator: Operator, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement(name, operator, values),), ())


def batch(random: Random, pod: Pod) -> dict[str, Any]:
    return {
        "kind": WorkKind.BATCH,
        "owner": Owner("Job", pod.name, f"{pod.name}-job"),
        "run_length": RunLength(random.choice((300.0, 9000.0)), RunLengthSource.ANNOTATION),
    }


AWKWARD: Sequence[Change] = (
    batch,
    batch,
    lambda random, pod: {"owner": None},
    lambda random, pod: {"owner": Owner("Ring", "ring", "ring-uid")},
    lambda random, pod: {"owner": Owner("StatefulSet", pod.labels["app"], "set-uid", 2)},
    lambda random, pod: {"owner": Owner("DaemonSet", "agent", "agent-uid")},
    lambda random, pod: {"is_mirror": True, "name": f"proxy-{pod.node}", "owner": Owner("Node", pod.node or "", "n")},
    lambda random, pod: {"namespace": "kube-system"},
    lambda random, pod: {"disruption": {DO_NOT_DISRUPT: "true"}},
    lambda random, pod: {"disruption": {SAFE_TO_EVICT: "false"}},
    lambda random, pod: {"disruption": {SAFE_TO_EVICT: "true"}},
    lambda random, pod: {"disruption": {MAY_MIGRATE: "false"}},
    lambda random, pod: {"has_local_storage": True},
    lambda random, pod: {"deleted_at": NOW - 1},
    lambda random, pod: {"scheduler": "default-scheduler"},
    lambda random, pod: {"gang": "ranks"},
    lambda random, pod: {"constraints": Constraints(host_ports=(HostPort(8080),))},
    lambda random, pod: {"constraints": Constraints(node_selector=((HOSTNAME_LABEL, pod.node or ""),))},
    lambda random, pod: {"constraints": Constraints(node_selector=((ZONE_LABEL, "east"),))},
    lambda random, pod: {"constraints": Constraints(claims=("data",))},
    lambda random, pod: {
        "constraints": Constraints(node_affinity=(_anywhere("disk", Operator.IN, "ssd"),)),
    },
    lambda random, pod: {
        "constraints": Constraints(
            node_affinity=(_anywhere(HOSTNAME_LABEL, Operator.IN, pod.node or "", "node-0"),),
        )
    },
    lambda random, pod: {
        "constraints": Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, labelled(pod.labels["app"])),))
    },
    lambda random, pod: {
        "constraints": Constraints(spread=(SpreadConstraint(ZONE_LABEL, 1, labelled(pod.labels["app"])),))
    },
    lambda random, pod: {"constraints": Constraints(tolerations=(Toleration("reserved", operator="Exists"),))},
)
"""What makes a pod other than a service's that may move; each is drawn alike."""


def altered(random: Random, pod: Pod, share: float) -> Pod:
    if random.random() >= share:
        return pod
    return msgspec.structs.replace(pod, **random.choice(AWKWARD)(random, pod))


def _fits(pod: Pod, free: Resources) -> bool:
    return pod.requests.cpu_m <= free.cpu_m and pod.requests.memory_bytes <= free.memory_bytes


def _budgets(random: Random) -> tuple[DisruptionBudget, ...]:
    chosen = random.sample(APPS, random.choice((0, 1, 2)))
    return tuple(DisruptionBudget("shop", f"{app}-budget", labelled(app), random.choice((0, 1, 2))) for app in chosen)


def crowded(seed: int) -> tuple[ClusterSnapshot, Policy]:
    """Nodes nearly full of pods of three priorities, and pods that wait: what the optimiser rearranges."""
    random = Random(seed)
    nodes, pods = [], []
    unit = random.choice((256, 500, 512)) * 2**20
    for number in range(random.randint(2, 6)):
        name = f"node-{number}"
        labels = {HOSTNAME_LABEL: name, ZONE_LABEL: random.choice(("east", "west"))}
        if random.random() < 0.5:
            labels["disk"] = "ssd"
        if random.random() < 0.1:
            labels[TIER_LABEL] = "edge"
        taints = (Taint("reserved", Effect.NO_SCHEDULE, ""),) if random.random() < 0.15 else ()
        free = Resources(4000, random.randint(8, 14) * unit, 0, random.choice((5, 110)))
        is_ready, is_closed = random.random() > 0.05, random.random() < 0.05
        nodes.append(Node(name, free, labels=labels, taints=taints, is_ready=is_ready, is_unschedulable=is_closed))
        for each in range(random.randint(1, 5)):
            pod = one(f"run-{number}-{each}", *_size(random, unit), name, random.choice(APPS), random)
            if _fits(pod, free):
                pods.append(altered(random, _important(random, pod), 0.3))
                free = free - pod.requests
    for number in range(random.randint(2, 8)):
        pod = one(f"wait-{number}", *_size(random, unit), "node-0", random.choice(APPS), random)
        pod = altered(random, _important(random, pod), 0.25)
        alone = {"node": None, "phase": Phase.PENDING, "started_at": None, "ready_since": None}
        if not pod.is_mirror:
            pods.append(msgspec.structs.replace(pod, **alone, deleted_at=None))
    view = ClusterView(tuple(nodes), tuple(pods), budgets=_budgets(random))
    method = random.choice(list(MigrationMethod))
    return ClusterSnapshot(NOW, view), _policy(random, (), CleaningRules(migration=method))


def _size(random: Random, unit: int) -> tuple[int, int]:
    return random.choice((100, 250, 500, 1000, 1500)), random.randint(1, 6) * unit


def _important(random: Random, pod: Pod) -> Pod:
    wishes = {MAY_MIGRATE: "true"} if random.random() < 0.7 else {}
    return msgspec.structs.replace(pod, priority=random.choice((0, 0, 5, 100)), disruption=wishes)


def _policy(random: Random, flavours: Sequence[Flavour], rules: CleaningRules) -> Policy:
    return Policy(
        cluster="recorded",
        catalogue=Catalogue(tuple(flavours), "USD", Billing()),
        groups=(NodeGroup("any", Workload.ANY, cleaning=rules),),
        cycles=Cycles(),
    )


SIZES = {"small": (2, 4), "middle": (4, 8), "large": (8, 16), "wide": (4, 32)}


def _flavours(random: Random) -> list[Flavour]:
    names = random.sample(sorted(SIZES), random.choice((1, 2, 3, 3, 4)))
    found = []
    for name in names:
        cores, gib = SIZES[name]
        price = int((cores * 20_000_000 + gib * 3_000_000) * random.choice((0.7, 0.9, 1.0, 1.3)))
        zones = random.choice(((), ("east", "west")))
        extended = ((GPU, 1),) if name == "wide" and random.random() < 0.4 else ()
        reserved = Resources(random.choice((0, 100)), random.choice((0, 300 * 2**20)))
        size = Resources(cores * 1000, gib * GIB, 0, 110, extended)
        found.append(Flavour(name, size, price, zones=zones, reserved=reserved))
    return found


def grown(seed: int) -> tuple[ClusterSnapshot, Policy]:
    """Nodes of a few sizes, half empty, as clusters grow that nobody cleans: what `htas simulate` is asked about."""
    random = Random(seed)
    flavours = _flavours(random)
    nodes, pods = list[Node](), list[Pod]()
    unread: dict[str, str] = {}
    for number in range(random.randint(3, 10)):
        node = _grown_node(random, f"node-{number}", random.choice(flavours))
        nodes.append(node)
        if random.random() < 0.04:
            unread[node.name] = "shop/odd"
        free = node.allocatable
        for each in range(random.randint(0, 4)):
            size = random.choice((100, 300, 800, 1500)), random.choice((1, 2, 5, 9)) * GIB // 4
            pod = one(f"run-{number}-{each}", *size, node.name, random.choice(APPS), random)
            if _fits(pod, free):
                pods.append(altered(random, pod, 0.35))
                free = free - pod.requests
        if random.random() < 0.8:
            owner = Owner("DaemonSet", "log", "log-uid")
            log = one(f"log-{number}", 50, 2**26, node.name, "log", random)
            pods.append(msgspec.structs.replace(log, owner=owner, namespace="kube-system"))
    if random.random() < 0.3:
        pods += [_agent(random, node) for node in nodes]
    affinity = (_anywhere(HOSTNAME_LABEL, Operator.IN, "node-1"),) if random.random() < 0.5 else None
    volumes = Volumes(
        claims=(VolumeClaim("shop", "data", volume="disk-1"),),
        persistent=(PersistentVolume("disk-1", node_affinity=affinity),),
    )
    view = ClusterView(tuple(nodes), tuple(pods), budgets=_budgets(random), volumes=volumes, unread=unread)
    rules = CleaningRules(
        migration=random.choice(list(MigrationMethod)),
        utilization_threshold=random.choice((0.5, 0.7, 1.0)),
        min_replica_count=random.choice((0, 2)),
    )
    return ClusterSnapshot(NOW, view), _policy(random, flavours, rules)


def _grown_node(random: Random, name: str, flavour: Flavour) -> Node:
    kind = flavour.name if random.random() > 0.08 else "retired"
    labels = {HOSTNAME_LABEL: name, INSTANCE_TYPE_LABEL: kind, ZONE_LABEL: random.choice(("east", "west"))}
    taints: tuple[Taint, ...] = ()
    annotations = {DO_NOT_DISRUPT: "true"} if random.random() < 0.06 else {}
    if random.random() < 0.08:
        labels[CONTROL_PLANE], taints = "", (Taint(CONTROL_PLANE, Effect.NO_SCHEDULE, ""),)
    elif random.random() < 0.08:
        taints = (Taint("reserved", Effect.NO_SCHEDULE, ""),)
    if random.random() < 0.4:
        labels["disk"] = "ssd"
    if random.random() < 0.04:
        labels[TIER_LABEL] = "edge"
    size = flavour.allocatable
    return Node(
        name,
        size,
        labels=labels,
        taints=taints,
        annotations=annotations,
        is_ready=random.random() > 0.04,
        is_unschedulable=random.random() < 0.04,
        created_at=NOW - 400_000,
    )


def _agent(random: Random, node: Node) -> Pod:
    """A pod that an operator made for a node, and names it."""
    pod = one(f"engine-{node.name}", 100, 2**27, node.name, "engine", random)
    labels = {"app": "engine", "node": node.name}
    return msgspec.structs.replace(pod, owner=Owner("Engine", node.name, f"{node.name}-engine"), labels=labels)
