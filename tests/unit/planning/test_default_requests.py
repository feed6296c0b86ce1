"""Pods without requests: any node takes them, but machines are launched and drained as if they asked for the default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.claims import ClaimState, NodeClaim
from htas.model.plan import Plan
from htas.model.pods import Owner, Pod
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.model.reasons import Kept
from htas.model.reservations import Reservation
from htas.model.resources import DefaultRequests
from htas.model.snapshot import Memory
from htas.planning.planner import plan
from htas.planning.what_if.adopting import adopt
from tests.builders import (
    NOW,
    constrained,
    make_flavour,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    opened,
    owned_node,
    ready_claim,
    running,
)

MIB = 2**20
SMALL = make_flavour("small", "1", "1Gi", "0.05")
LARGE = make_flavour("large", "4", "8Gi", "0.30")
OWNER = Owner("ReplicaSet", "web", "web")
EAGER = CleaningRules(underutilized_for_s=0.0, queue_empty_for_s=0.0, moves_services=True)


def policy(*groups: NodeGroup, **how: Any) -> Policy:
    return make_policy(groups or [NodeGroup("any", cleaning=EAGER)], [SMALL, LARGE], **how)


def bare(name: str, cpu: str = "0", memory: str = "0", **how: Any) -> Pod:
    return make_pod(name, cpu, memory, **how)


def bare_pods(count: int, node: str | None = None, **how: Any) -> list[Pod]:
    found = [bare(f"{node or 'p'}-{i}", **how) for i in range(count)]
    return [running(pod, node) for pod in found] if node is not None else found


def planned(nodes: Iterable[Any], pods: Iterable[Pod], how: Policy | None = None, **snapshot: Any) -> Plan:
    return plan(make_snapshot(nodes, pods, **snapshot), how or policy(), NOW)


def launched(made: Plan) -> list[str]:
    return sorted(each.flavour for each in made.launch)


# Launching.


@pytest.mark.parametrize(
    ("pods", "how", "flavours"),
    [
        pytest.param(bare_pods(22), policy(), ["small"] * 5, id="22 pods take 2.2 cores and 4.3 GiB: no 1 GiB machine"),
        pytest.param(
            bare_pods(22), policy(default_requests=DefaultRequests(0, 0)), ["small"], id="zero switches it off"
        ),
        pytest.param(
            [bare(f"p{i}", cpu="50m") for i in range(10)], policy(), ["small"] * 2, id="each resource by itself: memory"
        ),
        pytest.param(
            [bare(f"p{i}", memory="10Mi") for i in range(20)], policy(), ["small"] * 2, id="each by itself: cpu"
        ),
        pytest.param(
            bare_pods(8),
            policy(default_requests=DefaultRequests(0, 500 * MIB)),
            ["small"] * 4,
            id="what the operator says",
        ),
        pytest.param([make_job(f"p{i}", cpu="0", memory="0") for i in range(22)], policy(), ["small"] * 5, id="batch"),
    ],
)
def test_machines_are_as_large_as_pods_without_requests_may_need(
    pods: list[Pod], how: Policy, flavours: list[str]
) -> None:
    assert launched(planned([], pods, how)) == flavours


def test_what_comes_with_each_node_counts_as_it_states() -> None:
    """Six agents without requests on each node: they would leave no small machine any room."""
    nodes = [make_node("n", "1", "1Gi")]
    agents = [running(bare(f"agent-{i}", owner=Owner("DaemonSet", f"agent-{i}", f"agent-{i}")), "n") for i in range(6)]
    made = planned(nodes, [*agents, running(make_pod("full", "1", "1Gi"), "n"), make_pod("p", "500m", "500Mi")])
    assert launched(made) == ["small"]


# What fits a node that is there.


def test_a_pod_is_bound_to_a_node_that_is_full_by_default_alone() -> None:
    made = planned(
        [owned_node("n", cpu="1", memory="1Gi")], [*bare_pods(20, "n"), bare("p"), make_pod("q", "1", "1Gi")]
    )
    assert {item.pod[8:]: item.node for item in made.bind} == {"p": "n", "q": "n"}
    assert not made.launch


def test_of_two_nodes_the_one_that_is_not_full_by_default_is_taken() -> None:
    nodes = [owned_node(name, cpu="1", memory="1Gi") for name in "ab"]
    made = planned(nodes, [*bare_pods(5, "a"), running(make_pod("x", "500m", "512Mi"), "b"), bare("p")])
    assert {item.pod[8:]: item.node for item in made.bind} == {"p": "b"}


@pytest.mark.parametrize("kind", ["service", "batch"])
def test_pods_go_to_the_machines_that_were_launched_for_them(kind: str) -> None:
    """Two machines for ten pods; the first is Ready. Five wait for the second, though the first would take all."""
    make = make_pod if kind == "service" else make_job
    pods = [make(f"p{i}", cpu="0", memory="0") for i in range(10)]
    node = owned_node("n", flavour="small", cpu="1", memory="1Gi")
    one = node.claim or ""
    first = NodeClaim(one, "any", "small", ClaimState.READY, NOW - 60, NOW - 60, node="n", ready_at=NOW)
    second = NodeClaim("two", "any", "small", ClaimState.REQUESTED, NOW - 60, NOW - 60)
    memory = Memory(
        reservations={pod.key: Reservation(one if i < 5 else "two", NOW - 60) for i, pod in enumerate(pods)}
    )
    made = planned([node], pods, claims=(first, second), memory=memory)
    assert (len(made.bind), len(made.nominate), len(made.launch)) == (5, 5, 0)


def test_a_pod_that_comes_later_does_not_wait_for_a_machine_on_its_way() -> None:
    coming = NodeClaim("two", "any", "small", ClaimState.REQUESTED, NOW - 60, NOW - 60)
    made = planned([owned_node("n", cpu="1", memory="1Gi")], [*bare_pods(20, "n"), bare("p")], claims=(coming,))
    assert {item.pod[8:]: item.node for item in made.bind} == {"p": "n"}


# Draining.


@pytest.mark.parametrize(
    ("there", "how", "drains"),
    [
        pytest.param(8, policy(), False, id="by default the other node is too full"),
        pytest.param(2, policy(), True, id="it has room for the defaults"),
        pytest.param(8, policy(default_requests=DefaultRequests(0, 0)), True, id="by what pods state it has room"),
    ],
)
def test_a_node_is_drained_where_others_have_room_for_the_defaults(there: int, how: Policy, drains: bool) -> None:
    nodes = [owned_node(name, flavour="large", cpu="4", memory="2Gi") for name in "ab"]
    pods = [*bare_pods(there, "a", owner=OWNER), *bare_pods(5, "b", owner=OWNER)]
    long_ago = Memory(underutilized_since=dict.fromkeys("ab", NOW - 9000), queue_empty_since=NOW - 9000)
    made = planned(nodes, pods, how, claims=tuple(map(ready_claim, nodes)), memory=long_ago)
    released = {release.node for each in made.proposals for release in each.releases}
    assert bool(released) == drains
    if not drains:
        why = {keeping.node: keeping for keeping in made.kept}
        assert why["b"].reason is Kept.NO_PLACE_TO_MOVE_PODS
        assert "(100m cpu, 200 Mi memory, by default) fits on no other node" in why["b"].message


# The what-if, and the switch itself.


def test_what_a_cluster_would_cost_counts_the_defaults() -> None:
    nodes = [owned_node("n", flavour="large", cpu="4", memory="8Gi")]
    view = make_snapshot(nodes, bare_pods(3, "n")).cluster
    pods = adopt(view, policy(), NOW).snapshot.cluster.pods
    assert {(pod.requests.cpu_m, pod.requests.memory_bytes) for pod in pods} == {(100, 200 * MIB)}


Placing = st.tuples(st.sampled_from(["", "cpu", "memory", "both"]), st.integers(0, 2), st.booleans())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(Placing, max_size=8))
def test_what_is_free_is_as_before_once_defaults_count_no_more(placings: list[tuple[str, int, bool]]) -> None:
    """Whatever was placed, and where: free is what is offered less what pods state, and less the defaults meanwhile."""
    kinds = {"": ("1", "1Gi"), "cpu": ("0", "1Gi"), "memory": ("1", "0"), "both": ("0", "0")}
    pods = {name: bare(name or "full", *asked) for name, asked in kinds.items()}
    simulated = opened([make_node(f"n{i}", "64", "64Gi") for i in range(3)], pods.values(), policy())
    sim, book = simulated.sim, simulated.book
    begun = sim.table.free.copy()
    with sim.fork():
        for name, row, is_counted in placings:
            cls = book.class_of(pods[name])
            if is_counted:
                with sim.defaults.counted(sim.table):
                    sim.place(cls, row)
            else:
                sim.place(cls, row)
        stated = np.zeros_like(begun)
        for name, row, _ in placings:
            stated[:, row] += book.class_of(pods[name]).asked
        assert (sim.table.free == begun - stated).all()
        with sim.defaults.counted(sim.table):
            lacking = sum(100 for name, row, _ in placings if row == 0 and name in ("cpu", "both"))
            assert sim.table.free[0, 0] == (begun - stated)[0, 0] - lacking
    assert (sim.table.free == begun).all()
    assert not sim.table.missing.any()


@pytest.mark.parametrize(("cores", "is_queued"), [(4, True), (8, False)])
def test_a_pod_that_no_machine_is_launched_for_by_default_requests_is_no_queue(cores: int, is_queued: bool) -> None:
    """Cleaning waits for an empty queue; the largest flavour has 4 cores."""
    group = NodeGroup("any", labels={"disk": "ssd"}, cleaning=EAGER)
    of_disk = bare("web", constraints=constrained(node_selector=(("disk", "ssd"),)))
    made = planned([make_node("n")], [of_disk], policy(group, default_requests=DefaultRequests(cores * 1000, MIB)))
    assert (bool(made.launch), made.memory.queue_empty_since is None) == (is_queued, is_queued)
