"""Sets of nodes replaced by cheaper sets, in the sandbox: what is saved, and what must not happen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.moves import MigrationMethod
from htas.model.outcomes import Action
from htas.model.pods import MAY_MIGRATE
from htas.model.policy import CleaningRules, Consolidation, NodeGroup, Policy
from htas.model.resources import Resources
from htas.model.snapshot import Memory
from htas.planning.planner import plan
from htas.sandbox.workload import Arrival, Budget, Workload
from tests.builders import NOW, labels_are, make_flavour, make_pod, make_policy, make_snapshot, owned_node, ready_claim
from tests.builders import running as running_pod
from tests.stories.play import GIB, Story, job, service

MOVES = {"htas.io/migrate": "true"}
LARGE, DOUBLE = make_flavour("large", "8", "16Gi", "0.40"), make_flavour("large", "8", "16Gi", "0.80")
DEAR, CHEAP = make_flavour("small", "2", "4Gi", "0.20"), make_flavour("small", "2", "4Gi", "0.04")
"""Four small machines hold what a large one holds; they cost twice as much at first, and then two fifths of it."""


def policy(**consolidation: Any) -> Policy:
    rules = CleaningRules(
        underutilized_for_s=60,
        queue_empty_for_s=60,
        utilization_threshold=0.3,
        consolidation=Consolidation(**{"enabled": True, "after_s": 600.0, "cool_down_s": 600.0, **consolidation}),
    )
    return make_policy([NodeGroup("any", cleaning=rules)], (LARGE, DEAR))


def play(story: Story, until_s: float = 6 * 3600) -> Story:
    """Two large machines are bought and filled; then small ones become cheap."""
    story.play(600)
    assert [node.flavour for node in story.world.cluster.observe().nodes] == ["large", "large"]
    cheaper(story)
    return story.play(until_s)


def cheaper(story: Story) -> None:
    catalogue = msgspec.structs.replace(story.policy.catalogue, flavours=(LARGE, CHEAP))
    story.policy = msgspec.structs.replace(story.policy, catalogue=catalogue)
    story.daemon.adopt(story.policy)


def replicas(count: int = 32, **task: Any) -> Arrival:
    return service("web", count, **{"disruption": {"htas.io/migrate": "true"}, **task})


def running(story: Story) -> list[str]:
    pods = story.world.cluster.observe().pods
    return [pod.key for pod in pods if pod.started_at is not None and not pod.is_terminating]


def removals(story: Story) -> list[str]:
    return [item.reason.value for result in story.seen for item in result.plan.remove]


def replacements(story: Story) -> list[str]:
    return [item.flavour for result in story.seen for item in result.plan.launches if item.replaces]


def test_two_machines_become_eight_that_cost_less() -> None:
    """A single replacement, which is all that Karpenter allows, saves nothing: no one machine is cheaper than a large."""
    story = play(Story(policy(), replicas()))
    assert replacements(story) == ["small"] * 8
    assert removals(story) == ["Consolidated"] * 2
    assert [node.flavour for node in story.world.cluster.observe().nodes] == ["small"] * 8
    assert len(running(story)) == 32
    story.assert_whole()


@pytest.mark.parametrize(
    ("runtime", "method", "bought"),
    [
        pytest.param("containerd://2.3.1", MigrationMethod.KUBELET_CHECKPOINT, ["small"] * 8, id="what restores"),
        pytest.param("containerd://2.4.0", MigrationMethod.KUBELET_CHECKPOINT, [], id="what only checkpoints"),
        pytest.param("", MigrationMethod.CHECKPOINT, ["small"] * 8, id="by the provider's own means"),
    ],
)
def test_replacements_restore_what_the_nodes_of_their_group_do(
    runtime: str, method: MigrationMethod, bought: list[str]
) -> None:
    """A plan of one moment: nothing is known of machines that are still to be bought but whose image they will have."""
    there = [owned_node(f"n{i}", flavour="large", cpu="8", memory="16Gi", runtime=runtime) for i in range(2)]
    pods = [running_pod(make_pod(f"web-{i}", "500m", "1Gi", disruption=MOVES), f"n{i % 2}", 3600.0) for i in range(32)]
    [group] = policy().groups
    group = msgspec.structs.replace(group, cleaning=msgspec.structs.replace(group.cleaning, migration=method))
    snapshot = make_snapshot(
        there, pods, claims=tuple(ready_claim(node) for node in there), memory=Memory(queue_empty_since=NOW - 3600)
    )
    made = plan(snapshot, make_policy([group], (LARGE, CHEAP)), NOW)
    assert [launch.flavour for launch in made.launches] == bought


def test_replacements_are_ready_before_anything_is_emptied() -> None:
    story = Story(policy(), replicas())
    play(story)
    for result in story.seen:
        if any(item.reason.value == "Consolidated" for item in result.plan.remove):
            ready = [claim for claim in result.snapshot.claims if claim.replaces]
            assert len(ready) == 8
            assert {claim.state.value for claim in ready} == {"Ready"}


def test_budgets_hold_while_nodes_are_replaced() -> None:
    """Sixteen may be away at once: one large machine at a time is replaced, not both."""
    story = Story(policy(ratio=0.2), replicas())
    story.world.load(Workload("budget", (), (), (), (Budget("default", "web", labels_are(app="web"), 16),)))
    play(story, 700)
    fewest = 99
    for at_s in range(700, 3 * 3600, 10):
        story.play(at_s)
        fewest = min(fewest, len(running(story)))
    assert fewest >= 16
    assert removals(story) == ["Consolidated"] * 2
    story.assert_whole()


def test_a_quiet_cluster_does_not_flap() -> None:
    """A day on: what was replaced once is not replaced again, and no machine comes or goes."""
    story = play(Story(policy(), replicas()), 3 * 3600)
    bills = len(story.store.bills())
    assert bills == 10
    story.play(30 * 3600)
    assert len(story.store.bills()) == bills
    story.assert_whole()


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        pytest.param({"enabled": False}, {}, id="it is off"),
        pytest.param({"min_saving": 0.7}, {}, id="it saves too little"),
        pytest.param({"ratio": 0.7}, {}, id="it disturbs too many for what it saves"),
        pytest.param({"after_s": 1e6}, {}, id="the nodes are young"),
        pytest.param({}, {"disruption": {"htas.io/do-not-disrupt": "true"}}, id="pods that must not be disturbed"),
        pytest.param({}, {"disruption": {}}, id="services that have not opted in"),
    ],
)
def test_nothing_is_replaced(settings: dict[str, Any], task: dict[str, Any]) -> None:
    story = play(Story(policy(**settings), replicas(**task)), 3 * 3600)
    assert not replacements(story)
    assert len(story.store.bills()) == 2
    story.assert_whole()


def test_a_daemon_that_dies_in_between_goes_on_where_it_was() -> None:
    """The claims tell what is being replaced."""
    story = Story(policy(), replicas())
    play(story, 700)
    for at_s in range(700, 7200, 10):
        story.play(at_s)
        if any(claim.replaces for claim in story.store.claims()):
            break
    story.crash()
    story.play(4 * 3600)
    assert removals(story) == ["Consolidated"] * 2
    assert len(story.store.bills()) == 10
    story.assert_whole()


def test_replacements_that_are_not_needed_any_more_go_again() -> None:
    """Pods that may not be disturbed from now on hold the old nodes: the new ones wait a while, empty, and are released."""
    story = Story(policy(), replicas())
    play(story, 700)
    for at_s in range(700, 7200, 10):
        story.play(at_s)
        if any(claim.replaces for claim in story.store.claims()):
            break
    story.world.load(Workload("budget", (), (), (), (Budget("default", "web", labels_are(app="web"), 32),)))
    story.play(3 * 3600)
    flavours = [node.flavour for node in story.world.cluster.observe().nodes]
    assert flavours == ["large", "large"]
    assert len(running(story)) == 32
    story.assert_whole()


@pytest.mark.parametrize("consolidates", [False, True], ids=["nodes are emptied alone", "sets are replaced too"])
def test_a_service_that_may_be_moved_costs_no_more_than_one_that_may_not(consolidates: bool) -> None:
    """It was moved to where a job of ten minutes ran, on a machine four times as dear, and held that for ever."""
    flavours = make_flavour("small", "2", "4Gi", "0.20"), make_flavour("large", "8", "16Gi", "0.80")
    rules = CleaningRules(consolidation=Consolidation(enabled=consolidates))
    policy = make_policy([NodeGroup("any", cleaning=rules)], flavours)
    bills = []
    for wishes in ({}, {MAY_MIGRATE: "true"}):
        web = service("web", 1, requests=Resources(200, GIB // 2, 0, 1), disruption=wishes)
        story = Story(policy, web, job("big", 200.0, 700.0, 6000, 10.0)).play(2 * 3600)
        bills.append(story.world.ledger.nano_seconds(policy.catalogue.billing, story.world.clock.now()))
    assert bills[1] <= bills[0]


@pytest.mark.parametrize(
    ("stated_s", "evicted", "bought"),
    [
        pytest.param(None, [], ["large"], id="nobody knows how long it runs: the replacement is released unused"),
        pytest.param(4000.0, ["late-1", "long-1"], ["small"], id="it states its run"),
    ],
)
def test_a_job_that_comes_while_the_replacement_starts_begins_again_only_where_its_end_is_known(
    stated_s: float | None, evicted: list[str], bought: list[str]
) -> None:
    """It was placed on the node that goes, and evicted a minute later by what had been agreed about the others."""
    rules = CleaningRules(migration=MigrationMethod.EVICT, consolidation=Consolidation(enabled=True))
    by = make_policy([NodeGroup("any", cleaning=rules)], (make_flavour("small", "2", "4Gi", "0.10"), DOUBLE))
    arrivals = (job("big", 0.0, 600.0, 6000, 10.0), job("long", 0.0, 20 * 3600.0, 800, 1.0))
    story = Story(by, *arrivals, startup_s=120.0).play(700)
    ordered_s = 700
    while not any(claim.replaces for claim in story.store.claims()):
        assert ordered_s < 7200, "no replacement is launched"
        ordered_s += 10
        story.play(ordered_s)
    story.world.load(Workload("late", (job("late", 10.0, 4000.0, 300, 1.0, stated_s=stated_s),)))
    story.play(ordered_s + 60)
    [large] = [node.name for node in story.world.cluster.observe().nodes]
    assert {pod.name: pod.node for pod in story.world.cluster.observe().pods} == {"long-1": large, "late-1": large}
    story.play(ordered_s + 1800)
    told = [o for result in story.seen for o in result.outcomes if o.action is Action.EVICT]
    assert sorted(outcome.subject.removeprefix("default/") for outcome in told) == evicted
    assert [node.flavour for node in story.world.cluster.observe().nodes] == bought
    story.assert_whole()
