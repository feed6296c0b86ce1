"""Batch work is not put where it would have a machine rented for much more than one of its own costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from htas.documents.explain import explain_pod
from htas.model.billing import Billing
from htas.model.claims import ClaimState, NodeClaim
from htas.model.flavours import Catalogue
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import CleaningRules, Limits, NodeGroup
from htas.model.reasons import Unplaced
from htas.model.reservations import Reservation
from htas.model.snapshot import Backoff, ClusterSnapshot, Memory
from htas.planning.planner import plan
from tests.builders import (
    NECTAR,
    NOW,
    batch_group,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

HOURS = 3600.0
HOURLY = Catalogue(NECTAR, billing=Billing(3600, 3600))


def large(**overrides: Any) -> Any:
    """An m1.xlarge, 27 times as dear as the smallest flavour."""
    return owned_node("large", "batch", "m1.xlarge", cpu="8", memory="32Gi", **overrides)


ENDING = running(make_job("ending", 120.0), "large", since_s=60.0)
LONG = make_job("long", 10 * HOURS)


def seen(
    pods: Iterable[Pod], nodes: Iterable[Any] = (large(),), held_s: float = HOURS, **fields: Any
) -> ClusterSnapshot:
    machines = list(nodes)
    claims = tuple(ready_claim(node, held_s) for node in machines if node.group)
    return make_snapshot(machines, pods, **{"claims": claims, **fields})


def planned(snapshot: ClusterSnapshot, **policy: Any) -> Plan:
    return plan(snapshot, make_policy(policy.pop("groups", [batch_group()]), **{"look_ahead_s": 0.0, **policy}), NOW)


def bound(made: Plan) -> list[str]:
    return sorted(item.pod.removeprefix("default/") for item in made.bind)


def bought(made: Plan) -> list[str]:
    return [item.flavour for item in made.launch]


def test_who_comes_first_uses_the_time_for_which_one_behind_it_has_the_node_rented() -> None:
    """The overdue job goes wherever there is room. Then the other one adds nothing there, and waits for nothing to end."""
    node = owned_node("medium", "batch", "m1.medium", cpu="2", memory="8Gi")
    ending = running(make_job("ending", 30.0), "medium", since_s=0.0)
    overdue = make_job("overdue", 300.0, created_at=NOW - 180.0)
    first = make_job("first", 300.0, created_at=NOW, priority=10)
    made = planned(seen([ending, first, overdue], [node], held_s=200.0), look_ahead_s=120.0)
    assert (bound(made), bought(made), made.unplaced) == (["first", "overdue"], [], ())


def test_a_long_job_gets_a_machine_of_its_own() -> None:
    """Ten hours of an m1.xlarge are 5.48 USD, of a t3.xsmall 0.2: 27 times as much."""
    made = planned(seen([ENDING, LONG]))
    assert (bound(made), bought(made)) == ([], ["t3.xsmall"])


@pytest.mark.parametrize(
    ("pods", "fields", "policy"),
    [
        pytest.param([ENDING, make_job("short", 60.0)], {}, {}, id="a job that ends before the others"),
        pytest.param(
            [ENDING, make_job("short", 300.0, cpu="2", memory="6Gi")],
            {},
            {},
            id="a job that lengthens the rental by little",
        ),
        pytest.param(
            [running(make_job("other", 9 * HOURS), "large"), LONG], {}, {}, id="a job that lengthens it by a tenth"
        ),
        pytest.param([ENDING, LONG], {}, {"max_rental_lengthening": None}, id="the rule is off"),
        pytest.param([ENDING, LONG], {}, {"max_rental_lengthening": 30.0}, id="more may be paid"),
        pytest.param([ENDING, LONG], {}, {"limits": Limits(max_nodes=1)}, id="a limit: nothing can be bought"),
        pytest.param([ENDING, LONG], {"cloud_problem": "HTTP 503"}, {}, id="the cloud is away"),
        pytest.param([ENDING, LONG], {"backoffs": (Backoff(None, None, NOW + 60, "no"),)}, {}, id="all has failed"),
        pytest.param(
            [ENDING, make_job("long", 10 * HOURS, created_at=NOW - 181)], {}, {}, id="it waits too long, for nothing"
        ),
        pytest.param(
            [ENDING, make_job("long", 10 * HOURS, constraints=make_pod().constraints, cpu="7", memory="24Gi")],
            {},
            {},
            id="its own machine would be no smaller",
        ),
        pytest.param([ENDING, LONG], {}, {"groups": (batch_group(min_nodes=1),)}, id="the node stays in any case"),
        pytest.param(
            [ENDING, LONG],
            {},
            {"groups": (batch_group(cleaning=CleaningRules(enabled=False)),)},
            id="no node is given back",
        ),
        pytest.param(
            [ENDING, running(make_pod("web"), "large"), LONG], {}, {}, id="a service holds the node in any case"
        ),
        pytest.param([ENDING, make_pod("web")], {}, {"groups": (NodeGroup("batch"),)}, id="services are never refused"),
        pytest.param(
            [ENDING, *(make_job(f"j{i:02d}", 10 * HOURS, memory="1500Mi") for i in range(12))],
            {},
            {},
            id="together they are worth the machine",
        ),
    ],
)
def test_room_is_room(pods: list[Pod], fields: dict[str, Any], policy: dict[str, Any]) -> None:
    made = planned(seen(pods, **fields), **policy)
    assert bound(made) == sorted(pod.name for pod in pods if pod.node is None)
    assert not bought(made)


def test_who_is_bought_nothing_for_has_room_all_the_same() -> None:
    """One more machine may be bought, for one of two: nobody is preempted for the other while a node has room."""
    jobs = [make_job(name, 10 * HOURS, cpu="800m", memory="800Mi") for name in ("a", "b")]
    groups = [batch_group(flavours=("t3.xsmall",))]
    made = planned(seen([ENDING, *jobs]), groups=groups, limits=Limits(max_nodes=2))
    assert (bought(made), [item.node for item in made.nominate]) == (["t3.xsmall"], ["large"])
    assert not made.unplaced


def test_nodes_that_others_bought_are_free() -> None:
    made = planned(seen([LONG], [make_node("theirs", "8", "32Gi")]))
    assert bound(made) == ["long"]


def test_an_empty_node_is_charged_by_the_share_that_is_used() -> None:
    """An eighth of an m1.xlarge costs 3.5 times a t3.xsmall, a hundredth less than that: both are below eight times."""
    for cpu in ("1", "100m"):
        assert bound(planned(seen([make_job("long", 10 * HOURS, cpu=cpu)]))) == ["long"]
    assert bought(planned(seen([make_job("long", 10 * HOURS, cpu="1")]), max_rental_lengthening=1.5)) == ["t3.xsmall"]


@pytest.mark.parametrize(
    ("held_s", "flavours"),
    [
        pytest.param(600.0, [], id="the hour is paid, and the job ends in it"),
        pytest.param(3000.0, ["t3.xsmall"], id="it would begin another hour"),
    ],
)
def test_what_is_paid_already_costs_nothing(held_s: float, flavours: list[str]) -> None:
    job = make_job("half an hour", 1800.0)
    made = planned(seen([ENDING, job], held_s=held_s), catalogue=HOURLY)
    assert bought(made) == flavours


def test_a_machine_that_was_bought_for_a_job_is_room_for_it() -> None:
    """More important work came first on it, and ends long before."""
    fields: dict[str, Any] = {"memory": Memory(reservations={"default/long": Reservation("large", NOW)})}
    made = planned(seen([ENDING, LONG], **fields))
    assert (bound(made), bought(made)) == (["long"], [])


def test_whom_a_machine_was_bought_for_is_remembered_until_it_is_placed() -> None:
    first = planned(seen([ENDING, LONG]))
    (launch,) = first.launch
    assert first.memory.reservations == {"default/long": Reservation(launch.claim, NOW)}
    coming = NodeClaim(launch.claim, "batch", launch.flavour, ClaimState.REQUESTED, NOW, NOW)
    claims = (ready_claim(large()), coming)
    second = planned(seen([ENDING, LONG], claims=claims, memory=first.memory))
    assert ([item.node for item in second.nominate], bought(second)) == ([launch.claim], [])
    assert second.memory.reservations == first.memory.reservations


def test_a_pod_that_waits_for_the_next_cycle_is_told_which_room_is_too_dear() -> None:
    policy = make_policy([batch_group()], look_ahead_s=0.0)
    (told,) = plan(seen([ENDING, LONG]), policy, NOW, frozenset()).unplaced
    assert told.reason is Unplaced.OWN_MACHINE_CHEAPER
    assert told.message == (
        "large has room, but would be rented 35940 s longer for it, at 5.469868333 USD: more than 4 times a t3.xsmall "
        "of its own (0.19833); waits for the next cycle; 0/1 nodes are available"
    )
    assert told.nodes == {"would be rented too long for it": 1}


def test_explaining_a_job_that_is_bought_for_names_the_room_it_did_not_get() -> None:
    snapshot, policy = seen([ENDING, LONG]), make_policy([batch_group()], look_ahead_s=0.0)
    lines = explain_pod("long", snapshot, plan(snapshot, policy, NOW), policy)
    assert any(
        line.startswith("OwnMachineCheaper: large has room, but would be rented 35940 s longer") for line in lines
    )
