"""Random clusters in the middle of their lives, of which plans are on record beside those that stories led to.

Machines that HTAS bought, some empty for long, some half full, some on their way; work that waits, of every kind; edge
nodes beside them; and policies that differ in everything that a policy may say. In most, several of these meet.
"""

from __future__ import annotations

from random import Random

import msgspec

from htas.model.billing import Billing
from htas.model.budgets import DisruptionBudget
from htas.model.claims import ClaimState, NodeClaim
from htas.model.edge import TIER_LABEL, EdgePolicy, Tier
from htas.model.flavours import Catalogue, Flavour
from htas.model.moves import MigrationMethod
from htas.model.nodes import (
    CLAIM_LABEL,
    CLUSTER_LABEL,
    GROUP_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    Node,
)
from htas.model.packing import Packing, PackingAlgorithm
from htas.model.pods import MAY_MIGRATE, Phase, Pod
from htas.model.policy import (
    AutoscalingAlgorithm,
    CleaningRules,
    Consolidation,
    Cycles,
    EmptyRelease,
    Fallback,
    FallbackMode,
    Limits,
    NamespaceLimit,
    NodeGroup,
    Policy,
    Promises,
    Workload,
)
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory
from tools.corpus.clusters import APPS, NOW, SIZES, altered, batch, labelled, one

GIB = 2**30


def lived(seed: int) -> tuple[ClusterSnapshot, Policy]:
    random = Random(seed)
    flavours = [_flavour(random, name) for name in random.sample(sorted(SIZES), random.choice((2, 3, 4)))]
    policy = _policy(random, flavours)
    nodes, claims, pods = list[Node](), list[NodeClaim](), list[Pod]()
    for number in range(random.randint(0, 6)):
        flavour = random.choice(flavours)
        node = _node(random, f"node-{number}", flavour, policy)
        nodes.append(node)
        if node.claim is not None:
            claims.append(_claim(random, node, flavour))
        pods += _residents(random, node, full=random.choice((0.0, 0.3, 0.6, 1.0)))
    for number in range(random.choice((0, 0, 1, 2))):
        claims.append(_on_its_way(random, f"coming-{number}", random.choice(flavours), policy))
    pods += [_waiting(random, f"wait-{number}") for number in range(random.choice((0, 0, 2, 5, 9)))]
    budgets = tuple(
        DisruptionBudget("shop", f"{app}-budget", labelled(app), random.choice((0, 1, 3)))
        for app in random.sample(APPS, random.choice((0, 1)))
    )
    since = {node.name: NOW - random.choice((10.0, 400.0, 4000.0)) for node in nodes}
    view = ClusterView(tuple(nodes), tuple(pods), budgets=budgets)
    memory = Memory(since, since, NOW - random.choice((0.0, 1000.0)))
    return ClusterSnapshot(NOW, view, claims=tuple(claims), memory=memory), policy


def _flavour(random: Random, name: str) -> Flavour:
    cores, gib = SIZES[name]
    price = int((cores * 20_000_000 + gib * 3_000_000) * random.choice((0.7, 0.9, 1.0, 1.3)))
    zones = random.choice(((), ("east", "west")))
    size = Resources(cores * 1000, gib * GIB, 0, random.choice((6, 110)))
    stock = random.choice((None, None, 1, 3))
    return Flavour(name, size, price, zones=zones, stock=stock, fee_nanos_per_hour=random.choice((0, 5_000_000)))


def _policy(random: Random, flavours: list[Flavour]) -> Policy:
    groups = [
        _group(random, name, workload)
        for name, workload in random.choice(
            ((("any", Workload.ANY),), (("services", Workload.SERVICE), ("batch", Workload.BATCH)))
        )
    ]
    if random.random() < 0.35:
        groups.append(NodeGroup("near", Workload.SERVICE, tier=Tier.EDGE, is_elastic=False))
    limit = NamespaceLimit(("shop",), max_cpu_m=random.choice((4000, 16000)))
    return Policy(
        cluster="recorded",
        catalogue=Catalogue(tuple(flavours), "USD", Billing(granularity_s=random.choice((1, 60, 3600)))),
        groups=tuple(groups),
        limits=Limits(max_nodes=random.choice((None, 4, 8)), max_nanos_per_hour=random.choice((None, 600_000_000))),
        cycles=Cycles(),
        fallback=Fallback(mode=random.choice(list(FallbackMode)), promises=random.choice(list(Promises))),
        edge=EdgePolicy(settle_s=random.choice((0.0, 300.0)), gamma=random.choice((10.0, 100.0))),
        max_wait_for_capacity_s=random.choice((None, 0.0, 180.0)),
        look_ahead_s=random.choice((0.0, 120.0)),
        max_rental_lengthening=random.choice((None, 1.0, 4.0)),
        namespaces=(limit,) if random.random() < 0.2 else (),
    )


