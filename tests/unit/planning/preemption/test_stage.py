"""The planner's fifth stage: for whom it preempts, whom it nominates, what it asks the optimiser for."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.budgets import DisruptionBudget
from htas.model.constraints import PodAffinityTerm, SpreadConstraint, Toleration
from htas.model.migrations import MigrationSettings
from htas.model.nodes import DO_NOT_DISRUPT, HOSTNAME_LABEL, ZONE_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import MAY_MIGRATE, Pod
from htas.model.policy import Fallback, FallbackMode, Limits, Policy, Promises, RunLengths
from htas.model.rearrangement import OpenRearrangement
from htas.model.reasons import Unplaced
from htas.model.resources import Resources
from htas.model.snapshot import OptimizerState
from htas.planning.disrupt.at_once import MOST_AT_ONCE
from htas.planning.disrupt.preemption import preemptor
from htas.planning.disrupt.search_request import PROVEN, circumstances
from tests.builders import NOW, constrained, labels_are, make_policy, make_snapshot
from tests.unit.planning.preemption.world import (
    HIGH,
    LOW,
    MIDDLE,
    budget,
    ending,
    incoming,
    machine,
    on,
    planned,
    policy,
)

OPTIMIZE = policy(mode=FallbackMode.OPTIMIZE)
ONE = [machine("n")]


def preempted(plan: Plan) -> set[tuple[str, str, str]]:
    return {(item.pod[8:], item.source, item.beneficiary[8:]) for item in plan.preempt}


def reasons(plan: Plan) -> dict[str, Unplaced]:
    return {item.pod[8:]: item.reason for item in plan.unplaced}


def bound(plan: Plan) -> dict[str, str]:
    return {item.pod[8:]: item.node for item in plan.bind}


def nominated(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, nominated_node=node)


# For whom.


def test_where_nothing_can_be_bought_the_important_pod_is_nominated_and_the_other_leaves() -> None:
    plan = planned(ONE, [on("n", "a"), incoming()])
    assert preempted(plan) == {("a", "n", "p")}
    assert reasons(plan) == {"p": Unplaced.NOMINATED}
    assert plan.unplaced[0].message == "nominated to n: default/a of lower priority leave for it"


def test_nobody_leaves_where_a_machine_can_be_bought() -> None:
    how = make_policy(limits=Limits(max_nodes=5), fallback=policy().fallback)
    plan = planned(ONE, [on("n", "a"), incoming()], how)
    assert plan.launch
    assert not plan.preempt


def test_limits_that_allow_one_machine_serve_the_most_important_first() -> None:
    how = make_policy(limits=Limits(max_cpu_m=4000), fallback=policy().fallback)
    plan = planned(ONE, [on("n", "a", priority=LOW), incoming("3", HIGH, "top"), incoming("3", MIDDLE, "next")], how)
    assert [launch.pods for launch in plan.launch] == [("default/top",)]
    assert preempted(plan) == {("a", "n", "next")}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(incoming(scheduler="default-scheduler", is_unschedulable=True), id="another scheduler's"),
        pytest.param(incoming(gates=("wait",)), id="gated"),
        pytest.param(incoming(constraints=constrained(unsupported=("a claim",))), id="not understood"),
    ],
)
def test_it_does_not_preempt_for(pod: Pod) -> None:
    assert not planned(ONE, [on("n", "a"), pod]).preempt


def test_off_is_off() -> None:
    plan = planned(ONE, [on("n", "a"), incoming()], policy(mode=FallbackMode.OFF))
    assert not plan.preempt
    assert not plan.optimize


def test_two_newcomers_share_what_one_victim_leaves() -> None:
    plan = planned(ONE, [on("n", "a", "4"), incoming("2", name="p"), incoming("2", name="q")])
    assert preempted(plan) == {("a", "n", "p")}
    assert reasons(plan) == {"p": Unplaced.NOMINATED, "q": Unplaced.NOMINATED}


def test_each_newcomer_takes_another_node() -> None:
    nodes = [machine("m"), machine("n")]
    plan = planned(nodes, [on("m", "a"), on("n", "b"), incoming(name="p"), incoming(name="q")])
    assert preempted(plan) == {("a", "m", "p"), ("b", "n", "q")}


def test_the_more_important_newcomer_comes_first() -> None:
    plan = planned(ONE, [on("n", "a"), incoming(priority=MIDDLE, name="p"), incoming(priority=HIGH, name="q")])
    assert preempted(plan) == {("a", "n", "q")}
    assert reasons(plan)["p"] is Unplaced.LIMIT_REACHED


def test_one_budget_is_spent_once_for_all_newcomers() -> None:
    nodes = [machine("m"), machine("n")]
    pods = [on("m", "a", labels={"app": "foo"}), on("n", "b", labels={"app": "foo"})]
    how = make_policy(limits=Limits(max_nodes=0), fallback=Fallback(mode=FallbackMode.PREEMPT))
    plan = planned(nodes, [*pods, incoming(name="p"), incoming(name="q")], how, budgets=(budget(1),))
    assert len(plan.preempt) == 1


def test_a_plan_preempts_for_so_many_and_the_next_goes_on() -> None:
    nodes = [machine(f"n{i}") for i in range(MOST_AT_ONCE + 5)]
    pods = [on(node.name, f"a-{node.name}") for node in nodes]
    plan = planned(nodes, [*pods, *(incoming(name=f"p{i}") for i in range(MOST_AT_ONCE + 5))])
    assert len(plan.preempt) == MOST_AT_ONCE


def test_work_that_there_is_no_way_for_keeps_no_other_work_waiting_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two must leave for each of the large ones, and the budget allows one; looks are few, and spent on them first."""
    monkeypatch.setattr(preemptor, "MOST_LOOKS", 30)
    nodes = [machine(f"n{i}") for i in range(10)]
    pods = [on(node.name, f"{node.name}-{j}", "2", labels={"app": "foo"}) for node in nodes for j in range(2)]
    large = [incoming("4", HIGH + i, f"large-{i}") for i in range(6)]
    there = [*pods, *large, incoming("2", MIDDLE, "small")]
    how = policy(Promises.KEEP)
    plans = [planned(nodes, there, how, budgets=(budget(1),), generation=turn) for turn in range(10)]
    reached = [plan for plan in plans if "default/small" in {item.beneficiary for item in plan.preempt}]
    assert 0 < len(reached) < len(plans)
    messages = [item.message for plan in plans for item in plan.unplaced if item.pod == "default/small"]
    assert any(message.endswith("others are preempted for first") for message in messages)


