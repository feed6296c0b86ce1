"""Laws of the cleaner, over clusters of many shapes."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.moves import MigrationMethod
from htas.model.nodes import SCALE_DOWN_DISABLED
from htas.model.policy import Policy
from htas.model.resources import NOTHING
from htas.model.snapshot import ClusterSnapshot
from tests.builders import budget, owned_node
from tests.unit.planning.cleaning.world import cleaned, job_on, policy_with, quiet_snapshot

LAWFUL = settings(derandomize=True, max_examples=60, deadline=None)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[ClusterSnapshot, Policy]:
    """Up to six nodes with up to four jobs each, that fit; some covered by a budget, some nodes not to be touched."""
    nodes, pods = [], []
    for n in range(draw(st.integers(1, 6))):
        stays = {SCALE_DOWN_DISABLED: "true"} if draw(st.integers(0, 3)) == 0 else {}
        node = owned_node(f"n{n}", flavour=draw(st.sampled_from(["medium", "large"])), annotations=stays)
        nodes.append(node)
        for p, cpu_m in enumerate(draw(st.lists(st.integers(50, 1000), max_size=4))):
            pods.append(
                job_on(
                    node.name,
                    f"p{n}-{p}",
                    f"{cpu_m}m",
                    memory=f"{draw(st.integers(64, 1800))}Mi",
                    left_s=draw(st.sampled_from([5.0, 100.0, 5000.0])),
                    labels={"app": "x"} if draw(st.booleans()) else {},
                )
            )
    rules = {
        "migration": draw(st.sampled_from(MigrationMethod)),
        "utilization_threshold": draw(st.sampled_from([0.3, 0.5, 1.0])),
        "max_nodes_at_once": draw(st.integers(1, 4)),
    }
    policy = policy_with(rules, {"min_nodes": draw(st.integers(0, 2))})
    return quiet_snapshot(nodes, pods, budgets=(budget(draw(st.integers(0, 3)), {"app": "x"}),)), policy


@LAWFUL
@given(clusters())
def test_what_remains_holds_all_work_and_nothing_is_over_committed(world: tuple[ClusterSnapshot, Policy]) -> None:
    snapshot, policy = world
    cleaning = cleaned(snapshot, policy)
    gone = {removing.node for removing in cleaning.remove}
    target = {move.pod: move.target for move in cleaning.migrate}
    assert Counter(move.pod for move in cleaning.migrate).total() == len(target)
    used = {node.name: NOTHING for node in snapshot.cluster.nodes if node.name not in gone}
    for pod in snapshot.cluster.pods:
        where = target.get(pod.key, pod.node)
        assert where is not None
        used[where] += pod.requests  # a pod left on a node that goes, or sent to one, is a KeyError
    for node in snapshot.cluster.nodes:
        assert node.name in gone or used[node.name].fits_in(node.allocatable)


@LAWFUL
@given(clusters())
def test_budgets_sizes_and_numbers_hold(world: tuple[ClusterSnapshot, Policy]) -> None:
    snapshot, policy = world
    cleaning = cleaned(snapshot, policy)
    pods = {pod.key: pod for pod in snapshot.cluster.pods}
    for allowance in snapshot.cluster.budgets:
        assert sum(allowance.covers(pods[move.pod]) for move in cleaning.migrate) <= allowance.disruptions_allowed
    (group,) = policy.groups
    gone = len(cleaning.remove)
    assert gone <= group.cleaning.max_nodes_at_once
    assert gone == 0 or len(snapshot.cluster.nodes) - gone >= group.min_nodes


@LAWFUL
@given(clusters())
def test_only_nodes_that_go_are_emptied_and_each_node_is_accounted_for(world: tuple[ClusterSnapshot, Policy]) -> None:
    snapshot, policy = world
    cleaning = cleaned(snapshot, policy)
    gone = [removing.node for removing in cleaning.remove]
    assert {move.source for move in cleaning.migrate} <= set(gone)
    told = [*gone, *(keeping.node for keeping in cleaning.kept)]
    assert sorted(told) == sorted(node.name for node in snapshot.cluster.nodes)


@LAWFUL
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_makes_no_difference(world: tuple[ClusterSnapshot, Policy], lot: random.Random) -> None:
    snapshot, policy = world
    view = snapshot.cluster
    nodes, pods, claims = list(view.nodes), list(view.pods), list(snapshot.claims)
    for items in (nodes, pods, claims):
        lot.shuffle(items)
    shuffled = msgspec.structs.replace(
        snapshot,
        cluster=msgspec.structs.replace(view, nodes=tuple(nodes), pods=tuple(pods)),
        claims=tuple(claims),
    )
    assert cleaned(shuffled, policy) == cleaned(snapshot, policy)


@LAWFUL
@given(clusters())
def test_the_snapshot_is_left_as_it_was(world: tuple[ClusterSnapshot, Policy]) -> None:
    snapshot, policy = world
    before = msgspec.json.encode(snapshot)
    cleaned(snapshot, policy)
    assert msgspec.json.encode(snapshot) == before
