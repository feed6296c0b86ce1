"""Where moving a pod or two costs less than the machine that would be bought, they are moved and nothing is bought."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from rich.console import Console

from htas.cli.plan_view import plan_view
from htas.documents.explain import explain_pod
from htas.model.approvals import QuestionKind, questions_of, without
from htas.model.constraints import PodAffinityTerm
from htas.model.machine_times import MachineTimes
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.plan import Carrying, Plan
from htas.model.pods import MAY_MIGRATE, Pod, RunLength, RunLengthSource
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.model.rearrangement import OpenRearrangement
from htas.model.snapshot import ClusterSnapshot, Memory, MoveBackoff, OptimizerState, RoomMade
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    budget,
    constrained,
    labels_are,
    make_flavour,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

SMALL, LARGE = make_flavour("small", "4", "4Gi", "0.10"), make_flavour("large", "16", "16Gi", "0.40")
DEAR = make_flavour("dear", "4", "4Gi", "0.40")
HOUR = 3600.0
OPTED_IN = {MAY_MIGRATE: "true"}
FAILED = tuple(MoveBackoff(n, f"default/{p}", "no", NOW + 60) for n, p in (("left", "one"), ("right", "two")))


def policy(method: MigrationMethod = MigrationMethod.CHECKPOINT, **fields: Any) -> Policy:
    group = NodeGroup("any", cleaning=CleaningRules(migration=method), startup_s=120.0)
    settings: dict[str, Any] = {"moves_instead_of_buying": True, "look_ahead_s": 0.0, **fields}
    return make_policy([group], [SMALL, LARGE, DEAR], **settings)


def nodes(*names: str) -> list[Node]:
    return [owned_node(name, flavour="small", memory="4Gi") for name in names]


def job_on(node: str, name: str, memory: str = "2Gi", left_s: float = HOUR, ran_s: float = 60.0, **fields: Any) -> Pod:
    return running(make_job(name, left_s + ran_s, memory=memory, **fields), node, since_s=ran_s)


def waits(memory: str = "3Gi", runs_s: float = HOUR, **fields: Any) -> Pod:
    return make_job("three", runs_s, memory=memory, **fields)


def figure_1(*waiting: Pod, left: Pod | None = None, right: Pod | None = None, **fields: Any) -> ClusterSnapshot:
    """Document 000: two nodes of 4 GB, 2 GB running on each, and 3 GB wait."""
    there = nodes("left", "right")
    pods = [left or job_on("left", "one"), right or job_on("right", "two"), *(waiting or (waits(),))]
    return make_snapshot(there, pods, claims=tuple(ready_claim(node) for node in there), **fields)


def decided(snapshot: ClusterSnapshot, by: Policy | None = None) -> Plan:
    return plan(snapshot, by or policy(), NOW)


def _moves(made: Plan) -> tuple[Move, ...]:
    return made.instead_of_buying.moves if made.instead_of_buying is not None else ()


def _why(made: Plan) -> str:
    return made.instead_of_buying.message if made.instead_of_buying is not None else ""


def moved(made: Plan) -> list[tuple[str, str, str | None]]:
    return [(move.pod.removeprefix("default/"), move.source, move.target) for move in _moves(made)]


def seated(made: Plan) -> list[tuple[str, str]]:
    return (
        [(seat.pod.removeprefix("default/"), seat.node) for seat in made.instead_of_buying.seats]
        if made.instead_of_buying is not None
        else []
    )


def test_figure_1_is_one_move_and_no_purchase() -> None:
    made = decided(figure_1())
    assert made.launch == ()
    [(name, source, target)] = moved(made)
    assert (name, source, target) in [("one", "left", "right"), ("two", "right", "left")]
    assert seated(made) == [("three", source)]
    assert {move.reason for move in _moves(made)} == {MoveReason.MAKES_ROOM}
    [kept] = made.nominate
    words = f"moves default/{name} from {source} to {target} to make room instead of launching small: saves 0.10 USD an hour"
    assert (kept.pod, kept.node, kept.why, _why(made)) == ("default/three", source, words, words)


@pytest.mark.parametrize(
    ("waiting", "left", "by", "is_bought"),
    [
        pytest.param(waits(), None, policy(), False, id="a move of 10 s against an hour of a small node"),
        pytest.param(
            waits(runs_s=60.0),
            job_on("left", "one", ran_s=5 * HOUR),
            policy(MigrationMethod.EVICT),
            True,
            id="five hours of half a node done again against three minutes of one",
        ),
        pytest.param(waits(), None, policy(moves_instead_of_buying=False), True, id="switched off"),
    ],
)
def test_what_costs_less_is_done(waiting: Pod, left: Pod | None, by: Policy, is_bought: bool) -> None:
    other = job_on("right", "two", ran_s=5 * HOUR) if is_bought else None
    made = decided(figure_1(waiting, left=left, right=other), by)
    assert bool(made.launch) == is_bought
    assert bool(_moves(made)) != is_bought


@pytest.mark.parametrize("method", [MigrationMethod.CHECKPOINT, MigrationMethod.EVICT])
def test_nobody_begins_again_to_make_room_who_has_run_for_longer_than_expected(method: MigrationMethod) -> None:
    """How much longer is anybody's guess: jobs that state a third of their run were begun again one after the other."""
    pods = [job_on(node, name, left_s=-30.0, ran_s=60.0) for node, name in (("left", "one"), ("right", "two"))]
    made = decided(figure_1(left=pods[0], right=pods[1]), policy(method))
    assert bool(_moves(made)) is method.keeps_progress
    assert bool(made.launch) is not method.keeps_progress


