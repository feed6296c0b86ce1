"""Limits of namespaces on random clusters, judged in fractions and not by the planner's own code."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import NamespaceLimit, Policy
from htas.model.reasons import Unplaced
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot
from htas.planning.planner import plan
from tests.builders import NOW
from tests.laws.strategies import policies, snapshots
from tests.laws.test_planner_laws import offered, placements

Law = settings(max_examples=60, deadline=None, derandomize=True)
NAMESPACES = ("default", "greedy", "quiet")


@st.composite
def tenants(draw: Any) -> ClusterSnapshot:
    """A snapshot whose pods belong to three namespaces."""
    snapshot: ClusterSnapshot = draw(snapshots())
    pods = [msgspec.structs.replace(pod, namespace=draw(st.sampled_from(NAMESPACES))) for pod in snapshot.cluster.pods]
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=tuple(pods)))


def part(pod: Pod, room: Resources) -> Fraction:
    """The greatest share of a resource; a millionth at least."""
    there = room.amounts()
    shares = [
        Fraction(n, there[name]) for name, n in pod.requests.amounts().items() if name != "pods" and there.get(name)
    ]
    return max([Fraction(1, 1_000_000), *shares])


def held_by(namespace: str, snapshot: ClusterSnapshot, policy: Policy, made: Plan) -> Fraction:
    """Cores of machines that were launched, or will be, which a namespace's pods have once the plan is done."""
    room = offered(snapshot, policy, made)
    launched = {node.name for node in snapshot.cluster.nodes if node.cluster == policy.cluster}
    launched |= {item.claim for item in made.launch}
    cores = Fraction(0)
    for name, pods in placements(snapshot, made).items():
        work = [pod for pod in pods if not pod.is_mirror and not pod.is_daemon]
        whole = sum(part(pod, room[name]) for pod in work) if name in launched else 0
        if whole:
            mine = sum((part(pod, room[name]) for pod in work if pod.namespace == namespace), Fraction(0))
            cores += Fraction(room[name].cpu_m, 1000) * mine / whole
    return cores


def in_full(namespace: str, snapshot: ClusterSnapshot, policy: Policy, made: Plan) -> Fraction:
    """Cores of the machines to be launched that have a pod of a namespace on them."""
    room = offered(snapshot, policy, made)
    mine = [item.claim for item in made.launch if any(key.startswith(f"{namespace}/") for key in item.pods)]
    return Fraction(sum(room[claim].cpu_m for claim in mine), 1000)


@Law
@given(tenants(), policies(), st.integers(0, 12), st.sampled_from([("*",), ("greedy",)]))
def test_no_plan_gives_a_namespace_more_than_its_limit(
    snapshot: ClusterSnapshot, policy: Policy, cores: int, names: tuple[str, ...]
) -> None:
    """Neither by launches nor by binds. What runs already may be more: then no plan adds to it."""
    limited = msgspec.structs.replace(policy, namespaces=(NamespaceLimit(names, cores * 1000),))
    made = plan(snapshot, limited, NOW)
    assert not made.failures
    owned = {node.name for node in snapshot.cluster.nodes if node.cluster == policy.cluster}
    on_launched = {item.pod for item in (*made.bind, *made.nominate) if item.node in owned}
    on_launched |= {key for item in made.launch for key in item.pods}
    bound = NAMESPACES if "*" in names else names
    for namespace in {key.partition("/")[0] for key in on_launched} & set(bound):
        before, after = (held_by(namespace, snapshot, limited, each) for each in (Plan(NOW, made.cost), made))
        launched = in_full(namespace, snapshot, limited, made)
        most = Fraction(cores) if launched else max(before, Fraction(cores))
        assert max(after, launched) <= most + Fraction(1, 100)
    told = {item.pod for item in made.unplaced if item.reason is Unplaced.NAMESPACE_LIMIT}
    assert told.isdisjoint({item.pod for item in (*made.bind, *made.nominate)} | on_launched)
    assert {key.partition("/")[0] for key in told} <= set(bound)


@Law
@given(tenants(), policies())
def test_a_namespace_that_may_have_nothing_takes_nothing_from_others(snapshot: ClusterSnapshot, policy: Policy) -> None:
    """Where it runs nothing, the others get what they get where its pending pods are not there at all."""
    pods = [pod for pod in snapshot.cluster.pods if pod.node is None or pod.namespace != "greedy"]
    snapshot = msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=tuple(pods)))
    others = tuple(pod for pod in pods if pod.namespace != "greedy")
    without = msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=others))
    limited = msgspec.structs.replace(policy, namespaces=(NamespaceLimit(("greedy",), 0),))
    made, alone = plan(snapshot, limited, NOW), plan(without, limited, NOW)
    assert (made.launch, made.bind, made.nominate) == (alone.launch, alone.bind, alone.nominate)


@Law
@given(tenants(), policies())
def test_a_limit_that_no_namespace_reaches_changes_nothing(snapshot: ClusterSnapshot, policy: Policy) -> None:
    limited = msgspec.structs.replace(policy, namespaces=(NamespaceLimit(("*",), 10**9, 10**18),))
    assert plan(snapshot, limited, NOW) == plan(snapshot, policy, NOW)