def test_where_a_smaller_one_finds_no_way_a_larger_one_is_told_the_same() -> None:
    pods = [
        on("n", "a", "2", MIDDLE),
        on("n", "b", "2", HIGH),
        incoming("3", HIGH, "small"),
        incoming("4", HIGH, "large"),
    ]
    told = {item.pod: item.message for item in planned(ONE, pods).unplaced}
    assert told["default/small"] == told["default/large"] != ""


def test_where_a_larger_one_finds_no_way_a_smaller_one_may_find_one() -> None:
    pods = [on("n", "a", "2"), on("n", "b", "2", HIGH), incoming("4", name="large", created_at=NOW - 60)]
    plan = planned(ONE, [*pods, incoming("2", name="small")])
    assert preempted(plan) == {("a", "n", "small")}
    assert reasons(plan) == {"large": Unplaced.LIMIT_REACHED, "small": Unplaced.NOMINATED}


@pytest.mark.parametrize(("waited_s", "victims"), [(299.0, 0), (300.0, 1)])
def test_a_cloud_that_is_away_is_waited_for_before_anybody_is_evicted(waited_s: float, victims: int) -> None:
    how = make_policy(fallback=Fallback(mode=FallbackMode.PREEMPT))
    plan = planned(ONE, [on("n", "a"), incoming(created_at=NOW - waited_s)], how, cloud_problem="no answer")
    assert [item.reason for item in plan.unplaced] == [
        Unplaced.CLOUD_UNREACHABLE if not victims else Unplaced.NOMINATED
    ]
    assert len(plan.preempt) == victims


