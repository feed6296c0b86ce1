"""Stories of the edge: it is filled first, the rest goes to the cloud, and what frees is filled again by moving."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from htas.model.disruptions import rearrangement_of
from htas.model.edge import EdgePolicy, Tier
from htas.model.nodes import DO_NOT_DISRUPT, GROUP_LABEL, Node
from htas.model.pods import MAY_MIGRATE, Phase, Pod
from htas.model.policy import CleaningRules, Limits, NodeGroup, Policy
from htas.model.reasons import Kept, OutcomeReason
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, Budget, Rescale, Workload
from tests.builders import labels_are, make_node, make_pod, make_policy
from tests.stories.play import GIB, Story, job, service

MOVABLE = {MAY_MIGRATE: "true"}
AT_ONCE = EdgePolicy(settle_s=0.0)
"""Who waits for nothing: most stories are of what is moved, and not of when."""
CLEANING = CleaningRules(underutilized_for_s=60.0, queue_empty_for_s=0.0)


def web(name: str, replicas: int, at_s: float = 0.0, cpu_m: int = 1000, **task: Any) -> Arrival:
    """A service whose pods ask for a core and 1 GiB, and may be moved."""
    return service(name, replicas, at_s, **{"requests": Resources(cpu_m, GIB, 0, 1), "disruption": MOVABLE, **task})


def near(*names: str, cpu: str = "2", **fields: Any) -> list[Node]:
    return [make_node(name, cpu, labels={GROUP_LABEL: "near"}, **fields) for name in names]


def policy(edge: EdgePolicy | None = None, **fields: Any) -> Policy:
    groups = [NodeGroup("near", tier=Tier.EDGE, is_elastic=False), NodeGroup("cloud", cleaning=CLEANING)]
    return make_policy(groups, edge=edge or AT_ONCE, **fields)


class Shop(Story):
    """Fixed edge nodes and a cloud that is bought."""

    def __init__(
        self, there: Iterable[Node], *arrivals: Arrival, budgets: Iterable[Budget] = (), **fields: Any
    ) -> None:
        super().__init__(policy(**fields), startup_s=20.0)
        self.world.add_nodes(there)
        self.world.load(Workload("shop", arrivals, budgets=tuple(budgets)))

    def pods(self, of: str = "") -> list[Pod]:
        found = self.world.cluster.observe().pods
        return [pod for pod in found if pod.name.startswith(of) and not pod.is_terminating]

    def ratio(self, of: str) -> tuple[int, int]:
        """How many pods of a service run on the edge, and how many there are."""
        edge = {node.name for node in self.world.cluster.observe().nodes if self.policy.tier_of(node) is Tier.EDGE}
        pods = self.pods(of)
        return sum(pod.node in edge for pod in pods), len(pods)

    def rescale(self, name: str, replicas: int) -> None:
        self.world.cluster.rescale(Rescale(0.0, "default", name, replicas))

    def told(self, verb: str) -> list[str]:
        return [o.message for result in self.seen for o in result.outcomes if o.action == verb]

    def all_run(self) -> bool:
        return all(pod.phase is Phase.RUNNING for pod in self.pods())


def test_the_edge_is_filled_first_and_the_rest_is_bought_for() -> None:
    story = Shop(near("e1", "e2"), web("web", 6)).play(40)
    assert (story.ratio("web"), story.all_run()) == ((4, 6), True)
    assert story.world.ledger.evictions == 0
    story.assert_whole()


def test_services_that_can_meet_their_targets_do() -> None:
    """Three places: all of `all`, which wants both its pods near, and one of `some`, which wants a third of them."""
    story = Shop(near("e1", cpu="3"), web("all", 2), web("some", 3, qos=0.33)).play(40)
    assert (story.ratio("all"), story.ratio("some")) == ((2, 2), (1, 3))


def test_a_label_on_a_node_wins_over_its_group() -> None:
    far = make_node("far", "2", labels={GROUP_LABEL: "near", "htas.io/tier": "cloud"})
    story = Shop([make_node("alone", "2", labels={"htas.io/tier": "edge"}), far], web("web", 2)).play(10)
    assert {pod.node for pod in story.pods()} == {"alone"}


def test_batch_work_takes_the_edge_last() -> None:
    fixed = make_node("fixed", "1")
    story = Shop([*near("e1"), fixed], job("first", runs_s=600, cpu_m=1000), job("second", at_s=5, cpu_m=1000)).play(10)
    assert {pod.name: pod.node for pod in story.pods()} == {"first-1": "fixed", "second-1": "e1"}


def test_more_important_services_have_the_edge_first() -> None:
    story = Shop(near("e1", cpu="1"), web("low", 1), web("high", 1, priority=10)).play(40)
    assert (story.ratio("high"), story.ratio("low")) == ((1, 1), (0, 1))


def test_pods_come_back_when_the_edge_frees_and_the_cloud_is_given_back() -> None:
    story = Shop(near("e1", "e2"), web("web", 3), web("api", 3, at_s=1)).play(50)
    assert (story.ratio("web"), story.ratio("api")) == ((3, 3), (1, 3))
    story.rescale("web", 1)
    story.play(400)
    assert (story.ratio("web"), story.ratio("api"), story.all_run()) == ((1, 1), (3, 3), True)
    assert story.told("suggest") == ["1 pod moves for the edge's sake, 1 pod moves in all"] * 2
    assert [message.partition(" in ")[0] for message in story.told("suggested")] == ["0 placed, 1 moved, 0 evicted"] * 2
    assert (story.world.ledger.evictions, sorted(story.nodes)) == (2, ["e1", "e2"])
    assert rearrangement_of(story.store.disruptions()) is None
    story.assert_whole()


def test_a_pod_leaves_the_edge_where_another_service_gains_more() -> None:
    """`some` has twice what it wants near; one pod of it makes room for the one that `all` lacks."""
    fixed = make_node("fixed", "4")
    story = Shop([*near("e1"), fixed], web("some", 2, qos=0.5), web("all", 1, at_s=20)).play(300)
    assert (story.ratio("some"), story.ratio("all"), story.all_run()) == ((1, 2), (1, 1), True)
    assert story.told("suggest") == ["1 pod moves for the edge's sake, 2 pods move in all"]
    assert story.world.ledger.evictions == 2


def test_nobody_leaves_the_edge_for_less_important_work() -> None:
    fixed = make_node("fixed", "4")
    story = Shop([*near("e1"), fixed], web("some", 2, qos=0.5, priority=10), web("all", 1, at_s=20)).play(300)
    assert (story.ratio("some"), story.ratio("all"), story.told("suggest")) == ((2, 2), (0, 1), [])


@pytest.mark.parametrize(
    ("task", "edge"),
    [
        pytest.param({"disruption": {}}, AT_ONCE, id="it has not opted in"),
        pytest.param({"disruption": {**MOVABLE, DO_NOT_DISRUPT: "true"}}, AT_ONCE, id="it is not to be disrupted"),
        pytest.param({}, EdgePolicy(cloud_to_edge_moves=0, reorder_moves=0, settle_s=0.0), id="no moves at all"),
    ],
)
def test_what_may_not_be_moved_stays_in_the_cloud(task: dict[str, Any], edge: EdgePolicy) -> None:
    story = Shop(near("e1"), web("web", 2), web("api", 1, at_s=1, **task), edge=edge).play(50)
    story.rescale("web", 1)
    story.play(400)
    assert (story.ratio("api"), story.told("suggest"), story.world.ledger.evictions) == ((0, 1), [], 0)


def test_no_more_move_in_a_period_than_configured_or_than_a_budget_allows() -> None:
    budget = Budget("default", "api", labels_are(app="api"), 2)
    story = Shop(near("e1", cpu="3"), web("web", 3), web("api", 3, at_s=1), budgets=[budget]).play(50)
    story.rescale("web", 0)
    story.play(400)
    assert story.ratio("api") == (3, 3)
    assert story.told("suggest") == ["1 pod moves for the edge's sake, 1 pod moves in all"] * 3
    budget = msgspec.structs.replace(budget, min_available=0)
    few = Shop(
        near("e1", cpu="3"),
        web("web", 3),
        web("api", 3, at_s=1),
        edge=EdgePolicy(cloud_to_edge_moves=2, settle_s=0.0),
        budgets=[budget],
    )
    few.play(50)
    few.rescale("web", 0)
    few.play(400)
    assert (few.ratio("api"), [message[:6] for message in few.told("suggest")]) == ((3, 3), ["2 pods", "1 pod "])


def under_way() -> Shop:
    """A pod of `api`, which has two, leaves the cloud for the edge; its replacement is not there yet."""
    story = Shop(near("e1", "e2"), web("web", 4), web("api", 2, at_s=1)).play(50)
    story.rescale("web", 2)
    instant = 50.0
    while rearrangement_of(story.store.disruptions()) is None:
        instant += 0.5
        story.play(instant)
    return story


def test_a_foreign_pod_in_the_room_of_a_step_cancels_the_whole_and_nothing_is_lost() -> None:
    story = under_way()
    current = rearrangement_of(story.store.disruptions())
    assert current is not None
    taken = current.slots[0].node
    foreign = msgspec.structs.replace(
        make_pod("foreign", "1", owner=None), node=taken, scheduler="other", created_at=story.world.clock.now()
    )
    story.world.cluster.add_pod(foreign)
    story.play(100)
    cancelled = story.told("cancel-suggestion")
    assert [message.partition(":")[0] for message in cancelled] == [OutcomeReason.ROOM_TAKEN.value]
    story.play(400)
    assert (story.ratio("api")[1], story.ratio("web")) == (2, (2, 2))
    assert story.all_run() or [pod.name for pod in story.pods() if pod.phase is not Phase.RUNNING] == ["foreign"]
    story.assert_whole()


def test_a_pod_that_somebody_else_binds_cancels_the_whole() -> None:
    story = under_way()
    story.world.add_nodes([make_node("elsewhere", "1")])
    now = story.world.clock.now() - story.start
    waiting: list[Pod] = []
    while not waiting:
        now += 0.1
        story.world.advance_to(story.start + now)
        waiting = [pod for pod in story.pods("api") if pod.node is None]
    story.world.cluster.bind(waiting[0], "elsewhere")
    story.play(now + 20)
    cancelled = story.told("cancel-suggestion")
    assert [message.partition(":")[0] for message in cancelled] == [OutcomeReason.CONTRADICTED.value]
    story.play(400)
    assert (story.all_run(), story.ratio("api")[1], rearrangement_of(story.store.disruptions())) == (True, 2, None)
    story.assert_whole()


def test_a_service_that_is_scaled_away_cancels_the_whole() -> None:
    story = under_way()
    story.rescale("api", 1)
    story.play(story.world.clock.now() - story.start + 90)
    cancelled = story.told("cancel-suggestion")
    assert [message.partition(":")[0] for message in cancelled] == [OutcomeReason.CONTRADICTED.value]
    story.play(400)
    assert (story.ratio("api"), story.all_run(), rearrangement_of(story.store.disruptions())) == ((1, 1), True, None)
    story.assert_whole()


def test_a_daemon_that_dies_in_the_middle_is_gone_on_from() -> None:
    story = under_way()
    story.crash()
    story.play(400)
    assert (story.ratio("web"), story.ratio("api"), story.all_run()) == ((2, 2), (2, 2), True)
    assert story.world.ledger.evictions == 2
    assert rearrangement_of(story.store.disruptions()) is None
    story.assert_whole()


def test_an_edge_group_is_neither_bought_nor_given_back_unless_elastic() -> None:
    claimed = Shop((), web("web", 2), limits=Limits(max_nodes=4)).play(60)
    assert {claim.group for claim in claimed.store.claims()} == {"cloud"}
    elastic = [NodeGroup("near", tier=Tier.EDGE, cleaning=CLEANING)]
    story = Story(make_policy(elastic), web("web", 2), startup_s=20.0).play(60)
    assert {claim.group for claim in story.store.claims()} == {"near"}
    story.daemon.adopt(make_policy([msgspec.structs.replace(elastic[0], is_elastic=False)]))
    story.world.cluster.rescale(Rescale(0.0, "default", "web", 0))
    story.play(400)
    assert {item.reason for item in story.seen[-1].plan.kept} == {Kept.NOT_ELASTIC}


def test_without_an_edge_no_cycle_is_run_for_it() -> None:
    story = Story(make_policy(), web("web", 2)).play(300)
    assert [result for result in story.seen[1:] if "edge" in result.stages] == []
    edge = Shop(near("e1"), web("web", 2)).play(300)
    assert [result for result in edge.seen[1:] if "edge" in result.stages]
