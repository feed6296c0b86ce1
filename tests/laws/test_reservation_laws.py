"""Laws of reservations, on random machines on their way: no pod waits for a later one, and none is launched twice."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Workload
from htas.model.reservations import Reservation
from htas.model.resources import NOTHING, Resources
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.planner import plan
from tests.builders import NOW, make_flavour, make_pod, make_policy, make_snapshot, owned_node

Law = settings(max_examples=150, deadline=None, derandomize=True)
FLAVOURS = {
    "half": make_flavour("half", "500m", "1Gi", "0.06"),
    "roomy": make_flavour("roomy", "500m", "3Gi", "0.08"),
    "one": make_flavour("one", "1", "2Gi", "0.1"),
    "two": make_flavour("two", "2", "4Gi", "0.19"),
}
POLICY = make_policy([NodeGroup("any", Workload.ANY)], FLAVOURS.values())
REQUESTED = [NOW - 60 + later for later in (-30, 0, 1, 6, 10, 11, 16, 30)]
SIZES = [
    ("250m", "512Mi"),
    ("500m", "512Mi"),
    ("250m", "1Gi"),
    ("500m", "1Gi"),
    ("1", "1Gi"),
    ("1", "2Gi"),
    ("2", "4Gi"),
]


@st.composite
def in_flight(draw: Any) -> ClusterSnapshot:
    """Machines, the first of them perhaps just Ready, pods that reserved room there, and some that came since."""
    claims, nodes = list[NodeClaim](), list[Node]()
    for i in range(draw(st.integers(2, 4))):
        name, asked, flavour = f"m{i}", draw(st.sampled_from(REQUESTED)), draw(st.sampled_from(list(FLAVOURS)))
        is_ready = not i and draw(st.booleans())
        state = ClaimState.READY if is_ready else ClaimState.REQUESTED
        claims.append(NodeClaim(name, "any", flavour, state, asked, NOW - 1))
        if is_ready:
            room = FLAVOURS[flavour].allocatable
            nodes.append(owned_node(name, flavour=flavour, cpu=f"{room.cpu_m}m", memory=str(room.memory_bytes)))
    used, pods, reserved = defaultdict[str, Resources](lambda: NOTHING), list[Pod](), dict[str, Reservation]()
    for i in range(draw(st.integers(1, 8))):
        cpu, memory = draw(st.sampled_from(SIZES))
        claim = draw(st.sampled_from([None, *claims]))
        pod = make_pod(f"p{i}", cpu, memory, created_at=NOW - (100 - i if claim is not None else 0))
        pods.append(pod)
        if claim is not None and (used[claim.id] + pod.requests).fits_in(FLAVOURS[claim.flavour].allocatable):
            used[claim.id] += pod.requests
            reserved[pod.key] = Reservation(claim.id, NOW - 50)
    return make_snapshot(nodes, pods, claims=tuple(claims), memory=Memory(reservations=reserved))


def is_anybody_later(snapshot: ClusterSnapshot, made: Plan) -> bool:
    """Whether a pod waits for a later machine than it reserved; pods of one size may change places."""
    asked = {claim.id: claim.created_at for claim in snapshot.claims}
    there = {claim.id for claim in snapshot.claims if not claim.is_coming}
    where = {item.pod: item.node for item in made.bind} | {item.pod: item.node for item in made.nominate}
    owed, have = defaultdict[Resources, list[float]](list), defaultdict[Resources, list[float]](list)
    for pod in snapshot.cluster.pods:
        known, node = snapshot.memory.reservations.get(pod.key), where.get(pod.key, "")
        if known is not None:
            owed[pod.requests].append(asked[known.claim])
        have[pod.requests].append(0.0 if node in there else asked.get(node, NOW))
    return any(
        got > reserved for size in owed for got, reserved in zip(sorted(have[size]), sorted(owed[size]), strict=False)
    )


@Law
@given(in_flight())
def test_no_pod_waits_for_a_later_machine_than_it_reserved(snapshot: ClusterSnapshot) -> None:
    assert not is_anybody_later(snapshot, plan(snapshot, POLICY, NOW))


@Law
@given(in_flight())
def test_nothing_is_launched_where_all_pods_have_reservations(snapshot: ClusterSnapshot) -> None:
    reserved = [pod for pod in snapshot.cluster.pods if pod.key in snapshot.memory.reservations]
    alone = make_snapshot(snapshot.cluster.nodes, reserved, claims=snapshot.claims, memory=snapshot.memory)
    assert not plan(alone, POLICY, NOW).launch