# What the plan has just placed.


def told(plan: Plan) -> dict[str, str]:
    return {item.pod[8:]: item.message for item in plan.unplaced}


def test_room_that_was_left_goes_to_the_important_pod_before_a_second_one_leaves() -> None:
    """A daemon died after the first of two evictions: that pod's replacement must not take the core it left."""
    runs = [on("n", name, "1", since_s=at) for at, name in enumerate("abc")]
    plan = planned(ONE, [*runs, incoming("2"), incoming("1", LOW, "replacement")])
    assert preempted(plan) == {("a", "n", "p")}
    assert bound(plan) == {}
    assert reasons(plan) == {"p": Unplaced.NOMINATED, "replacement": Unplaced.LIMIT_REACHED}
    assert told(plan)["p"] == "nominated to n: default/a of lower priority leave for it"


def test_room_is_kept_even_where_nobody_who_runs_has_to_leave() -> None:
    plan = planned(ONE, [ending(on("n", "a", "3")), incoming("4"), incoming("1", LOW, "small")])
    assert (preempted(plan), bound(plan)) == (set(), {})
    assert told(plan)["p"] == "nominated to n: it waits for pods that end there"
    assert reasons(plan)["small"] is Unplaced.LIMIT_REACHED


def test_lesser_work_is_placed_elsewhere_then() -> None:
    """It fits n best, and would hold a core that the important pod is to have."""
    pods = [on("m", "keeper", "2", HIGH), ending(on("n", "a", "3")), incoming("4"), incoming("1", LOW, "small")]
    assert bound(planned([machine("m"), machine("n")], pods)) == {"small": "m"}


def test_work_that_is_in_the_way_is_preempted_for_itself_where_it_is_the_more_important_one() -> None:
    """The large pod waits for what ends on n; the one that fitted n leaves that to it, and takes the place of a lesser."""
    nodes = [machine("m"), machine("n")]
    runs = [on("m", "keeper", "2", HIGH + 1), on("m", "low", "2"), ending(on("n", "a", "3"))]
    plan = planned(nodes, [*runs, incoming("4"), incoming("1", MIDDLE, "mid")])
    assert preempted(plan) == {("low", "m", "mid")}
    assert told(plan) == {
        "p": "nominated to n: it waits for pods that end there",
        "mid": "nominated to m: default/low of lower priority leave for it",
    }


def test_a_lesser_nominee_gives_way_though_its_turn_comes_later() -> None:
    """Small work finds room, so that each priority has its turn: the nominee is seen before it is settled."""
    nodes = [machine("m", "1"), machine("n")]
    waits = nominated(incoming("4", MIDDLE, "waits"), "n")
    plan = planned(nodes, [ending(on("n", "a", "4")), waits, incoming("4", HIGH, "top"), incoming("1", LOW, "small")])
    assert told(plan) == {
        "top": "nominated to n: it waits for pods that end there",
        "waits": "its room on n goes to work of higher priority",
    }
    assert reasons(plan)["waits"] is Unplaced.GIVES_WAY
    assert bound(plan) == {"small": "m"}


def test_what_still_fits_beside_it_is_bound_the_oldest_first() -> None:
    kind = [incoming("1", LOW, name, created_at=NOW - 100 + at) for at, name in enumerate("xyz")]
    plan = planned([machine("m", "1"), machine("n")], [on("n", "a", "2"), incoming("3"), *kind])
    assert preempted(plan) == {("a", "n", "p")}
    assert bound(plan) == {"x": "m"}, "the others once it is seen what is left"
    assert reasons(plan).keys() == {"p", "y", "z"}


def test_who_is_preempted_for_takes_nobody_elses_room_when_all_is_placed_anew() -> None:
    """The older one has m, and room is made on n for the other one, where the replacement had just been placed."""
    pods = [on("n", "a", "2"), incoming("2", LOW, "replacement")]
    important = [incoming(name="older", created_at=NOW - 60), incoming(name="newer")]
    plan = planned([machine("n"), machine("m")], [*pods, *important])
    assert preempted(plan) == {("a", "n", "newer")}
    assert bound(plan) == {"older": "m"}


