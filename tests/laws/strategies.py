"""Random clusters for the laws: small enough to search, odd enough to find trouble."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from htas.model.budgets import DisruptionBudget
from htas.model.constraints import Constraints, PodAffinityTerm, SpreadConstraint
from htas.model.moves import MigrationMethod
from htas.model.nodes import Node
from htas.model.pods import MAY_MIGRATE, Owner, Pod
from htas.model.policy import (
    AutoscalingAlgorithm,
    CleaningRules,
    Limits,
    NodeGroup,
    Policy,
    Workload,
)
from htas.model.snapshot import ClusterSnapshot, Memory
from tests.builders import (
    NECTAR,
    NOW,
    batch_group,
    labels_are,
    make_job,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
APPS = ("a", "b")
CONSTRAINTS = [
    Constraints(),
    Constraints(),
    Constraints(),
    Constraints(anti_affinity=(PodAffinityTerm(HOST, labels_are(app="a")),)),
    Constraints(affinity=(PodAffinityTerm(ZONE, labels_are(app="b")),)),
    Constraints(spread=(SpreadConstraint(HOST, 1, labels_are(app="a")),)),
    Constraints(spread=(SpreadConstraint(ZONE, 2, labels_are(app="b")),)),
    Constraints(node_selector=(("disk", "ssd"),)),
]


@st.composite
def pods(draw: Any, name: str) -> Pod:
    fields: dict[str, Any] = {
        "cpu": f"{draw(st.integers(0, 40)) * 100}m",
        "memory": f"{draw(st.integers(0, 24)) * 256}Mi",
        "labels": {"app": draw(st.sampled_from(APPS))},
        "constraints": draw(st.sampled_from(CONSTRAINTS)),
        "priority": draw(st.sampled_from([0, 0, 10])),
        "created_at": NOW - draw(st.integers(0, 300)),
    }
    if draw(st.booleans()):
        return make_job(name, draw(st.sampled_from([15, 90, 300, 900])), **fields)
    fields["owner"] = Owner("ReplicaSet", f"rs-{fields['labels']['app']}", replicas=3)
    fields["disruption"] = {MAY_MIGRATE: "true"} if draw(st.booleans()) else {}
    return make_pod(name, **fields)


@st.composite
def nodes(draw: Any, name: str) -> Node:
    flavour = draw(st.sampled_from(NECTAR))
    labels = {ZONE: draw(st.sampled_from("xy"))}
    if draw(st.booleans()):
        labels["disk"] = "ssd"
    node = owned_node(name, draw(st.sampled_from(["services", "batch"])), flavour.name, labels=labels)
    return msgspec.structs.replace(node, allocatable=flavour.allocatable)


@st.composite
def snapshots(draw: Any) -> ClusterSnapshot:
    """Nodes with pods that fit them, pods that wait, a budget, and a past long enough for cleaning."""
    some_nodes = [draw(nodes(f"n{i}")) for i in range(draw(st.integers(0, 5)))]
    placed: list[Pod] = []
    for i, node in enumerate(some_nodes):
        room = node.allocatable
        for j in range(draw(st.integers(0, 3))):
            pod = msgspec.structs.replace(draw(pods(f"r{i}-{j}")), constraints=Constraints())
            if pod.requests.fits_in(room):
                placed.append(running(pod, node.name, draw(st.integers(0, 200))))
                room = room - pod.requests
    waiting = [draw(pods(f"w{i}")) for i in range(draw(st.integers(0, 8)))]
    long_ago = {node.name: NOW - 1000 for node in some_nodes}
    return make_snapshot(
        some_nodes,
        [*placed, *waiting],
        budgets=(DisruptionBudget("default", "budget", labels_are(app="a"), draw(st.integers(0, 2))),),
        claims=tuple(ready_claim(node) for node in some_nodes),
        memory=Memory(long_ago, long_ago, NOW - 1000),
    )


@st.composite
def policies(draw: Any) -> Policy:
    method = draw(st.sampled_from(list(MigrationMethod)))
    rules = CleaningRules(migration=method)
    limits = Limits(max_nodes=draw(st.sampled_from([None, 1, 7])))
    way = {"autoscaling": draw(st.sampled_from(list(AutoscalingAlgorithm))), "mix_budget_s": 0.05}
    groups = [NodeGroup("services", Workload.SERVICE, cleaning=rules, **way), batch_group(cleaning=rules, **way)]
    flavours = [msgspec.structs.replace(f, zones=("x", "y"), labels={"disk": "ssd"}) for f in NECTAR]
    return make_policy(groups, flavours, limits=limits)
