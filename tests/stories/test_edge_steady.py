"""Stories of what may go wrong at the edge: no shop goes down for being moved nearer to its users."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.disruptions import rearrangement_of
from htas.model.edge import TIER_LABEL, EdgePolicy
from htas.model.migrations import Refusal
from htas.model.moves import MigrationMethod
from htas.model.nodes import Node
from htas.model.pods import Phase
from htas.model.policy import Limits
from htas.model.reasons import OutcomeReason
from htas.ports import HTASError, MoveRefusedError, PermanentError
from htas.sandbox.workload import Budget, ControllerKind
from tests.builders import labels_are, make_node
from tests.stories.play import job
from tests.stories.test_edge import AT_ONCE, Shop, near, policy, under_way, web


def fewest_ready(shop: Shop, of: str, until_s: float) -> int:
    """The fewest pods of a service that are Ready at any time until then."""
    now, fewest = shop.world.clock.now() - shop.start, len(shop.pods(of))
    while now < until_s:
        now += 0.5
        shop.play(now)
        fewest = min(fewest, sum(pod.ready_since is not None for pod in shop.pods(of)))
    return fewest


def reasons(shop: Shop) -> list[str]:
    return [message.partition(":")[0] for message in shop.told("cancel-suggestion")]


def freed(replicas: int, edge: EdgePolicy = AT_ONCE, *budgets: Budget) -> Shop:
    """`api` is in the cloud, all of it, and the edge has just become free."""
    size = str(replicas)
    shop = Shop(near("e1", cpu=size), web("web", replicas), web("api", replicas, at_s=1), edge=edge, budgets=budgets)
    shop.play(90)
    assert (shop.ratio("api"), shop.all_run()) == ((0, replicas), True)
    shop.rescale("web", 0)
    shop.play(91)
    return shop


@pytest.mark.parametrize(("replicas", "missing"), [(2, 1), (5, 1), (8, 2)])
def test_a_service_without_a_budget_keeps_three_quarters_of_its_pods(replicas: int, missing: int) -> None:
    shop = freed(replicas)
    assert fewest_ready(shop, "api", 600) == replicas - missing
    assert (shop.ratio("api"), shop.all_run()) == ((replicas, replicas), True)
    shop.assert_whole()


def test_a_stateful_set_is_moved_pod_by_pod() -> None:
    api = msgspec.structs.replace(web("api", 3, at_s=1), controller=ControllerKind.STATEFUL_SET)
    shop = Shop(near("e1", cpu="3"), web("web", 3), api).play(90)
    shop.rescale("web", 0)
    assert fewest_ready(shop, "api", 400) == 2
    assert shop.ratio("api") == (3, 3)


@pytest.mark.parametrize("budgets", [(), (Budget("default", "api", labels_are(app="api"), 3),)])
def test_a_node_that_starts_no_pods_costs_a_service_one_pod(budgets: tuple[Budget, ...]) -> None:
    """The suggestion ends after ten minutes; while the pod hangs there nothing else is moved, then the rest is."""
    shop = freed(4, AT_ONCE, *budgets)
    shop.world.cluster.faults.starts_nothing.add("e1")
    assert fewest_ready(shop, "api", 1500) == 3
    assert (reasons(shop), shop.world.ledger.evictions) == ([OutcomeReason.NOT_READY.value], 1)
    shop.world.cluster.faults.starts_nothing.clear()
    assert fewest_ready(shop, "api", 2000) == 3
    assert (shop.ratio("api"), shop.all_run(), shop.world.ledger.evictions) == ((4, 4), True, 4)
    shop.assert_whole()


@pytest.mark.parametrize("daemon_dies", [False, True])
def test_the_next_pods_move_when_the_last_ones_have_started(*, daemon_dies: bool) -> None:
    """Pods take three minutes to start: of eight never more than two are missed."""
    shop = freed(8)
    shop.world.cluster.faults.starts_nothing.add("e1")
    shop.play(300)
    assert (shop.ratio("api"), shop.told("suggested")) == ((2, 8), [])
    if daemon_dies:
        shop.crash()
    shop.world.cluster.faults.starts_nothing.clear()
    shop.play(330)
    assert [message.partition(" in ")[0] for message in shop.told("suggested")] == ["0 placed, 2 moved, 0 evicted"]
    assert shop.ratio("api") == (2, 8)
    shop.play(900)
    assert shop.ratio("api") == (8, 8)


def test_an_edge_node_that_comes_and_goes_makes_nobody_move() -> None:
    """It is Ready for 80 s of every two minutes. Once it has been for five, its pods come back, no more at once than a quarter."""
    shop = Shop(near("e1", cpu="4"), web("web", 4), edge=EdgePolicy()).play(60)
    for i in range(6):
        at_s = 60 + 120 * i
        shop.world.cluster.set_ready("e1", False)
        shop.play(at_s + 10)
        shop.world.cluster.lose_pods("e1")
        shop.play(at_s + 40)
        shop.world.cluster.set_ready("e1", True)
        shop.play(at_s + 120)
    assert (shop.ratio("web"), shop.world.ledger.evictions) == ((0, 4), 0)
    shop.play(60 + 5 * 120 + 40 + 299)
    assert shop.told("suggest") == []
    assert fewest_ready(shop, "web", 2400) == 3
    assert (shop.ratio("web"), shop.world.ledger.evictions) == ((4, 4), 4)


def test_a_pod_that_has_just_come_is_not_moved_again() -> None:
    edge = EdgePolicy(settle_s=200.0)
    shop = freed(1, edge)
    shop.play(220)
    assert shop.told("suggest") == [], "it has been Ready since second 22"
    shop.play(400)
    assert (len(shop.told("suggest")), shop.ratio("api")) == (1, (1, 1))


def test_a_node_that_is_taken_from_the_edge_ends_the_suggestion() -> None:
    shop = under_way()
    current = rearrangement_of(shop.store.disruptions())
    assert current is not None
    [slot] = current.slots
    known = next(node for node in shop.world.cluster.observe().nodes if node.name == slot.node)
    shop.world.cluster.set_up_node(known.name, {TIER_LABEL: "cloud"})
    shop.play(shop.world.clock.now() - shop.start + 5)
    assert reasons(shop) == [OutcomeReason.NODE_CLOSED.value]
    shop.play(400)
    assert (shop.all_run(), shop.ratio("api")[1], rearrangement_of(shop.store.disruptions())) == (True, 2, None)
    shop.assert_whole()


def test_a_suggestion_that_takes_long_makes_way_for_urgent_work() -> None:
    """A pod hangs at the edge. What comes meanwhile, and finds no room, is searched room for at once."""
    there: list[Node] = [*near("e1", cpu="2"), make_node("c1", "4"), make_node("c2", "3")]
    urgent = job("urgent", at_s=200, runs_s=600, cpu_m=4000, priority=10)
    shop = Shop(there, web("web", 2), web("api", 4, at_s=1), urgent, limits=Limits(max_nodes=0)).play(90)
    shop.rescale("web", 0)
    shop.world.cluster.faults.starts_nothing.add("e1")
    shop.play(91)
    shop.play(199)
    assert rearrangement_of(shop.store.disruptions()) is not None
    shop.play(260)
    assert reasons(shop) == [OutcomeReason.PODS_PENDING.value]
    assert [pod.phase for pod in shop.pods("urgent")] == [Phase.RUNNING]
    shop.play(1000)
    shop.assert_whole()


@pytest.mark.parametrize(("priority", "evictions"), [(0, 0), (10, 4)])
def test_batch_work_takes_what_is_left_of_the_edge(priority: int, evictions: int) -> None:
    """The edge is full of `web`, for which the cloud has room: only more important work has it leave for that."""
    there = [*near("e1", cpu="4"), make_node("c1", "2"), make_node("c2", "2")]
    big = job("big", at_s=60, runs_s=120, cpu_m=4000, priority=priority)
    shop = Shop(there, web("web", 4), big, limits=Limits(max_nodes=0)).play(150)
    assert shop.world.ledger.evictions == evictions
    assert shop.ratio("web")[1] == 4
    shop.assert_whole()


def test_pods_that_end_only_when_their_twins_run_move_all_at_once() -> None:
    """A checkpoint moves them: no user misses any of them, and no quarter holds."""
    the_policy = policy()
    groups = tuple(
        msgspec.structs.replace(
            group, cleaning=msgspec.structs.replace(group.cleaning, migration=MigrationMethod.CHECKPOINT)
        )
        for group in the_policy.groups
    )
    shop = Shop(near("e1", cpu="4"), web("web", 4), web("api", 4, at_s=1))
    shop.policy = msgspec.structs.replace(the_policy, groups=groups)
    shop.crash()
    shop.play(90)
    shop.rescale("web", 0)
    assert fewest_ready(shop, "api", 600) == 4
    assert shop.ratio("api") == (4, 4)
    assert shop.told("suggest") == ["4 pods move for the edge's sake, 4 pods move in all"]


def test_a_pod_that_may_not_be_evicted_is_not_asked_for_at_once_again() -> None:
    """As where a webhook guards a database: given up after two minutes, then left alone for 5, 10, 20 and 30."""
    shop = freed(1)
    for _ in range(10_000):
        shop.world.cluster.faults.arrange("evict", PermanentError("the operator's webhook says no"))
    shop.play(3600)
    assert set(reasons(shop)) == {OutcomeReason.EVICTION_REFUSED.value}
    assert (len(reasons(shop)), shop.world.ledger.evictions) == (4, 0)
    left_alone = [failed.pod for failed in shop.seen[-1].snapshot.failed_moves]
    assert left_alone == [pod.key for pod in shop.pods("api")]


def by_replacing(replicas: int) -> Shop:
    """`api` is in the cloud, all of it; the edge is free, and a fresh copy takes a pod's place once it is Ready."""
    the_policy = policy()
    groups = tuple(
        msgspec.structs.replace(
            group, cleaning=msgspec.structs.replace(group.cleaning, migration=MigrationMethod.REPLACE)
        )
        for group in the_policy.groups
    )
    shop = Shop(near("e1", cpu=str(replicas)), web("web", replicas), web("api", replicas, at_s=1))
    shop.policy = msgspec.structs.replace(the_policy, groups=groups)
    shop.crash()
    shop.play(90)
    shop.rescale("web", 0)
    return shop