def test_work_of_its_own_priority_keeps_its_place() -> None:
    plan = planned(ONE, [on("n", "a", "2"), incoming("2", MIDDLE, "equal"), incoming("3", MIDDLE, "p")])
    assert bound(plan) == {"equal": "n"}
    assert not plan.preempt


def test_other_schedulers_place_their_work_whatever_is_promised() -> None:
    theirs = incoming("1", LOW, "theirs", scheduler="default-scheduler", is_unschedulable=True)
    plan = planned(ONE, [*(on("n", name, "1", since_s=60) for name in "abc"), incoming("2"), theirs])
    assert len(plan.preempt) == 2
    assert [item.pod for item in plan.nominate] == ["default/theirs"]


def test_nobody_is_bound_beside_a_pod_that_is_placed_no_more() -> None:
    """The guest wants a database in its zone; the one that would have come gives its room to the important pod."""
    zone = {ZONE_LABEL: "z"}
    nodes = [machine("m", "1", labels=zone), machine("n", "4", labels={**zone, "disk": "ssd"})]
    near = constrained(affinity=(PodAffinityTerm(ZONE_LABEL, labels_are(app="db")),))
    there = constrained(node_selector=(("disk", "ssd"),))
    friend = incoming("1", MIDDLE, "friend", labels={"app": "db"}, constraints=there)
    plan = planned(nodes, [on("n", "v", "3"), friend, incoming("1", LOW, "guest", constraints=near), incoming("4")])
    assert preempted(plan) == {("v", "n", "p")}
    assert bound(plan) == {}


def test_spread_is_judged_by_who_comes() -> None:
    """One pod may come to y; a second one would be two more than there are in x, whose room is promised."""
    nodes = [machine("x", labels={ZONE_LABEL: "x"}), machine("y", labels={ZONE_LABEL: "y"})]
    evenly = constrained(spread=(SpreadConstraint(ZONE_LABEL, 1, labels_are(app="web")),))
    web = [incoming("1", LOW, f"w{i}", labels={"app": "web"}, constraints=evenly) for i in range(4)]
    only_x = constrained(node_selector=((ZONE_LABEL, "x"),))
    plan = planned(nodes, [on("x", "v", "2"), incoming("4", constraints=only_x), *web])
    assert preempted(plan) == {("v", "x", "p")}
    assert len(bound(plan)) == 1


def test_a_nominee_keeps_its_room_before_work_that_was_only_just_placed() -> None:
    theirs = nominated(incoming("1", MIDDLE, "theirs", scheduler="default-scheduler"), "n")
    plan = planned(ONE, [on("n", "a", "2"), theirs, incoming("3"), incoming("1", LOW, "small")])
    assert preempted(plan) == {("a", "n", "p")}
    assert bound(plan) == {}
    assert told(plan)["theirs"] == "nominated to n"


def test_while_moves_for_the_edge_are_under_way_room_is_kept_too() -> None:
    moves = OpenRearrangement(started_at=NOW - 1, priority=-(2**31), is_suggestion=True, starting=("zz",))
    pods = [ending(on("n", "a", "3")), incoming("4"), incoming("1", LOW, "small")]
    plan = planned(ONE, pods, rearrangement=moves)
    assert bound(plan) == {}
    assert sorted(item.pod for item in plan.unplaced) == ["default/p", "default/small"]


def test_of_two_nodes_that_cost_the_same_the_one_that_is_promised_to_nobody_is_taken() -> None:
    """Its anti-affinity keeps the more important pod off every node until what ends there is gone."""
    nodes = [machine("m"), machine("n")]
    alone = constrained(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app="a")),))
    there = [ending(on(node.name, f"a-{node.name}", "3", labels={"app": "a"})) for node in nodes]
    pods = [*there, nominated(incoming("4", MIDDLE), "m"), incoming("1", HIGH, "top", constraints=alone)]
    assert told(planned(nodes, pods)) == {
        "p": "nominated to m",
        "top": "nominated to n: it waits for pods that end there",
    }