def _group(random: Random, name: str, workload: Workload) -> NodeGroup:
    rules = CleaningRules(
        migration=random.choice(list(MigrationMethod)),
        utilization_threshold=random.choice((0.5, 0.8)),
        underutilized_for_s=random.choice((0.0, 300.0)),
        empty_release=random.choice(list(EmptyRelease)),
        queue_empty_for_s=random.choice((0.0, 300.0)),
        min_replica_count=random.choice((0, 2)),
        max_nodes_at_once=random.choice((1, 10)),
        consolidation=Consolidation(enabled=random.random() < 0.5, shrinks=random.random() < 0.5),
    )
    return NodeGroup(
        name,
        workload,
        min_nodes=random.choice((0, 0, 1)),
        packing=Packing(random.choice(list(PackingAlgorithm))),
        autoscaling=random.choice(list(AutoscalingAlgorithm)),
        mix_budget_s=0.02,
        cleaning=rules,
    )


def _node(random: Random, name: str, flavour: Flavour, policy: Policy) -> Node:
    labels = {HOSTNAME_LABEL: name, INSTANCE_TYPE_LABEL: flavour.name, ZONE_LABEL: random.choice(("east", "west"))}
    if random.random() < 0.8:
        group = random.choice([group for group in policy.groups if group.is_elastic])
        labels |= {CLUSTER_LABEL: policy.cluster, CLAIM_LABEL: name, GROUP_LABEL: group.name}
    elif len(policy.groups) > 1:
        labels[TIER_LABEL] = "edge"
    return Node(
        name,
        flavour.allocatable,
        labels=labels,
        created_at=NOW - 7000,
        ready_since=NOW - 6900,
        is_ready=random.random() > 0.05,
        is_unschedulable=random.random() < 0.05,
    )


def _claim(random: Random, node: Node, flavour: Flavour) -> NodeClaim:
    began = NOW - random.choice((100.0, 3400.0, 7190.0))
    return NodeClaim(
        id=node.name,
        group=node.group or "",
        flavour=flavour.name,
        state=ClaimState.READY,
        created_at=began,
        since=began,
        instance=f"vm-{node.name}",
        node=node.name,
        nanos_per_hour=flavour.nanos_per_hour,
    )


def _on_its_way(random: Random, name: str, flavour: Flavour, policy: Policy) -> NodeClaim:
    began = NOW - random.choice((5.0, 50.0))
    return NodeClaim(
        id=name,
        group=policy.groups[0].name,
        flavour=flavour.name,
        state=ClaimState.WANTED,
        created_at=began,
        since=began,
        nanos_per_hour=flavour.nanos_per_hour,
    )


def _residents(random: Random, node: Node, full: float) -> list[Pod]:
    """Pods that take about so much of a node."""
    found, free = list[Pod](), node.allocatable
    while free.cpu_m > (1 - full) * node.allocatable.cpu_m and len(found) < 4:
        cpu_m, memory = random.choice((200, 500, 1000, 2000)), random.choice((1, 2, 4, 8)) * GIB // 2
        pod = _opted(random, one(f"{node.name}-{len(found)}", cpu_m, memory, node.name, random.choice(APPS), random))
        if not pod.requests.fits_in(free):
            break
        free = free - pod.requests
        found.append(pod)
    return found


def _waiting(random: Random, name: str) -> Pod:
    cpu_m, memory = random.choice((200, 500, 1000, 3000)), random.choice((1, 2, 4, 12)) * GIB // 2
    pod = _opted(random, one(name, cpu_m, memory, "node-0", random.choice(APPS), random))
    return msgspec.structs.replace(
        pod,
        created_at=NOW - random.choice((1.0, 30.0, 500.0)),
        node=None,
        phase=Phase.PENDING,
        started_at=None,
        ready_since=None,
        deleted_at=None,
        is_mirror=False,
    )


def _opted(random: Random, pod: Pod) -> Pod:
    """A service's that may move, a job's, or one with a wish or a promise of its own; of some priority."""
    if random.random() < 0.4:
        pod = msgspec.structs.replace(pod, **batch(random, pod))
    wishes = {MAY_MIGRATE: "true"} if random.random() < 0.6 else {}
    pod = msgspec.structs.replace(
        pod, disruption=wishes, priority=random.choice((0, 0, 0, 10)), qos=random.choice((0.5, 1.0))
    )
    return altered(random, pod, 0.25)