@pytest.mark.parametrize("replicas", [1, 5])
@pytest.mark.parametrize(
    ("call", "error"),
    [
        pytest.param("restore", PermanentError("403 exceeded quota: team"), id="no room in the quota"),
        pytest.param("migrate", MoveRefusedError(Refusal.DEVICE, "claims a device"), id="refused"),
    ],
)
def test_nobody_is_evicted_whose_copy_comes_to_nothing(call: str, error: HTASError, replicas: int) -> None:
    """It stays where it is, all of it, and is asked for again after 5 minutes, then 10; then the quota has room."""
    shop = by_replacing(replicas)
    for _ in range(3 * replicas):
        shop.world.migration.faults.arrange(call, error)
    assert fewest_ready(shop, "api", 400) == replicas
    assert (reasons(shop), shop.ratio("api")) == ([OutcomeReason.MOVE_FAILED.value], (0, replicas))
    left_alone = {failed.pod for failed in shop.seen[-1].snapshot.failed_moves}
    assert left_alone == {pod.key for pod in shop.pods("api")}
    assert fewest_ready(shop, "api", 3000) == replicas
    assert reasons(shop) == [OutcomeReason.MOVE_FAILED.value] * 3
    assert (shop.ratio("api"), shop.world.ledger.evictions) == ((replicas, replicas), 0)
    shop.assert_whole()


@pytest.mark.parametrize("moment", range(0, 24, 4))
def test_a_daemon_that_dies_while_copies_come_to_nothing_evicts_nobody_either(moment: int) -> None:
    shop = by_replacing(3)
    for _ in range(3):
        shop.world.migration.faults.arrange("restore", PermanentError("403 exceeded quota: team"))
    shop.play(115 + moment)
    shop.crash()
    assert fewest_ready(shop, "api", 300) == 3
    assert shop.world.ledger.evictions == 0