# Nominated pods.


def test_a_nominated_pod_is_bound_once_its_victims_are_gone() -> None:
    assert bound(planned(ONE, [nominated(incoming(), "n")])) == {"p": "n"}


def test_until_then_its_room_is_kept_from_lesser_pods_and_nobody_else_leaves() -> None:
    pods = [ending(on("n", "a", "3")), on("n", "b", "1"), nominated(incoming("3"), "n"), incoming("1", LOW, "late")]
    plan = planned(ONE, pods)
    assert bound(plan) == {}
    assert not plan.preempt
    assert reasons(plan) == {"p": Unplaced.NOMINATED, "late": Unplaced.LIMIT_REACHED}


def test_free_room_beside_it_is_not_lost() -> None:
    pods = [ending(on("n", "a", "2")), nominated(incoming("2"), "n"), incoming("2", LOW, "small")]
    assert bound(planned(ONE, pods)) == {"p": "n"}, "it fits beside what ends, and is bound at once"


def test_more_important_work_takes_its_room() -> None:
    pods = [nominated(incoming("4", MIDDLE), "n"), incoming("4", HIGH, "top")]
    assert bound(planned(ONE, pods)) == {"top": "n"}


def test_more_important_work_takes_its_room_while_the_victims_end() -> None:
    pods = [ending(on("n", "a")), nominated(incoming("4", MIDDLE), "n"), incoming("4", HIGH, "top")]
    plan = planned(ONE, pods)
    assert not plan.preempt
    assert {item.pod: item.message for item in plan.unplaced} == {
        "default/top": "nominated to n: it waits for pods that end there",
        "default/p": "its room on n goes to work of higher priority",
    }
    assert reasons(plan)["p"] is Unplaced.GIVES_WAY


def test_where_there_is_room_for_both_the_lesser_one_keeps_what_it_is_promised() -> None:
    pods = [ending(on("n", "a")), nominated(incoming("2", MIDDLE), "n"), incoming("2", HIGH, "top")]
    assert told(planned(ONE, pods)) == {
        "top": "nominated to n: it waits for pods that end there",
        "p": "nominated to n",
    }


def test_where_there_is_room_for_one_of_two_the_more_important_one_keeps_it() -> None:
    pods = [
        ending(on("n", "a")),
        nominated(incoming("1", LOW, "low"), "n"),
        nominated(incoming("1", MIDDLE, "mid"), "n"),
    ]
    plan = planned(ONE, [*pods, incoming("3", HIGH, "top")])
    assert reasons(plan) == {"top": Unplaced.NOMINATED, "mid": Unplaced.NOMINATED, "low": Unplaced.GIVES_WAY}


def test_it_is_bound_elsewhere_where_that_is_sooner() -> None:
    pods = [ending(on("n", "a")), nominated(incoming(), "n")]
    assert bound(planned([machine("m"), machine("n")], pods)) == {"p": "m"}


def test_a_nomination_that_nothing_makes_room_for_lapses() -> None:
    """A daemon was killed between nominating and evicting: the next one begins anew."""
    plan = planned(ONE, [on("n", "a"), nominated(incoming(), "n")])
    assert preempted(plan) == {("a", "n", "p")}


def test_a_nomination_to_a_node_that_is_gone_is_none() -> None:
    assert bound(planned(ONE, [nominated(incoming(), "gone")])) == {"p": "n"}


def test_other_schedulers_nominations_are_kept() -> None:
    theirs = nominated(incoming(scheduler="default-scheduler"), "n")
    plan = planned(ONE, [theirs, incoming(priority=LOW, name="q")])
    assert bound(plan) == {}
    assert reasons(plan)["p"] is Unplaced.NOMINATED