def test_who_may_not_begin_again_is_in_nobodys_way() -> None:
    """Of the smallest few that are tried none may be one that is not going to be moved."""
    unknown = RunLength(HOUR, RunLengthSource.DEFAULT)
    crowd = [job_on("left", f"u{i}", "128Mi", run_length=unknown) for i in range(4)]
    there = [job_on("left", "one", "1536Mi"), job_on("right", "two", "2304Mi"), *crowd]
    left, right = nodes("left", "right")
    claims = (ready_claim(left), ready_claim(right))
    made = decided(make_snapshot([left, right], [*there, waits()], claims=claims), policy(MigrationMethod.EVICT))
    assert [name for name, _, _ in moved(made)] == ["one"]
    assert not made.launch


@pytest.mark.parametrize("ran_s", [60.0, 600.0])
@pytest.mark.parametrize(
    ("run_length", "target", "by"),
    [
        pytest.param(None, "containerd://2.3.7", "kubelet-checkpoint", id="nobody knows its end, which a copy keeps"),
        pytest.param(None, "containerd://1.7.24", None, id="nobody knows its end, and it would begin again there"),
        pytest.param(
            RunLength(HOUR, RunLengthSource.DEADLINE),
            "containerd://2.4.2",
            None,
            id="its deadline alone is known, and it would begin again there",
        ),
        pytest.param(
            RunLength(HOUR, RunLengthSource.ANNOTATION),
            "containerd://1.7.24",
            "evict",
            id="it states its run: what is done again is weighed",
        ),
    ],
)
def test_who_would_begin_again_at_a_target_that_restores_nothing_is_asked_for_what_is_known(
    run_length: RunLength | None, target: str, by: str | None, ran_s: float
) -> None:
    """Whether it may was asked of its group's method alone; the move itself became an eviction at such a target."""
    left, right = nodes("left", "right")
    there = [
        msgspec.structs.replace(left, runtime="containerd://2.3.7"),
        msgspec.structs.replace(right, runtime=target),
    ]
    one = job_on("left", "one", run_length=run_length, ran_s=ran_s)
    stays = job_on("right", "two", disruption={MAY_MIGRATE: "false"})
    snapshot = make_snapshot(there, [one, stays, waits()], claims=tuple(map(ready_claim, there)))
    made = decided(snapshot, policy(MigrationMethod.KUBELET_CHECKPOINT))
    assert [move.method.value for move in _moves(made)] == ([by] if by is not None else [])
    assert bool(made.launch) == (by is None)


def test_what_begins_again_at_its_target_is_charged_for_what_it_repeats() -> None:
    """Half a node of 0.10 for five hours done again is more than an hour of a machine."""
    left, right = nodes("left", "right")
    there = [
        msgspec.structs.replace(left, runtime="containerd://2.3.7"),
        msgspec.structs.replace(right, runtime="containerd://1.7.24"),
    ]
    stays = job_on("right", "two", disruption={MAY_MIGRATE: "false"})
    one = job_on("left", "one", left_s=9 * HOUR, ran_s=5 * HOUR)
    snapshot = make_snapshot(there, [one, stays, waits()], claims=tuple(map(ready_claim, there)))
    made = decided(snapshot, policy(MigrationMethod.KUBELET_CHECKPOINT))
    assert (_moves(made), [launch.flavour for launch in made.launch]) == ((), ["small"])


