"""Limits of namespaces on random clusters, judged in fractions and not by the planner's own code."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import NamespaceLimit, Policy
from htas.model.reasons import Unplaced
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot
from htas.planning.namespaces import pins
from htas.planning.planner import plan
from tests.builders import NOW
from tests.laws.strategies import policies, snapshots
from tests.laws.test_planner_laws import offered, placements

Law = settings(max_examples=60, deadline=None, derandomize=True)


def part(pod: Pod, room: Resources) -> Fraction:
    """The greatest share of a resource; a millionth at least."""
    there = room.amounts()
    shares = [
        Fraction(n, there[name]) for name, n in pod.requests.amounts().items() if name != "pods" and there.get(name)
    ]
    return max([Fraction(1, 1_000_000), *shares])


def held_by(namespace: str, snapshot: ClusterSnapshot, policy: Policy, made: Plan) -> Fraction:
    """Cores of machines that were bought, or will be, which a namespace's pods have once the plan is done."""
    room = offered(snapshot, policy, made)
    bought = {node.name for node in snapshot.cluster.nodes if node.cluster == policy.cluster}
    bought |= {item.claim for item in made.launch}
    cores = Fraction(0)
    for name, pods in placements(snapshot, made).items():
        work = [pod for pod in pods if not pod.is_mirror and not pod.is_daemon]
        whole = sum(part(pod, room[name]) for pod in work) if name in bought else 0
        if whole:
            mine = sum((part(pod, room[name]) for pod in work if pod.namespace == namespace), Fraction(0))
            cores += Fraction(room[name].cpu_m, 1000) * mine / whole
    return cores


@Law
@given(snapshots(), policies(), st.integers(0, 12))
def test_no_plan_gives_a_namespace_more_than_its_limit(snapshot: ClusterSnapshot, policy: Policy, cores: int) -> None:
    """What runs already may be more: then nothing is added to it."""
    limited = msgspec.structs.replace(policy, namespaces=(NamespaceLimit(("*",), cores * 1000),))
    made = plan(snapshot, limited, NOW)
    given_room = {item.pod for item in (*made.bind, *made.nominate)} | {
        key for item in made.launch for key in item.pods
    }
    owned = {node.name for node in snapshot.cluster.nodes if node.cluster == policy.cluster}
    on_bought = {item.pod for item in (*made.bind, *made.nominate) if item.node in owned}
    on_bought |= {key for item in made.launch for key in item.pods}
    by_namespace: dict[str, set[str]] = defaultdict(set)
    for key in on_bought:
        by_namespace[key.partition("/")[0]].add(key)
    for namespace in by_namespace:
        assert held_by(namespace, snapshot, limited, made) <= cores + Fraction(1, 100)
    told = {item.pod for item in made.unplaced if item.reason is Unplaced.NAMESPACE_LIMIT}
    assert not told & given_room


@Law
@given(snapshots(), policies())
def test_a_limit_that_nobody_reaches_changes_nothing(snapshot: ClusterSnapshot, policy: Policy) -> None:
    limited = msgspec.structs.replace(policy, namespaces=(NamespaceLimit(("*",), 10**9, 10**18),))
    assert plan(snapshot, limited, NOW) == plan(snapshot, policy, NOW)


@Law
@given(snapshots(), policies(), st.integers(0, 3), st.integers(0, 4000))
def test_pins_are_passed_over_once_and_never_those_of_others(
    snapshot: ClusterSnapshot, policy: Policy, most: int, pinned_for: int
) -> None:
    """Judged on the pods themselves: as many of the oldest as allowed are left as they are, others' all."""
    limit = NamespaceLimit(("default",), max_pins=most, pinned_for_s=float(pinned_for))
    limited = msgspec.structs.replace(policy, namespaces=(limit,))
    before = pins.pins(snapshot.cluster, limited, NOW)
    seen = pins.within_limits(snapshot.cluster, limited, NOW)
    after = {pin.pod.uid for pin in pins.pins(seen, limited, NOW)}
    mine = [pin for pin in before if pin.pod.namespace == "default" and NOW - pin.pod.since <= pinned_for]
    assert {pin.pod.uid for pin in mine[:most]} == {uid for uid in after if uid in {p.pod.uid for p in mine}}
    assert {pin.pod.uid for pin in before if pin.pod.namespace != "default"} <= after
    assert pins.within_limits(seen, limited, NOW) == seen
    unlimited = msgspec.structs.replace(policy, namespaces=(NamespaceLimit(("*",), 1000),))
    assert pins.within_limits(snapshot.cluster, unlimited, NOW) is snapshot.cluster