def test_they_are_not_promised_another_node_that_has_room() -> None:
    """Their scheduler binds them where it nominated them: m is for whoever else fits there."""
    theirs = nominated(incoming(scheduler="default-scheduler"), "n")
    pods = [ending(on("n", "a")), theirs, incoming(priority=LOW, name="q")]
    assert bound(planned([machine("n"), machine("m")], pods)) == {"q": "m"}


def test_nobody_counts_on_the_company_of_a_pod_that_may_not_come() -> None:
    """kube-scheduler's second pass: affinity to a nominated pod is no affinity yet."""
    zone = {ZONE_LABEL: "z"}
    nodes = [machine("m", "1", labels=zone), machine("n", "4", labels=zone)]
    friend = nominated(incoming("4", HIGH, "friend", labels={"app": "db"}), "n")
    near = constrained(affinity=(PodAffinityTerm(ZONE_LABEL, labels_are(app="db")),))
    guest = incoming("1", LOW, "guest", constraints=near)
    assert bound(planned(nodes, [friend, guest])) == {"friend": "n", "guest": "m"}
    assert bound(planned(nodes, [ending(on("n", "a", "4")), friend, guest])) == {}


# The optimiser.


def test_the_optimiser_is_asked_for_what_has_waited_a_while() -> None:
    plan = planned(ONE, [on("n", "a"), incoming(), incoming(name="new", created_at=NOW - 1)], OPTIMIZE)
    assert plan.optimize == ("default/p",)
    assert not plan.preempt
    assert "a better placement of what runs is searched for" in plan.unplaced[1].message


def test_it_is_not_asked_for_what_fits_no_node_there_is() -> None:
    assert planned(ONE, [on("n", "a"), incoming("9")], OPTIMIZE).optimize == ()


def searched(**how: object) -> Plan:
    pods = [on("n", "a"), incoming()]
    now = circumstances(make_snapshot(ONE, pods), OPTIMIZE)
    search = OptimizerState(**{"ended_at": NOW - 300, "circumstances": now, **how})  # type: ignore[arg-type]
    return planned(ONE, pods, OPTIMIZE, search=search)


SEARCHES = [
    pytest.param({"is_under_way": True}, (), 0, id="a search is under way"),
    pytest.param({"left": {}}, ("default/p",), 0, id="the last search did not look at it"),
    pytest.param({"left": {}, "ended_at": NOW - 10}, (), 0, id="but the pause is not over"),
    pytest.param({"left": {"p": False}}, (), 1, id="nothing was proven: it is preempted for"),
    pytest.param({"left": {"p": True}}, (), 0, id="proven: it waits"),
    pytest.param({"left": {"p": True}, "circumstances": "before"}, ("default/p",), 0, id="something has changed since"),
    pytest.param(
        {"left": {"p": False}, "circumstances": "before", "ended_at": NOW - 10}, (), 1, id="it changed, in the pause"
    ),
]


@pytest.mark.parametrize(("search", "asked", "victims"), SEARCHES)
def test_what_the_last_search_left(search: dict[str, object], asked: tuple[str, ...], victims: int) -> None:
    plan = searched(**search)
    assert plan.optimize == asked
    assert len(plan.preempt) == victims


def test_how_long_a_search_is_waited_for_is_told() -> None:
    message = searched(is_under_way=True).unplaced[0].message
    assert message.endswith("a search for a better placement is under way, of 10 s at most")


def test_the_plan_that_comes_with_an_answer_asks_for_no_other_one() -> None:
    how = msgspec.structs.replace(OPTIMIZE, fallback=msgspec.structs.replace(OPTIMIZE.fallback, pause_s=0.0))
    pods = [on("n", "a"), incoming()]
    plan = planned(ONE, pods, how, search=OptimizerState(ended_at=NOW, left={"p": False}))
    assert (plan.optimize, len(plan.preempt)) == ((), 1)
    assert planned(ONE, pods, how, search=OptimizerState(ended_at=NOW - 1, left={})).optimize == ("default/p",)


