"""Laws of the bound on lengthened rentals: it takes no room from anybody who gets nothing better for it."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Phase, Pod, WorkKind
from htas.model.policy import Limits, NodeGroup, Policy, Workload
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.machines import machine_node
from htas.planning.cluster.run_length import remaining_s
from htas.planning.planner import plan
from tests.builders import (
    NECTAR,
    NOW,
    batch_group,
    make_job,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

Law = settings(max_examples=60, deadline=None, derandomize=True)
RUNS_S = (30.0, 300.0, 3600.0, 36_000.0)
POLICY = make_policy([NodeGroup("any", Workload.ANY), batch_group()])


@st.composite
def works(draw: Any, name: str) -> Pod:
    """A job of half a minute to ten hours, or now and then a service."""
    fields: dict[str, Any] = {
        "cpu": draw(st.sampled_from(["100m", "1", "3"])),
        "memory": draw(st.sampled_from(["256Mi", "1Gi", "6Gi"])),
        "priority": draw(st.sampled_from([0, 0, 10])),
        "created_at": NOW - draw(st.integers(0, 400)),
    }
    if draw(st.integers(0, 5)):
        return make_job(name, draw(st.sampled_from(RUNS_S)), **fields)
    return make_pod(name, **fields)


@st.composite
def snapshots(draw: Any) -> ClusterSnapshot:
    nodes, pods = [], [draw(works(f"w{i}")) for i in range(draw(st.integers(1, 6)))]
    for i in range(draw(st.integers(0, 4))):
        flavour = draw(st.sampled_from(NECTAR))
        node = owned_node(f"n{i}", draw(st.sampled_from(["any", "batch"])), flavour.name)
        nodes.append(msgspec.structs.replace(node, allocatable=flavour.allocatable))
        room = flavour.allocatable
        for j in range(draw(st.integers(0, 2))):
            pod = draw(works(f"r{i}-{j}"))
            if pod.requests.fits_in(room):
                pods.append(running(pod, node.name, draw(st.integers(0, 200))))
                room = room - pod.requests
    claims = tuple(ready_claim(node, draw(st.integers(200, 7200))) for node in nodes)
    return make_snapshot(nodes, pods, claims=claims)


def decided(made: Plan) -> tuple[object, ...]:
    """What is done about work."""
    return made.bind, made.nominate, made.launch, made.unplaced


def once_free(snapshot: ClusterSnapshot, policy: Policy) -> ClusterSnapshot:
    """The snapshot without the jobs that end within `lookAhead`."""

    def is_ending(pod: Pod) -> bool:
        is_job = pod.node is not None and pod.kind is WorkKind.BATCH
        return is_job and remaining_s(pod, policy, NOW) < policy.look_ahead_s

    pods = tuple(pod for pod in snapshot.cluster.pods if not is_ending(pod))
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=pods))


def unbounded(policy: Policy) -> Policy:
    return msgspec.structs.replace(policy, max_rental_lengthening=None)


@Law
@given(snapshots())
def test_nothing_is_refused_where_nothing_can_be_bought(snapshot: ClusterSnapshot) -> None:
    policy = msgspec.structs.replace(POLICY, limits=Limits(max_nodes=0))
    assert decided(plan(snapshot, policy, NOW)) == decided(plan(snapshot, unbounded(policy), NOW))


@Law
@given(snapshots(), st.sampled_from([None, 1, 2]))
def test_who_would_have_room_has_some_or_a_machine(snapshot: ClusterSnapshot, more: int | None) -> None:
    """With however few machines left to buy: none waits, or is preempted for, for the sake of somebody's bill.

    But for a job that is refused a node, and for which another one frees within `lookAhead`: that room is waited for.
    """
    limits = Limits(max_nodes=None if more is None else len(snapshot.cluster.nodes) + more)
    policy = msgspec.structs.replace(POLICY, limits=limits)
    made, free = plan(snapshot, policy, NOW), plan(snapshot, unbounded(policy), NOW)
    if any(item.reason is Unplaced.CAPACITY_FREES_SOON for item in made.unplaced):
        assert len(plan(once_free(snapshot, policy), policy, NOW).unplaced) <= len(free.unplaced)
    else:
        assert len(made.unplaced) <= len(free.unplaced)
    assert len(made.preempt) <= len(free.preempt)


@Law
@given(snapshots())
def test_services_are_never_refused(snapshot: ClusterSnapshot) -> None:
    pods = tuple(pod for pod in snapshot.cluster.pods if pod.node is not None or pod.kind is WorkKind.SERVICE)
    only = msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=pods))
    assert decided(plan(only, POLICY, NOW)) == decided(plan(only, unbounded(POLICY), NOW))
    made = plan(snapshot, POLICY, NOW, frozenset())
    kinds = {pod.key: pod.kind for pod in snapshot.cluster.pods}
    told = {item.pod for item in made.unplaced if item.reason is Unplaced.OWN_MACHINE_CHEAPER}
    assert all(kinds[pod] is WorkKind.BATCH for pod in told)


@Law
@given(snapshots())
def test_whom_a_machine_was_bought_for_is_placed_once_it_is_there(snapshot: ClusterSnapshot) -> None:
    policy = msgspec.structs.replace(POLICY, look_ahead_s=0.0)
    first = plan(snapshot, policy, NOW)
    second = plan(_come(snapshot, policy, first, []), policy, NOW)
    assert {pod for launch in first.launch for pod in launch.pods} <= {item.pod for item in second.bind}
    assert not second.launch


@Law
@given(snapshots(), snapshots())
def test_who_is_bought_for_anew_has_lost_the_machine_to_others(
    snapshot: ClusterSnapshot, more: ClusterSnapshot
) -> None:
    """Other work comes with the machines, larger or more important: each of them is used before another is bought."""
    policy = msgspec.structs.replace(POLICY, look_ahead_s=0.0)
    first = plan(snapshot, policy, NOW)
    late = [msgspec.structs.replace(p, name=f"late-{p.name}", uid=f"late-{p.uid}") for p in _waiting(more)]
    second = plan(_come(snapshot, policy, first, late), policy, NOW)
    used = {item.node for item in (*second.bind, *second.nominate)}
    own = {pod: launch.claim for launch in first.launch for pod in launch.pods}
    for launch in second.launch:
        assert {own[pod] for pod in launch.pods if pod in own} <= used


def _waiting(snapshot: ClusterSnapshot) -> list[Pod]:
    return [pod for pod in snapshot.cluster.pods if pod.node is None]


def _come(snapshot: ClusterSnapshot, policy: Policy, made: Plan, late: list[Pod]) -> ClusterSnapshot:
    """The machines of a plan are Ready, what it bound runs, and other pods have come."""
    nodes: list[Node] = list(snapshot.cluster.nodes)
    claims = list(snapshot.claims)
    for launch in made.launch:
        group, flavour = policy.group(launch.group), policy.catalogue.named(launch.flavour)
        assert group is not None
        assert flavour is not None
        node = machine_node(policy, group, flavour, launch.zone, launch.claim)
        assert node.labels[HOSTNAME_LABEL] == launch.claim
        nodes.append(node)
        claims.append(NodeClaim(launch.claim, launch.group, launch.flavour, ClaimState.READY, NOW - 60, NOW))
    where = {item.pod: item.node for item in made.bind}
    pods = [
        msgspec.structs.replace(pod, node=where[pod.key], phase=Phase.RUNNING, started_at=NOW)
        if pod.key in where
        else pod
        for pod in snapshot.cluster.pods
    ]
    return make_snapshot(nodes, [*pods, *late], claims=tuple(claims), memory=made.memory, generation=1)
