"""Emptying nodes: all or nothing, no room or budget counted twice, and only when it pays."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.billing import Billing
from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import Constraints, Toleration
from htas.model.disruptions import Drain
from htas.model.flavours import Catalogue
from htas.model.moves import MigrationMethod
from htas.model.nodes import SCALE_DOWN_DISABLED
from htas.model.pods import MAY_MIGRATE, SAFE_TO_EVICT, Owner, Phase, RunLength, RunLengthSource
from htas.model.policy import EmptyRelease, Value
from htas.model.reasons import Kept, ProposalReason
from htas.model.snapshot import Memory
from htas.planning.cluster.classes import CPU_ROW
from htas.planning.cluster.run_length import as_moved, run_length_s
from htas.planning.disrupt.cleaning.cleaner import RestOfPlan, clean
from tests.builders import (
    NOW,
    budget,
    make_job,
    make_move,
    make_node,
    make_pod,
    make_policy,
    owned_node,
    ready_claim,
    running,
)
from tests.unit.planning.cleaning.world import (
    LARGE,
    LONG_AGO,
    MEDIUM,
    cleaned,
    job_on,
    kept,
    message,
    moves,
    opened,
    policy_with,
    quiet_snapshot,
    removed,
)

STAYS: dict[str, Any] = {"annotations": {SCALE_DOWN_DISABLED: "true"}}
"""Of a node that takes pods and is never a candidate itself."""
TO_ROOM = Constraints(node_selector=(("role", "room"),))
"""Of a pod that can only move to a node made with ROOM."""
ROOM: dict[str, Any] = {**STAYS, "labels": {"role": "room"}}
NOWHERE = Constraints(node_selector=(("role", "nowhere"),))
HOURLY = Catalogue((MEDIUM, LARGE), "USD", Billing(3600, 3600))


def test_pods_move_and_the_node_goes() -> None:
    nodes = [owned_node("n1"), owned_node("room", **STAYS)]
    cleaning = cleaned(quiet_snapshot(nodes, [job_on("n1", "a"), job_on("n1", "b", "500m")]))
    assert moves(cleaning) == [("a", "n1", "room"), ("b", "n1", "room")]
    (removing,) = cleaning.remove
    assert (removing.node, removing.reason, removing.savings_nanos_per_hour) == (
        "n1",
        ProposalReason.UNDERUTILIZED,
        200_000_000,
    )
    assert removing.message == "utilisation 37.5%, 2 pods move"


def test_all_or_nothing() -> None:
    nodes = [owned_node("n1"), owned_node("room", cpu="1", **STAYS)]
    snapshot = quiet_snapshot(nodes, [job_on("n1", "a"), job_on("n1", "b")])
    cleaning = cleaned(snapshot)
    assert not cleaning.migrate
    assert kept(cleaning)["n1"] is Kept.NO_PLACE_TO_MOVE_PODS
    assert "default/b (1000m cpu, 128 Mi memory) fits on no other node: 1 Insufficient cpu" in message(cleaning, "n1")


@pytest.mark.parametrize(
    ("room_cpu", "leaves"),
    [
        pytest.param("1", ["n1"], id="room for one pod: one node goes"),
        pytest.param("1900m", ["n1"], id="nearly room for two"),
        pytest.param("2", ["n1", "n2"], id="room for two: both go"),
    ],
)
def test_two_nodes_never_count_the_same_room(room_cpu: str, leaves: list[str]) -> None:
    nodes = [owned_node("n1"), owned_node("n2"), owned_node("room", cpu=room_cpu, **ROOM)]
    pods = [job_on("n1", "a", constraints=TO_ROOM), job_on("n2", "b", constraints=TO_ROOM)]
    cleaning = cleaned(quiet_snapshot(nodes, pods))
    assert removed(cleaning) == leaves
    assert kept(cleaning).get("n2", Kept.NO_PLACE_TO_MOVE_PODS) is Kept.NO_PLACE_TO_MOVE_PODS


def test_a_node_that_took_pods_is_not_emptied_in_the_same_plan() -> None:
    snapshot = quiet_snapshot([owned_node("n1"), owned_node("n2")], [job_on("n1", "a", "500m"), job_on("n2", "b")])
    cleaning = cleaned(snapshot)
    assert moves(cleaning) == [("a", "n1", "n2")]
    assert kept(cleaning) == {"n2": Kept.NEEDED}


def test_the_least_used_goes_first_then_the_dearer_then_by_name() -> None:
    large = {"flavour": "large", "cpu": "8", "memory": "16Gi"}
    nodes = [
        owned_node("b"),
        owned_node("a"),
        owned_node("dear", **large),
        owned_node("least"),
        owned_node("room", **STAYS),
    ]
    pods = [job_on("b", "1"), job_on("a", "2"), job_on("dear", "3", "2"), job_on("least", "4", "100m")]
    policy = policy_with({"max_nodes_at_once": 2})
    assert {move.source for move in cleaned(quiet_snapshot(nodes, pods), policy).migrate} == {"least", "dear"}
    fewer = quiet_snapshot([nodes[0], nodes[1], nodes[4]], pods[:2])
    assert removed(cleaned(fewer, policy_with({"max_nodes_at_once": 1}))) == ["a"]


def test_empty_nodes_go_before_anything_could_be_moved_to_them() -> None:
    snapshot = quiet_snapshot([owned_node("empty"), owned_node("used")], [job_on("used", "a")])
    cleaning = cleaned(snapshot)
    assert removed(cleaning) == ["empty"]
    assert kept(cleaning) == {"used": Kept.NO_PLACE_TO_MOVE_PODS}


LARGE_NODE: dict[str, Any] = {"flavour": "large", "cpu": "8", "memory": "16Gi"}


@pytest.mark.parametrize(
    ("nodes", "gone", "moved"),
    [
        pytest.param({"cheap": {}, "dear": LARGE_NODE}, ["dear"], [("a", "dear", "cheap")], id="the dear one's pod has no other place"),
        pytest.param({"cheap": {}, "spare": {}, "dear": LARGE_NODE}, ["spare", "dear"], [("a", "dear", "cheap")], id="one empty node of two is enough"),
        pytest.param({"cheap": {}, "dear": LARGE_NODE, "room": STAYS}, ["cheap", "dear"], [("a", "dear", "room")], id="there is other room"),
        pytest.param({"cheap": {"cpu": "1"}, "dear": LARGE_NODE}, ["cheap"], [], id="the pod does not fit there"),
        pytest.param({"cheap": LARGE_NODE, "dear": LARGE_NODE}, ["cheap"], [], id="the empty one costs as much"),
    ],
)  # fmt: skip
def test_an_empty_node_stays_for_the_pods_of_a_dearer_one(
    nodes: dict[str, dict[str, Any]], gone: list[str], moved: list[tuple[str, str, str]]
) -> None:
    """The cheap node went at once, since it was empty, and the dear one stayed for a pod that would have fitted it."""
    there = [owned_node(name, **how) for name, how in nodes.items()]
    cleaning = cleaned(quiet_snapshot(there, [job_on("dear", "a", "2")]), policy_with({"max_nodes_at_once": 3}))
    assert (sorted(removed(cleaning)), moves(cleaning)) == (sorted(gone), moved)
    if "cheap" not in gone:
        assert message(cleaning, "cheap") == "empty, but pods of dear, which costs more, can go there"


def test_empty_nodes_go_first_even_if_their_daemons_count_as_use() -> None:
    daemon = running(make_pod("logs-1", "1500m", owner=Owner("DaemonSet", "logs")), "empty")
    snapshot = quiet_snapshot([owned_node("empty"), owned_node("used")], [daemon, job_on("used", "a")])
    policy = policy_with({"ignore_daemonset_utilization": False})
    assert removed(cleaned(snapshot, policy)) == ["empty"]


def test_a_node_that_could_not_be_emptied_takes_pods_of_others() -> None:
    nodes = [owned_node("n1", labels={"role": "room"}), owned_node("n2")]
    pods = [job_on("n1", "stuck", "500m", constraints=NOWHERE), job_on("n2", "a", constraints=TO_ROOM)]
    assert moves(cleaned(quiet_snapshot(nodes, pods))) == [("a", "n2", "n1")]


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param({"empty_for_s": 7200.0}, id="not empty for long enough"),
        pytest.param({"empty_release": EmptyRelease.BEFORE_BILLING}, id="paid for a while"),
    ],
)
def test_a_node_about_to_be_given_back_is_no_target(rules: dict[str, Any]) -> None:
    nodes = [owned_node("empty"), owned_node("used")]
    claims = (ready_claim(nodes[0], 1000.0), ready_claim(nodes[1], 3500.0))
    cleaning = cleaned(
        quiet_snapshot(nodes, [job_on("used", "a", left_s=9000.0)], claims=claims), policy_with(rules, catalogue=HOURLY)
    )
    assert not cleaning.remove
    assert kept(cleaning)["used"] is Kept.NO_PLACE_TO_MOVE_PODS


def test_a_node_that_goes_next_time_is_no_target() -> None:
    nodes = [owned_node("e1"), owned_node("e2"), owned_node("used", group="other")]
    policy = policy_with({"max_nodes_at_once": 1})
    (group,) = policy.groups
    other = type(group)("other", cleaning=group.cleaning)
    policy = type(policy)(policy.cluster, policy.catalogue, (group, other))
    cleaning = cleaned(quiet_snapshot(nodes, [job_on("used", "a")]), policy)
    assert removed(cleaning) == ["e1"]
    assert kept(cleaning) == {"e2": Kept.TOO_MANY_AT_ONCE, "used": Kept.NO_PLACE_TO_MOVE_PODS}


@pytest.mark.parametrize(
    "target",
    [
        pytest.param({"is_unschedulable": True}, id="cordoned"),
        pytest.param({"is_ready": False}, id="not Ready"),
    ],
)
def test_closed_nodes_are_no_targets(target: dict[str, Any]) -> None:
    nodes = [owned_node("n1"), make_node("closed", **target)]
    assert kept(cleaned(quiet_snapshot(nodes, [job_on("n1", "a")])))["n1"] is Kept.NO_PLACE_TO_MOVE_PODS


def test_a_cordoned_node_is_no_target_even_for_pods_that_tolerate_it() -> None:
    careless = Constraints(tolerations=(Toleration(operator="Exists"),))
    nodes = [owned_node("n1"), make_node("closed", is_unschedulable=True)]
    cleaning = cleaned(quiet_snapshot(nodes, [job_on("n1", "a", constraints=careless)]))
    assert kept(cleaning)["n1"] is Kept.NO_PLACE_TO_MOVE_PODS


def test_a_node_whose_claim_was_not_seen_ready_yet_is_no_target() -> None:
    nodes = [owned_node("n1"), owned_node("fresh")]
    fresh = msgspec.structs.replace(ready_claim(nodes[1]), state=ClaimState.REGISTERED)
    cleaning = cleaned(quiet_snapshot(nodes, [job_on("n1", "a")], claims=(ready_claim(nodes[0]), fresh)))
    assert kept(cleaning) == {"fresh": Kept.NOT_READY, "n1": Kept.NO_PLACE_TO_MOVE_PODS}


def test_machines_on_their_way_are_no_targets() -> None:
    node = owned_node("n1")
    coming = NodeClaim("coming", "any", "medium", ClaimState.REQUESTED, NOW - 10, NOW - 10)
    snapshot = quiet_snapshot([node], [job_on("n1", "a")], claims=(ready_claim(node), coming))
    assert kept(cleaned(snapshot)) == {"n1": Kept.NO_PLACE_TO_MOVE_PODS}


def test_nodes_of_no_group_are_fixed_capacity_and_take_pods() -> None:
    snapshot = quiet_snapshot([owned_node("n1"), make_node("fixed")], [job_on("n1", "a")])
    assert moves(cleaned(snapshot)) == [("a", "n1", "fixed")]


def test_the_hardest_pod_is_placed_first() -> None:
    nodes = [owned_node("n1"), make_node("big", cpu="1500m"), make_node("small", cpu="500m")]
    # By name, `a` would take the big node's room first under a fuller-first order and leave none for `b`.
    snapshot = quiet_snapshot(
        nodes, [job_on("n1", "a", "500m", memory="1Gi"), job_on("n1", "b", "1500m", memory="2Gi")]
    )
    assert moves(cleaned(snapshot)) == [("b", "n1", "big"), ("a", "n1", "small")]


@pytest.mark.parametrize(
    ("drains", "min_nodes", "reason"),
    [
        pytest.param((), 2, Kept.MIN_SIZE_REACHED, id="two are to stay"),
        pytest.param((Drain("gone", "gone", "Empty", NOW),), 1, Kept.MIN_SIZE_REACHED, id="one of two is leaving"),
        pytest.param((Drain("gone", "gone", "Empty", NOW),), 0, Kept.TOO_MANY_AT_ONCE, id="one drain at a time"),
    ],
)
def test_sizes_and_drains_under_way_are_counted(drains: tuple[Drain, ...], min_nodes: int, reason: Kept) -> None:
    nodes = [owned_node("gone"), owned_node("n1")]
    policy = policy_with({"max_nodes_at_once": 1}, {"min_nodes": min_nodes})
    cleaning = cleaned(quiet_snapshot(nodes, drains=drains), policy)
    assert not cleaning.remove
    assert kept(cleaning)["n1"] is reason


def test_nodes_that_go_in_this_plan_count_for_the_minimum() -> None:
    nodes = [owned_node("n1"), owned_node("n2"), owned_node("n3")]
    cleaning = cleaned(quiet_snapshot(nodes), policy_with(group={"min_nodes": 1}))
    assert removed(cleaning) == ["n1", "n2"]
    assert kept(cleaning) == {"n3": Kept.MIN_SIZE_REACHED}


class TestPodsThatHoldTheirNode:
    def test_a_blocking_pod_is_named(self) -> None:
        nodes = [owned_node("n1"), owned_node("room", **STAYS)]
        cleaning = cleaned(quiet_snapshot(nodes, [job_on("n1", "a"), job_on("n1", "bare", owner=None)]))
        assert kept(cleaning)["n1"] is Kept.BLOCKED_BY_POD
        assert message(cleaning, "n1") == "NotReplicated: default/bare has no controller"

    def test_on_completion_is_waited_for(self) -> None:
        nodes = [owned_node("n1"), owned_node("room", **STAYS)]
        pod = job_on("n1", "a", disruption={SAFE_TO_EVICT: "on-completion"})
        assert kept(cleaned(quiet_snapshot(nodes, [pod])))["n1"] is Kept.BLOCKED_BY_ON_COMPLETION_POD

    def test_a_pod_that_is_ending_is_waited_for(self) -> None:
        nodes = [owned_node("n1"), owned_node("room", **STAYS)]
        cleaning = cleaned(quiet_snapshot(nodes, [job_on("n1", "a", deleted_at=NOW - 5)]))
        assert kept(cleaning)["n1"] is Kept.BLOCKED_BY_POD

    def test_a_service_that_opted_in_moves(self) -> None:
        nodes = [owned_node("n1"), owned_node("room", **STAYS)]
        web = running(make_pod("web", disruption={MAY_MIGRATE: "true"}), "n1", 1e6)
        assert removed(cleaned(quiet_snapshot(nodes, [web]))) == ["n1"]

    def test_who_decides_for_pods_of_another_scheduler_is_said(self) -> None:
        nodes = [owned_node("n1"), owned_node("room", **STAYS)]
        pods = [job_on("n1", "a"), job_on("n1", "b", "500m", scheduler="default-scheduler")]
        (removing,) = cleaned(quiet_snapshot(nodes, pods)).remove
        assert removing.message == "utilisation 37.5%, 2 pods move; default-scheduler decides where 1 of them goes"


class TestBudgets:
    """Allowances are spent once, over all candidates and earlier plans."""

    def test_a_node_needs_an_allowance_for_each_of_its_pods(self) -> None:
        nodes = [owned_node("n1"), owned_node("room", **STAYS)]
        pods = [job_on("n1", name, "500m", labels={"app": "x"}) for name in ("a", "b")]
        cleaning = cleaned(quiet_snapshot(nodes, pods, budgets=(budget(1, {"app": "x"}),)))
        assert kept(cleaning)["n1"] is Kept.BLOCKED_BY_POD
        assert "default/budget has none left of 1 disruptions for default/b" in message(cleaning, "n1")

    def test_one_allowance_empties_one_node(self) -> None:
        nodes = [owned_node("n1"), owned_node("n2"), owned_node("room", **ROOM)]
        pods = [job_on(node, f"on-{node}", labels={"app": "x"}, constraints=TO_ROOM) for node in ("n1", "n2")]
        cleaning = cleaned(quiet_snapshot(nodes, pods, budgets=(budget(1, {"app": "x"}),)))
        assert removed(cleaning) == ["n1"]
        assert kept(cleaning)["n2"] is Kept.BLOCKED_BY_POD

    def test_a_node_short_of_allowances_spends_none(self) -> None:
        nodes = [owned_node("n1"), owned_node("n2"), owned_node("room", **ROOM)]
        pods = [
            job_on("n1", "a", "300m", labels={"app": "x"}, constraints=TO_ROOM),
            job_on("n1", "b", "300m", labels={"app": "x"}, constraints=TO_ROOM),
            job_on("n2", "c", labels={"app": "x"}, constraints=TO_ROOM),
        ]
        cleaning = cleaned(quiet_snapshot(nodes, pods, budgets=(budget(1, {"app": "x"}),)))
        assert kept(cleaning)["n1"] is Kept.BLOCKED_BY_POD
        assert removed(cleaning) == ["n2"]

    def test_what_a_node_that_stays_had_spent_is_given_back(self) -> None:
        nodes = [owned_node("n1"), owned_node("n2"), owned_node("room", **ROOM)]
        pods = [
            job_on("n1", "stuck", labels={"app": "x"}, constraints=NOWHERE),
            job_on("n2", "free", labels={"app": "x"}, constraints=TO_ROOM),
        ]
        cleaning = cleaned(quiet_snapshot(nodes, pods, budgets=(budget(1, {"app": "x"}),)))
        assert kept(cleaning)["n1"] is Kept.NO_PLACE_TO_MOVE_PODS
        assert removed(cleaning) == ["n2"]

    @pytest.mark.parametrize(
        ("fields", "goes"),
        [
            pytest.param({}, False, id="still where it was: its disruption is to come"),
            pytest.param({"deleted_at": NOW - 5}, True, id="evicted: the budget's status counts it"),
        ],
    )
    def test_pods_on_their_way_count_as_spent(self, fields: dict[str, Any], goes: bool) -> None:
        nodes = [owned_node("leaving"), owned_node("n1"), owned_node("room", **STAYS)]
        pods = [
            job_on("leaving", "a", labels={"app": "x"}, **fields),
            job_on("n1", "b", labels={"app": "x"}),
        ]
        drain = Drain("leaving", "leaving", "Underutilized", NOW, (make_move("default/a", "leaving", "room"),))
        cleaning = cleaned(quiet_snapshot(nodes, pods, budgets=(budget(1, {"app": "x"}),), drains=(drain,)))
        assert (removed(cleaning) == ["n1"]) is goes


@pytest.mark.parametrize(
    ("method", "left_s", "ran_s", "billing", "goes"),
    [
        # Held for 600 s, a move takes 10 s: billed by the minute until 660 s.
        pytest.param("checkpoint", 90.0, 300.0, (60, 60), True, id="720 s against 660 s: a minute saved, nothing lost"),
        pytest.param("checkpoint", 50.0, 300.0, (60, 60), False, id="both are billed 660 s"),
        pytest.param("checkpoint", 5.0, 300.0, (60, 60), False, id="it ends before the move would"),
        pytest.param("evict", 90.0, 30.0, (60, 60), True, id="a minute saved, 30 s of work repeated"),
        pytest.param("evict", 90.0, 60.0, (60, 60), False, id="a minute saved, a minute repeated"),
        pytest.param("evict", 3000.0, 300.0, (60, 60), True, id="long work, begun a while ago"),
        pytest.param("evict", 290.0, 300.0, (60, 60), False, id="more done than left"),
        pytest.param("checkpoint", 2000.0, 300.0, (3600, 3600), False, id="the hour is paid for anyway"),
        pytest.param("checkpoint", 4000.0, 300.0, (3600, 3600), True, id="the second hour is saved"),
        pytest.param("evict", -50.0, 300.0, (60, 60), False, id="estimates that proved wrong are not trusted again"),
    ],
)
def test_a_node_that_is_soon_empty_by_itself_is_left_alone(
    method: str, left_s: float, ran_s: float, billing: tuple[int, int], goes: bool
) -> None:
    node, room = owned_node("n1"), owned_node("room", **STAYS)
    snapshot = quiet_snapshot(
        [node, room],
        [job_on("n1", "a", left_s=left_s, ran_s=ran_s)],
        claims=(ready_claim(node, 600.0), ready_claim(room)),
    )
    catalogue = Catalogue((MEDIUM, LARGE), "USD", Billing(*billing))
    rules = {"migration": MigrationMethod(method), "empty_release": EmptyRelease.AT_ONCE}
    cleaning = cleaned(snapshot, policy_with(rules, catalogue=catalogue))
    assert (removed(cleaning) == ["n1"]) is goes
    is_wrong = method == "evict" and left_s < 0
    assert goes or kept(cleaning)["n1"] is (Kept.RUN_LENGTH_UNKNOWN if is_wrong else Kept.EMPTY_BEFORE_MIGRATION_PAYS)


@pytest.mark.parametrize(
    ("pod", "restart", "stays"),
    [
        pytest.param("job", "0", False, id="a job whose restart is worth nothing"),
        pytest.param("job", "0.10", False, id="50 minutes of a machine of 0.20 an hour save more"),
        pytest.param("job", "0.17", True, id="and less than this"),
        pytest.param("service", "0.15", False, id="of a service an hour of its machine is counted"),
        pytest.param("service", "0.20", True, id="which is worth less than a restart of 0.20"),
    ],
)
def test_nodes_are_emptied_where_that_saves_more_than_restarts_are_worth(pod: str, restart: str, stays: bool) -> None:
    work = job_on("n1", "a", left_s=3000.0, ran_s=0.0)
    if pod == "service":
        work = running(make_pod("a", cpu="1", disruption={MAY_MIGRATE: "true"}), "n1", 600.0)
    nodes = [owned_node("n1"), owned_node("busy")]
    busy = job_on("busy", "b", cpu="2500m", left_s=9000.0)
    policy = policy_with(value=Value(restart_nanos=int(float(restart) * 10**9)))
    found = cleaned(quiet_snapshot(nodes, [work, busy]), policy)
    assert (removed(found) == []) is stays
    if stays:
        assert kept(found)["n1"] is Kept.EMPTY_BEFORE_MIGRATION_PAYS
        assert "value.restart" in message(found, "n1")


def test_the_longest_job_decides_when_a_node_is_empty() -> None:
    node, room = owned_node("n1"), owned_node("room", **STAYS)
    pods = [job_on("n1", "short", "100m", left_s=20.0), job_on("n1", "long", "100m", left_s=3000.0)]
    assert removed(cleaned(quiet_snapshot([node, room], pods))) == ["n1"]


@pytest.mark.parametrize(
    ("method", "target"),
    [
        pytest.param(MigrationMethod.CHECKPOINT, "short", id="restored with 200 s left: among work that ends soon"),
        pytest.param(MigrationMethod.EVICT, "long", id="begun again with 2000 s ahead: among long work"),
    ],
)
def test_the_time_bin_is_that_of_the_run_ahead(method: MigrationMethod, target: str) -> None:
    nodes = [owned_node("n1"), make_node("short"), make_node("long")]
    pods = [
        job_on("n1", "a", left_s=200.0, ran_s=1800.0),
        # A second job keeps the node busy, so that moving pays by either method.
        job_on("n1", "b", "100m", left_s=9000.0, ran_s=10.0),
        job_on("short", "s", left_s=300.0),
        job_on("long", "l", left_s=2100.0),
    ]
    cleaning = cleaned(quiet_snapshot(nodes, pods), policy_with({"migration": method}))
    assert {name: where for name, _, where in moves(cleaning)}["a"] == target
    assert {move.method for move in cleaning.migrate} == {method.value}


def test_bound_but_not_started_work_moves_too() -> None:
    pod = make_job("a", 3000.0, node="n1", phase=Phase.PENDING)
    assert removed(cleaned(quiet_snapshot([owned_node("n1"), owned_node("room", **STAYS)], [pod]))) == ["n1"]


def test_the_simulation_keeps_the_moves_and_nothing_else() -> None:
    nodes = [owned_node("n1"), owned_node("n2"), owned_node("room", **ROOM), make_node("closed", is_ready=False)]
    pods = [job_on("n1", "a", constraints=TO_ROOM), job_on("n2", "b", constraints=NOWHERE)]
    coming = NodeClaim("coming", "any", "medium", ClaimState.REQUESTED, NOW - 10, NOW - 10)
    claims = (*(ready_claim(node) for node in nodes[:3]), coming)
    snapshot, policy = quiet_snapshot(nodes, pods, claims=claims), policy_with()
    context = opened(snapshot, policy)
    sim, row = context.simulated.sim, context.simulated.sim.table.row_of
    before, was_open = sim.table.free.copy(), sim.table.is_open.copy()
    clean(context, RestOfPlan(), is_due=True)
    moved = sim.table.free - before
    assert {name: int(moved[CPU_ROW, row[name]]) for name in row if moved[CPU_ROW, row[name]]} == {
        "n1": 1000,
        "room": -1000,
    }
    assert [name for name in row if was_open[row[name]] != sim.table.is_open[row[name]]] == ["n1"]


def test_the_memory_alone_changes_when_cleaning_is_not_due() -> None:
    snapshot = quiet_snapshot([owned_node("n1"), owned_node("n2")], [job_on("n2", "a")], memory=Memory())
    cleaning = cleaned(snapshot, is_due=False)
    assert not cleaning.remove
    assert set(kept(cleaning).values()) == {Kept.CLEANING_NOT_DUE}
    assert cleaning.memory.empty_since == {"n1": NOW}
    assert LONG_AGO not in cleaning.memory.underutilized_since.values()


LEARNED = RunLengthSource.LEARNED


@pytest.mark.parametrize(
    ("run_length", "goes"),
    [
        pytest.param(RunLength(4000.0, RunLengthSource.ANNOTATION), True, id="stated"),
        pytest.param(RunLength(500.0, RunLengthSource.ANNOTATION), False, id="stated, and it has outrun that"),
        pytest.param(RunLength(4000.0, LEARNED, "template", 8, 0.9), True, id="learned of its template"),
        pytest.param(RunLength(4000.0, LEARNED, "image", 8, 0.5), True, id="of its image, half of whose runs agree"),
        pytest.param(RunLength(4000.0, LEARNED, "template", 8, 0.4), False, id="most of whose runs differ"),
        pytest.param(RunLength(4000.0, LEARNED, "kind of owner", 60, 0.9), False, id="of all Jobs there are"),
        pytest.param(RunLength(4000.0, RunLengthSource.DEADLINE), False, id="its deadline alone"),
        pytest.param(RunLength(4000.0, RunLengthSource.DEFAULT), False, id="nothing"),
    ],
)
def test_work_begins_again_only_where_enough_is_known_of_its_end(run_length: RunLength, goes: bool) -> None:
    """An executor of an hour, known by its kind of owner alone (574 s), was evicted after 55 minutes, and again."""
    nodes = [owned_node("n1"), owned_node("room", **STAYS)]
    snapshot = quiet_snapshot(nodes, [job_on("n1", "a", ran_s=600.0, run_length=run_length)])
    for method, does_go in ((MigrationMethod.EVICT, goes), (MigrationMethod.CHECKPOINT, True)):
        cleaning = cleaned(snapshot, policy_with({"migration": method}))
        assert (removed(cleaning) == ["n1"]) is does_go, method
        if not does_go:
            said = "default/a has run for 600 s and would begin again; how long it runs is not known"
            assert (kept(cleaning)["n1"], message(cleaning, "n1")) == (Kept.RUN_LENGTH_UNKNOWN, said)


def test_who_has_outrun_its_estimate_is_expected_to_run_as_long_again_where_it_begins_anew() -> None:
    """600 s of 500: as long again is left of it, and all of that 1,200 s where it begins again."""
    pod = job_on("n1", "a", ran_s=600.0, run_length=RunLength(500.0, RunLengthSource.ANNOTATION))
    expected = {MigrationMethod.EVICT: 1200.0, MigrationMethod.CHECKPOINT: 600.0}
    for method, runs_s in expected.items():
        assert run_length_s(as_moved(pod, method, make_policy(), NOW), make_policy()) == runs_s
    in_time = job_on("n1", "b", ran_s=600.0, left_s=400.0)
    assert run_length_s(as_moved(in_time, MigrationMethod.EVICT, make_policy(), NOW), make_policy()) == 1000.0