def test_what_is_proven_is_told() -> None:
    """The two services of Figure 1 are not free to move: "no other placement" would be untrue without saying so."""
    message = searched(left={"p": True}).unplaced[0].message
    assert "proven: no placement of the pods that may move would fit it" in message
    assert "htas optimize shows which may not" in message


def test_circumstances_change_with_what_is_there_and_what_it_allows() -> None:
    def now(nodes: list[Node], *pods: Pod, by: Policy = OPTIMIZE) -> str:
        return circumstances(make_snapshot(nodes, pods), by)

    there, waiting = on("n", "a"), incoming()
    before = now(ONE, there, waiting)
    assert before == now(ONE, waiting, there), "whatever the order"
    for pods in ([waiting], [there], [ending(there), waiting]):
        assert now(ONE, *pods) != before
    willing = msgspec.structs.replace(there, disruption={MAY_MIGRATE: "true"})
    assert now(ONE, willing, waiting) != before, "its owner lets it be moved"
    held = msgspec.structs.replace(there, disruption={DO_NOT_DISRUPT: "30m"}, started_at=NOW)
    in_time = circumstances(make_snapshot(ONE, [held, waiting]), OPTIMIZE)
    later = msgspec.structs.replace(make_snapshot(ONE, [held, waiting]), taken_at=NOW + 1801.0)
    assert circumstances(later, OPTIMIZE) != in_time, "the time that it asked for is over"
    assert now([*ONE, machine("m")], there, waiting) != before
    for change in ({"labels": {"zone": "b"}}, {"allocatable": Resources(1, 1, 1, 1)}):
        assert now([msgspec.structs.replace(ONE[0], **change)], there, waiting) != before
    assert now(ONE, there, waiting, by=make_policy()) != before, "another configuration"
    moves = msgspec.structs.replace(OPTIMIZE, migration=MigrationSettings(several_containers=True))
    assert now(ONE, there, waiting, by=moves) != before, "pods of several containers may be moved now"
    stated = msgspec.structs.replace(OPTIMIZE, run_lengths=RunLengths(default_s=60.0))
    assert now(ONE, there, waiting, by=stated) != before, "what nobody stated takes a minute now"


SMALLER = Resources(100, 1 << 20, 0, 1)
GUARD = budget(0, "x")
CHANGES = [
    pytest.param({"requests": SMALLER}, GUARD, id="a pod is made smaller where it runs"),
    pytest.param({"labels": {"app": "y"}}, GUARD, id="a pod gets another label, and its budget covers it no more"),
    pytest.param(
        {"constraints": constrained(tolerations=(Toleration("gpu", "Exists"),))},
        GUARD,
        id="a pod is given a toleration",
    ),
    pytest.param({}, budget(0, "y"), id="a budget of the same name selects others"),
    pytest.param({}, budget(1, "x"), id="a budget allows one more"),
]


@pytest.mark.parametrize(("change", "budget_now"), CHANGES)
def test_a_proof_ends_where_pods_are_resized_or_selected_otherwise(
    change: dict[str, object], budget_now: DisruptionBudget
) -> None:
    """The waiting pod was told for ever that no other placement would take it in, and nobody searched again."""
    there, waiting = on("n", "a", labels={"app": "x"}), incoming()
    proven = circumstances(make_snapshot(ONE, [there, waiting], budgets=(GUARD,)), OPTIMIZE)
    search = OptimizerState(ended_at=NOW - 300, circumstances=proven, left={"p": True})
    before = planned(ONE, [there, waiting], OPTIMIZE, search=search, budgets=(GUARD,))
    assert PROVEN in before.unplaced[0].message
    now = msgspec.structs.replace(there, **change)
    after = planned(ONE, [now, waiting], OPTIMIZE, search=search, budgets=(budget_now,))
    assert PROVEN not in "".join(item.message for item in after.unplaced)


def test_circumstances_are_the_same_in_whatever_order_labels_are_written() -> None:
    one, other = (on("n", "a", labels=labels) for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))
    assert circumstances(make_snapshot(ONE, [one]), OPTIMIZE) == circumstances(make_snapshot(ONE, [other]), OPTIMIZE)
