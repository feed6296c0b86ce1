"""Laws of promises, on random machines on their way: nobody waits for a later one, nothing is bought for that alone."""

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
from htas.model.resources import NOTHING, Resources
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.place.promises import AS_SOON_S
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
    """Machines, the first of them perhaps just Ready and none late then, pods that were promised room there, and some
    that came since."""
    claims, nodes, times = list[NodeClaim](), list[Node](), REQUESTED
    for i in range(draw(st.integers(2, 4))):
        name, asked, flavour = f"m{i}", draw(st.sampled_from(times)), draw(st.sampled_from(list(FLAVOURS)))
        is_ready = not i and draw(st.booleans())
        state = ClaimState.READY if is_ready else ClaimState.REQUESTED
        claims.append(NodeClaim(name, "any", flavour, state, asked, NOW - 1))
        if is_ready:
            times = [time for time in times if time >= asked - AS_SOON_S]
            room = FLAVOURS[flavour].allocatable
            nodes.append(owned_node(name, flavour=flavour, cpu=f"{room.cpu_m}m", memory=str(room.memory_bytes)))
    used, pods, promised = defaultdict[str, Resources](lambda: NOTHING), list[Pod](), dict[str, str]()
    for i in range(draw(st.integers(1, 8))):
        cpu, memory = draw(st.sampled_from(SIZES))
        claim = draw(st.sampled_from([None, *claims]))
        pod = make_pod(f"p{i}", cpu, memory, created_at=NOW - (100 - i if claim is not None else 0))
        pods.append(pod)
        if claim is not None and (used[claim.id] + pod.requests).fits_in(FLAVOURS[claim.flavour].allocatable):
            used[claim.id] += pod.requests
            promised[pod.key] = claim.id
    return make_snapshot(nodes, pods, claims=tuple(claims), memory=Memory(promised=promised))


def is_anybody_later(snapshot: ClusterSnapshot, made: Plan) -> bool:
    """Whether somebody waits for a later machine than the one promised; pods of one size may change places."""
    asked = {claim.id: claim.created_at for claim in snapshot.claims}
    there = {claim.id for claim in snapshot.claims if not claim.is_coming}
    where = {item.pod: item.node for item in made.bind} | {item.pod: item.node for item in made.nominate}
    owed, have = defaultdict[Resources, list[float]](list), defaultdict[Resources, list[float]](list)
    for pod in snapshot.cluster.pods:
        claim, node = snapshot.memory.promised.get(pod.key), where.get(pod.key, "")
        if claim is not None:
            owed[pod.requests].append(asked[claim])
        have[pod.requests].append(0.0 if node in there else asked.get(node, NOW))
    return any(
        got > promised + AS_SOON_S
        for size in owed
        for got, promised in zip(sorted(have[size]), sorted(owed[size]), strict=False)
    )


@Law
@given(in_flight())
def test_nobody_who_was_promised_a_machine_waits_for_a_later_one(snapshot: ClusterSnapshot) -> None:
    assert not is_anybody_later(snapshot, plan(snapshot, POLICY, NOW))


@Law
@given(in_flight())
def test_nothing_is_bought_that_without_promises_would_not_be(snapshot: ClusterSnapshot) -> None:
    """Where without them all have room, and nobody's comes later than promised."""
    free = make_snapshot(snapshot.cluster.nodes, snapshot.cluster.pods, claims=snapshot.claims)
    usual = plan(free, POLICY, NOW)
    if not usual.launch and not is_anybody_later(snapshot, usual):
        assert not plan(snapshot, POLICY, NOW).launch