@pytest.mark.parametrize(
    ("left_s", "is_bought"),
    [
        pytest.param(4 * HOUR, False, id="who moves and who comes end before what is there"),
        pytest.param(60.0, True, id="a node of four times the price would be held an hour for it"),
    ],
)
def test_what_the_nodes_are_rented_longer_for_it_is_charged(left_s: float, is_bought: bool) -> None:
    there = [owned_node(name, flavour="dear", memory="4Gi") for name in ("left", "right")]
    pods = [job_on("left", "one", left_s=left_s), job_on("right", "two", left_s=left_s), waits()]
    made = decided(
        make_snapshot(there, pods, claims=tuple(map(ready_claim, there))), policy(max_rental_lengthening=None)
    )
    assert bool(made.launch) == is_bought
    assert bool(_moves(made)) != is_bought


@pytest.mark.parametrize(
    ("pods", "fields"),
    [
        pytest.param({"disruption": {"karpenter.sh/do-not-disrupt": "true"}}, {}, id="promised not to be disturbed"),
        pytest.param({"disruption": {MAY_MIGRATE: "false"}}, {}, id="opted out"),
        pytest.param({"scheduler": "default-scheduler"}, {}, id="another scheduler's"),
        pytest.param({"priority": 10}, {}, id="more important than who waits"),
        pytest.param({"labels": {"app": "x"}}, {"budgets": (budget(0, {"app": "x"}),)}, id="a budget that is used up"),
        pytest.param(
            {},
            {"failed_moves": FAILED},
            id="its last move failed",
        ),
        pytest.param({}, {"search": OptimizerState(is_under_way=True)}, id="a search is under way"),
        pytest.param({}, {"rearrangement": OpenRearrangement(NOW - 1, 0, victims=())}, id="another rearrangement is"),
        pytest.param({}, {"store_problem": "disk full"}, id="nothing can be journalled"),
        pytest.param({}, {"machine_times": MachineTimes(starts=(5.0,))}, id="a machine comes sooner"),
    ],
)
def test_nobody_is_moved_where_that_may_not_be(pods: dict[str, Any], fields: dict[str, Any]) -> None:
    snapshot = figure_1(left=job_on("left", "one", **pods), right=job_on("right", "two", **pods), **fields)
    made = decided(snapshot)
    assert not _moves(made)


@pytest.mark.parametrize(
    ("disruption", "is_moved"), [pytest.param(OPTED_IN, True, id="opted in"), pytest.param({}, False, id="has not")]
)
def test_services_move_if_they_have_opted_in(disruption: dict[str, str], is_moved: bool) -> None:
    """A service may be moved for more important work, where nothing can be bought; never for the bill's sake."""
    on = {
        node: running(make_pod(name, memory="2Gi", disruption=disruption), node)
        for node, name in (("left", "one"), ("right", "two"))
    }
    made = decided(figure_1(make_pod("three", memory="3Gi", priority=5), left=on["left"], right=on["right"]))
    assert bool(moved(made)) == is_moved
    assert bool(made.launch) != is_moved


def test_two_moves_make_room_where_one_does_not() -> None:
    there = nodes("a", "b", "c")
    pods = [job_on("a", f"a{i}", memory="1Gi", cpu="10m") for i in range(3)]
    pods += [job_on(name, name, memory="2500Mi", cpu="10m") for name in ("b", "c")]
    made = decided(make_snapshot(there, [*pods, waits("3Gi")], claims=tuple(map(ready_claim, there))))
    assert sorted((source, target) for _, source, target in moved(made)) == [("a", "b"), ("a", "c")]
    assert seated(made) == [("three", "a")]
    assert made.launch == ()


def test_three_moves_are_the_optimisers_matter() -> None:
    there = nodes("a", "b", "c", "d")
    pods = [job_on("a", f"a{i}", memory="1Gi", cpu="10m") for i in range(4)]
    pods += [job_on(name, name, memory="2800Mi", cpu="10m") for name in ("b", "c", "d")]
    made = decided(make_snapshot(there, [*pods, waits("3Gi")], claims=tuple(map(ready_claim, there))))
    assert moved(made) == []
    assert len(made.launch) == 1


def test_wishes_about_other_pods_hold_where_a_pod_goes() -> None:
    apart = constrained(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app="x")),))
    pods: dict[str, Any] = {"labels": {"app": "x"}, "constraints": apart}
    made = decided(figure_1(left=job_on("left", "one", **pods), right=job_on("right", "two", **pods)))
    assert moved(made) == []


def test_what_is_bought_for_others_is_bought_all_the_same() -> None:
    others = [make_job(f"other-{i}", HOUR, memory="15Gi", cpu="1") for i in range(2)]
    made = decided(figure_1(waits(), *others))
    assert [launch.flavour for launch in made.launch] == ["large", "large"]
    assert len(moved(made)) == 1


