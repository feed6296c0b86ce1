"""Laws of the planner, on random clusters. A law is judged by plain arithmetic here, not by the planner's own code."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import msgspec
from hypothesis import given, settings

from htas.documents.afterwards import carried_out
from htas.documents.least import least_after
from htas.model.constraints import UNCONSTRAINED
from htas.model.nodes import CLUSTER_LABEL, HOSTNAME_LABEL, ZONE_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.resources import NOTHING, Resources
from htas.model.snapshot import ClusterSnapshot
from htas.planning.planner import plan
from htas.planning.what_if.adopting import adopt
from htas.planning.what_if.arranging import as_it_is
from htas.planning.what_if.bounding import bound_nanos
from htas.planning.what_if.lifting import holding, pinned
from tests.builders import NOW
from tests.laws.strategies import policies, snapshots

Law = settings(max_examples=80, deadline=None, derandomize=True)


def placements(snapshot: ClusterSnapshot, made: Plan) -> dict[str, list[Pod]]:
    """Who is where once the plan is done: on nodes, and on machines bought."""
    pods = {pod.key: pod for pod in snapshot.cluster.pods}
    where = {pod.key: pod.node for pod in pods.values() if pod.node is not None}
    where |= {item.pod: item.node for item in (*made.bind, *made.nominate)}
    where |= {key: item.claim for item in made.launch for key in item.pods}
    where |= {item.pod: item.target for item in made.migrate}
    found = defaultdict(list)
    for key, node in where.items():
        found[node].append(pods[key])
    return found


def offered(snapshot: ClusterSnapshot, policy: Policy, made: Plan) -> dict[str, Resources]:
    room = {node.name: node.allocatable for node in snapshot.cluster.nodes}
    for item in made.launch:
        flavour = policy.catalogue.named(item.flavour)
        assert flavour is not None
        room[item.claim] = snapshot.learned.get(flavour.name, flavour.allocatable)
    return room


def total(pods: list[Pod]) -> Resources:
    used = NOTHING
    for pod in pods:
        used += pod.requests
    return used


@Law
@given(snapshots(), policies())
def test_no_node_is_overcommitted(snapshot: ClusterSnapshot, policy: Policy) -> None:
    made = plan(snapshot, policy, NOW)
    room = offered(snapshot, policy, made)
    for node, pods in placements(snapshot, made).items():
        assert total(pods).fits_in(room[node]), f"{node}: {[pod.key for pod in pods]}"


@Law
@given(snapshots(), policies())
def test_every_waiting_pod_is_placed_once_or_told_why_not(snapshot: ClusterSnapshot, policy: Policy) -> None:
    made = plan(snapshot, policy, NOW)
    told = Counter([item.pod for item in (*made.bind, *made.nominate, *made.unplaced)])
    told.update(key for item in made.launch for key in item.pods)
    assert told == Counter(pod.key for pod in snapshot.cluster.pods if pod.node is None)


@Law
@given(snapshots(), policies())
def test_every_node_is_kept_or_removed_with_a_reason(snapshot: ClusterSnapshot, policy: Policy) -> None:
    made = plan(snapshot, policy, NOW)
    told = Counter([item.node for item in (*made.kept, *made.remove)])
    assert told == Counter(node.name for node in snapshot.cluster.nodes)


@Law
@given(snapshots(), policies())
def test_anti_affinity_and_selectors_hold_afterwards(snapshot: ClusterSnapshot, policy: Policy) -> None:
    made = plan(snapshot, policy, NOW)
    labels = {node.name: dict(node.labels) for node in snapshot.cluster.nodes}
    for item in made.launch:
        labels[item.claim] = {"disk": "ssd", HOSTNAME_LABEL: item.claim, ZONE_LABEL: item.zone or ""}
    moved = {item.pod for item in made.migrate}
    for node, pods in placements(snapshot, made).items():
        for pod in pods:
            if pod.node is not None and pod.key not in moved:
                continue
            assert all(labels[node].get(key) == value for key, value in pod.constraints.node_selector)
            for term in pod.constraints.anti_affinity:
                others = [other for other in pods if other is not pod]
                assert not any(term.selector is not None and term.selector.matches(o.labels) for o in others)


@Law
@given(snapshots(), policies())
def test_disruption_budgets_are_never_exceeded(snapshot: ClusterSnapshot, policy: Policy) -> None:
    made = plan(snapshot, policy, NOW)
    pods = {pod.key: pod for pod in snapshot.cluster.pods}
    for budget in snapshot.cluster.budgets:
        assert sum(budget.covers(pods[item.pod]) for item in made.migrate) <= budget.disruptions_allowed


@Law
@given(snapshots(), policies())
def test_a_removed_node_is_left_by_all_its_pods_and_receives_none(snapshot: ClusterSnapshot, policy: Policy) -> None:
    made = plan(snapshot, policy, NOW)
    gone = {item.node for item in made.remove}
    left = {node for node, pods in placements(snapshot, made).items() if pods}
    assert not gone & left
    assert {item.source for item in made.migrate} <= gone


@Law
@given(snapshots(), policies())
def test_limits_hold(snapshot: ClusterSnapshot, policy: Policy) -> None:
    made = plan(snapshot, policy, NOW)
    owned = sum(CLUSTER_LABEL in node.labels for node in snapshot.cluster.nodes)
    if policy.limits.max_nodes is not None and made.launch:
        assert owned + len(made.launch) <= policy.limits.max_nodes


@Law
@given(snapshots(), policies())
def test_nothing_superfluous_is_bought(snapshot: ClusterSnapshot, policy: Policy) -> None:
    """Dropping any machine bought leaves a pod unplaced: its pods find no room on the others of its group.

    Those that are bought ahead have no pods yet, and are for work that is expected. Plain arithmetic judges pods without constraints, on machines that hold only such pods; largest first, best fit.
    """
    made = plan(snapshot, policy, NOW)
    room, after = offered(snapshot, policy, made), placements(snapshot, made)
    ahead = [item for item in made.launch if not item.pods]
    assert all("expected" in item.why for item in ahead), "a machine without pods"
    bought = [item for item in made.launch if item.pods]
    free = {
        item.claim: room[item.claim] - total(after[item.claim])
        for item in bought
        if all(pod.constraints == UNCONSTRAINED for pod in after[item.claim])
    }
    for item in bought:
        if item.claim in free:
            others = {o.claim: free[o.claim] for o in bought if o.group == item.group and o.claim in free}
            del others[item.claim]
            assert not all_fit(after[item.claim], others), f"{item.claim} is superfluous"


def all_fit(pods: list[Pod], free: dict[str, Resources]) -> bool:
    for pod in sorted(pods, key=lambda pod: (-pod.requests.memory_bytes, -pod.requests.cpu_m)):
        fitting = [claim for claim in free if pod.requests.fits_in(free[claim])]
        if not fitting:
            return False
        best = min(fitting, key=lambda claim: (free[claim].memory_bytes, free[claim].cpu_m))
        free[best] = free[best] - pod.requests
    return True


@Law
@given(snapshots(), policies())
def test_planning_changes_nothing_and_repeats_itself(snapshot: ClusterSnapshot, policy: Policy) -> None:
    before = msgspec.json.encode(snapshot)
    first = plan(snapshot, policy, NOW)
    assert msgspec.json.encode(snapshot) == before
    assert msgspec.json.encode(plan(snapshot, policy, NOW)) == msgspec.json.encode(first)
    again = msgspec.json.decode(before, type=ClusterSnapshot)
    assert plan(again, policy, NOW) == first


@Law
@given(snapshots(), policies())
def test_the_order_of_objects_does_not_matter(snapshot: ClusterSnapshot, policy: Policy) -> None:
    shuffle = random.Random(1)
    view = snapshot.cluster
    nodes, pods = list(view.nodes), list(view.pods)
    shuffle.shuffle(nodes)
    shuffle.shuffle(pods)
    mixed = msgspec.structs.replace(
        snapshot, cluster=msgspec.structs.replace(view, nodes=tuple(nodes), pods=tuple(pods))
    )
    assert plan(mixed, policy, NOW).cost == plan(snapshot, policy, NOW).cost


@Law
@given(snapshots(), policies())
def test_the_bound_is_below_the_cost_of_what_is_paid_for(snapshot: ClusterSnapshot, policy: Policy) -> None:
    """The bound is compared with the cluster that the plan leaves, whose nodes hold the work."""
    made = plan(snapshot, policy, NOW)
    present = adopt(carried_out(snapshot.cluster, made, policy), policy, NOW, as_annotated=True)
    assert bound_nanos(present, pinned(present, holding(present))) <= as_it_is(present).nanos_per_hour
    assert 0 <= least_after(snapshot.cluster, made, policy).nanos <= made.cost.after_nanos


def _others(snapshot: ClusterSnapshot) -> list[Node]:
    """The snapshot's nodes once more, under other names."""
    return [msgspec.structs.replace(node, name=f"{node.name}-again") for node in snapshot.cluster.nodes]