@pytest.mark.parametrize(
    ("waited_s", "is_bought"),
    [
        pytest.param(179.9, False, id="just less than it may"),
        pytest.param(180.0, True, id="as long as it may"),
    ],
)
def test_who_has_waited_as_long_as_it_may_is_bought_for(waited_s: float, is_bought: bool) -> None:
    by = policy(max_wait_for_capacity_s=180.0)
    made = decided(figure_1(waits(created_at=NOW - waited_s)), by)
    assert bool(made.launch) == is_bought
    assert bool(_moves(made)) != is_bought


def test_nothing_is_moved_where_more_work_is_to_come() -> None:
    """What is bought would be in use soon: a move would put it off by a moment."""
    came = [make_job(f"came-{i}", 60.0, memory="4Gi", created_at=NOW - 15 * i) for i in range(8)]
    snapshot = figure_1(waits(), *came)
    assert _moves(decided(snapshot, policy(look_ahead_s=120.0))) == ()
    assert _moves(decided(snapshot, policy())) != ()


@pytest.mark.parametrize(
    ("made", "is_moved"),
    [
        pytest.param(None, True, id="never moved off"),
        pytest.param(
            RoomMade(10**12, 10**12, 0, NOW - 60, NOW - 60), True, id="earlier moves have paid for themselves"
        ),
        pytest.param(
            RoomMade(10**14, 0, 10**8, NOW - 60, NOW + 60), False, id="earlier moves have cost more than that"
        ),
        pytest.param(
            RoomMade(10**14, 0, 10**11, NOW - 3600, NOW + 60), True, id="what they saved has come to as much since"
        ),
    ],
)
def test_what_moves_off_a_machine_cost_is_saved_first(made: RoomMade | None, is_moved: bool) -> None:
    memory = Memory(room_made={} if made is None else {"left": made, "right": made})
    found = decided(figure_1(memory=memory))
    assert bool(moved(found)) == is_moved
    if is_moved and made is not None:
        [(_, source, _)] = moved(found)
        assert found.memory.room_made[source].cost > made.cost


def test_a_purchase_ends_what_was_being_saved() -> None:
    made = RoomMade(10**12, 0, 10**8, NOW - 60, NOW + 3600)
    snapshot = figure_1(make_job("big", memory="15Gi"), memory=Memory(room_made={"left": made, "gone": made}))
    found = decided(snapshot)
    assert found.launch
    assert found.memory.room_made == {"left": msgspec.structs.replace(made, until=NOW)}


def test_on_nodes_without_a_price_lost_work_costs_what_a_flavour_asks_for_its_room() -> None:
    there = [make_node(name, memory="4Gi") for name in ("left", "right")]

    def made(ran_s: float) -> Plan:
        pods = [job_on("left", "one", ran_s=ran_s), job_on("right", "two", ran_s=ran_s), waits(runs_s=60.0)]
        return decided(make_snapshot(there, pods), policy(MigrationMethod.EVICT))

    assert len(moved(made(60.0))) == 1
    assert moved(made(HOUR)) == []


def test_it_is_told_to_who_waits_who_moves_and_who_reads_the_plan() -> None:
    snapshot = figure_1()
    made = decided(snapshot)
    [(name, source, target)] = moved(made)
    instead = f"moves default/{name} from {source} to {target} to make room instead of launching small: saves 0.10 USD an hour"
    assert f"has a reservation on {source}: {instead}" in explain_pod("three", snapshot, made, policy())
    told = explain_pod(name, snapshot, made, policy())
    assert f"is to move to {target} by checkpoint: HTAS {instead}" in told
    console = Console(record=True, width=200)
    console.print(plan_view(made))
    shown = console.export_text()
    assert "Move, instead of a launch" in shown
    assert instead in shown


def test_where_each_disruption_is_approved_it_is_asked_about_once_and_costs_nothing_until_then() -> None:
    snapshot = figure_1()
    made = decided(snapshot)
    [question] = questions_of(made, snapshot)
    assert (question.kind, question.why) == (QuestionKind.REARRANGE, _why(made))
    held = without(made, {question.id}, (), snapshot)
    assert (held.proposals, held.memory.room_made) == ((), {})
    begun = OpenRearrangement(NOW, 0, slots=(), why=_why(made))
    carried = msgspec.structs.replace(made, proposals=(), carry=Carrying(steps=_moves(made)))
    assert questions_of(carried, msgspec.structs.replace(snapshot, rearrangement=begun)) == []
