"""Gathering: batch work that finds no room waits a moment for company, and is bought for together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from htas.model.constraints import Constraints, HostPort
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Fallback, FallbackMode, Limits, NodeGroup, Value, Workload
from htas.model.reasons import Unplaced
from htas.planning.planner import plan
from tests.builders import (
    NECTAR,
    NOW,
    batch_group,
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

FOR_S = 40.0
GROUPS = (batch_group(), NodeGroup("services", Workload.SERVICE))


def small(name: str, waited_s: float, **overrides: Any) -> Pod:
    """Half of the smallest machine of two GiB: two of them share one."""
    return make_job(name, 600, cpu="500m", memory="1Gi", created_at=NOW - waited_s, **overrides)


def came(count: int) -> tuple[Pod, ...]:
    """So many jobs came at once of late: nothing is bought ahead of need, but more may come."""
    pods = (make_job(f"came-{i}", 600, cpu="250m", created_at=NOW - 3 - i % 4) for i in range(count))
    return tuple(running(pod, "elsewhere", since_s=2) for pod in pods)


CAME, MANY = came(4), came(12)


def planned(pods: Iterable[Pod], nodes: Iterable[Any] = (), late: Iterable[Pod] = CAME, **policy: Any) -> Plan:
    flavours = policy.pop("flavours", NECTAR)
    rules = make_policy(GROUPS, flavours, **{"gather_s": FOR_S, **policy})
    late = tuple(late)
    machines = [*nodes, make_node("elsewhere", f"{250 * len(late)}m", "8Gi")]
    pods = [*pods, *late]
    claims = tuple(ready_claim(node) for node in machines if node.group)
    return plan(make_snapshot(machines, pods, claims=claims), rules, NOW)


def gathering(made: Plan) -> list[str]:
    return sorted(item.pod.removeprefix("default/") for item in made.unplaced if item.reason is Unplaced.GATHERING)


def bought_for(made: Plan) -> list[list[str]]:
    return sorted(sorted(key.removeprefix("default/") for key in launch.pods) for launch in made.launch)


@pytest.mark.parametrize(
    ("waited_s", "waits", "bought"),
    [
        pytest.param({"a": 0}, ["a"], [], id="a job that has just come waits for company"),
        pytest.param({"a": 39}, ["a"], [], id="a lone job waits almost to the end"),
        pytest.param({"a": 40}, [], [["a"]], id="nobody came: it is bought for alone"),
        pytest.param(
            {"a": 39, "b": 1}, [], [["a", "b"]], id="a second one comes: the two fill a machine, and none waits"
        ),
        pytest.param({"a": 39, "b": 1, "c": 1}, ["a", "b", "c"], [], id="a third one is alone, as the first was"),
        pytest.param({"a": 40, "b": 1}, [], [["a", "b"]], id="the oldest decides: one machine for both, at once"),
        pytest.param({"a": 400, "b": 0}, [], [["a", "b"]], id="who waited long takes along who has just come"),
    ],
)
def test_batch_work_waits_until_its_oldest_has_waited(
    waited_s: dict[str, float], waits: list[str], bought: list[list[str]]
) -> None:
    made = planned(small(name, ago) for name, ago in waited_s.items())
    assert (gathering(made), bought_for(made)) == (waits, bought)


def test_who_waits_is_told_for_what_and_how_long() -> None:
    (told,) = planned([small("a", 10)], [make_node("full", "250m", "8Gi")]).unplaced
    assert told.message == (
        "waits up to 40 s for more batch pods to launch machines for (gatherFor), which may save a pod 0.000477 USD; "
        "its waiting costs 0.000165"
    )
    assert told.nodes == {"Insufficient cpu": 2}


@pytest.mark.parametrize(
    ("came", "run_s", "hour", "waits"),
    [
        pytest.param(4, 600, None, ["a"], id="more are expected: two share a machine that is cheaper for its size"),
        pytest.param(0, 600, None, [], id="nobody came of late: it is bought for at once"),
        pytest.param(4, 60, None, [], id="so short that sharing saves less than waiting is worth"),
        pytest.param(1, 300, None, [], id="few are expected, and so little is saved"),
        pytest.param(1, 36_000, None, ["a"], id="few are expected, but they would share it for long"),
        pytest.param(4, 600, 10**9, [], id="waiting is worth a unit an hour"),
        pytest.param(1, 600, 0, ["a"], id="waiting is worth nothing"),
        pytest.param(
            0, 36_000, None, ["a"], id="nobody came of late, but somebody may, and would share it for very long"
        ),
    ],
)
def test_work_gathers_while_that_saves_more_than_the_waiting_is_worth(
    came: int, run_s: float, hour: int | None, waits: list[str]
) -> None:
    job = make_job("a", run_s, cpu="500m", memory="1Gi", created_at=NOW)
    made = planned([job], late=CAME[:came], value=Value(hour))
    assert gathering(made) == waits
    assert bool(made.launch) is not bool(waits)


def test_jobs_of_several_shapes_are_bought_for_together() -> None:
    """Alone each would get a machine of its own; the larger one leaves room for the smaller one on m3.small."""
    large = make_job("large", 600, cpu="1500m", memory="3Gi", created_at=NOW - 41)
    made = planned([large, small("a", 1)])
    assert Counter(launch.flavour for launch in made.launch) == {"m3.small": 1}
    assert not made.unplaced


def test_only_who_finds_no_room_counts_for_the_oldest() -> None:
    """The one that has waited for a minute takes the room there is; who is left has come just now, and waits."""
    node = owned_node("node", "batch", "m3.xsmall", cpu="500m", memory="2Gi")
    made = planned([small("old", 60), small("new", 5)], [node], MANY)
    assert [bind.pod for bind in made.bind] == ["default/old"]
    assert (gathering(made), made.launch) == (["new"], ())


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("pod", "500m", "1Gi", created_at=NOW - 1), id="a service"),
        pytest.param(
            small("pod", 1, scheduler="default-scheduler", is_unschedulable=True), id="another scheduler's job"
        ),
    ],
)
@pytest.mark.parametrize("company", [pytest.param([], id="alone"), pytest.param([small("a", 1)], id="beside a job")])
def test_who_does_not_gather_is_bought_for_at_once(pod: Pod, company: list[Pod]) -> None:
    made = planned([pod, *company])
    assert bought_for(made) == [["pod"]]
    assert gathering(made) == [job.name for job in company]


SHAPED = {"cpu": "500m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("beside", "waits"),
    [
        pytest.param([], ["a"], id="alone it waits for company"),
        pytest.param([make_job("b", 600, created_at=NOW, **SHAPED)], [], id="with another one it fills a machine"),
        pytest.param(
            [make_job("b", 600, created_at=NOW, cpu="4", memory="16Gi")], ["a"], id="a job of another size is none"
        ),
        pytest.param(
            [make_job("b", 600, created_at=NOW - 3600, cpu="64", memory="1Ti")],
            ["a"],
            id="what nothing can be bought for does not end its wait",
        ),
    ],
)
def test_each_kind_of_pods_waits_for_company_of_its_own(beside: list[Pod], waits: list[str]) -> None:
    assert gathering(planned([small("a", 0), *beside])) == waits


def test_thirty_small_jobs_do_not_wait_because_one_of_ten_hours_would() -> None:
    long = make_job("long", 36_000, cpu="600m", memory="1100Mi", created_at=NOW)
    made = planned([*(small(f"small-{i}", 0) for i in range(30)), long])
    assert gathering(made) == ["long"]
    assert sum(len(launch.pods) for launch in made.launch) == 30


def test_a_job_that_takes_its_nodes_port_has_no_company() -> None:
    constraints = Constraints(host_ports=(HostPort(8080),))
    made = planned([make_job("a", 36_000, created_at=NOW, constraints=constraints, **SHAPED)])
    assert (gathering(made), bought_for(made)) == ([], [["a"]])


def test_nobody_waits_for_machines_that_there_are_no_more_of() -> None:
    """Forty a machine for 0.06, of which there is one; else one a machine for 0.03: more company costs what it costs."""
    flavours = (make_flavour("small", "1", "2Gi", "0.03"), make_flavour("much", "40", "80Gi", "0.06", stock=1))
    jobs = [make_job(f"job-{i}", 3600, cpu="900m", memory="1Gi", created_at=NOW) for i in range(60)]
    made = planned(jobs, flavours=flavours)
    assert gathering(made) == []
    assert Counter(launch.flavour for launch in made.launch) == {"much": 1, "small": 16}


@pytest.mark.parametrize(
    ("ahead_s", "waits"),
    [
        pytest.param(2, ["a"], id="clocks differ by two seconds: it waits as others do"),
        pytest.param(3600, [], id="an hour ahead of ours: it would have waited for an hour"),
    ],
)
def test_a_job_whose_clock_is_ahead(ahead_s: float, waits: list[str]) -> None:
    made = planned([small("a", -ahead_s)])
    assert gathering(made) == waits
    assert all("its waiting costs 0.00022" in told.message for told in made.unplaced)


def test_amounts_too_small_for_a_millionth_are_told_all_the_same() -> None:
    cheap = (make_flavour("a", "1", "1Gi", "0.00002"), make_flavour("b", "2", "2Gi", "0.00003"))
    (told,) = planned([small("a", 0)], flavours=cheap).unplaced
    assert told.message.endswith("which may save a pod 0.000000611 USD; its waiting costs 0.000000222")


def test_another_schedulers_job_does_not_end_the_wait_of_ours() -> None:
    made = planned([small("theirs", 300, scheduler="default-scheduler", is_unschedulable=True), small("ours", 5)])
    assert (gathering(made), bought_for(made)) == (["ours"], [["theirs"]])


def test_who_waits_for_room_about_to_free_waits_for_that_and_does_not_decide() -> None:
    """A job ends in half a minute, whose room suits the old one alone: the new one gathers by its own wait."""
    node = owned_node("full", "batch", "m3.xsmall", cpu="500m", memory="1Gi")
    ends = running(make_job("ends", 600, cpu="500m", memory="1Gi"), "full", since_s=570)
    new = make_job("new", 600, cpu="500m", memory="1100Mi", created_at=NOW - 5)
    made = planned([ends, small("old", 60), new], [node])
    reasons = {item.pod.removeprefix("default/"): item.reason for item in made.unplaced}
    assert (reasons, made.launch) == ({"old": Unplaced.CAPACITY_FREES_SOON, "new": Unplaced.GATHERING}, ())


STEADY = tuple(
    running(make_job(f"came-{age}", 600, cpu="500m", memory="1Gi", created_at=NOW - age), "full", since_s=age - 1)
    for age in (10, 40, 70, 100)
)
"""One job every half minute on a node that they fill: two more are expected."""


@pytest.mark.parametrize(
    ("look_ahead_s", "waits"),
    [
        pytest.param(120.0, [], id="machines are bought for work that is expected: nobody waits for company"),
        pytest.param(0.0, ["a"], id="nothing is expected: it waits for company"),
    ],
)
def test_nobody_gathers_when_machines_are_bought_ahead_of_need(look_ahead_s: float, waits: list[str]) -> None:
    full = owned_node("full", "batch", "m3.small", cpu="2", memory="4Gi")
    made = planned([*STEADY, small("a", 1)], [full], look_ahead_s=look_ahead_s)
    assert gathering(made) == waits
    assert bool(made.launch) is not waits


def test_with_zero_seconds_each_job_is_bought_for_at_once() -> None:
    made = planned([small("a", 0)], gather_s=0.0)
    assert (gathering(made), bought_for(made)) == ([], [["a"]])


@pytest.mark.parametrize(
    ("waited_s", "leaves"),
    [
        pytest.param(39, [], id="it gathers: whether anything can be bought is not known yet"),
        pytest.param(40, ["default/low"], id="it has gathered, and nothing can be bought"),
    ],
)
def test_nobody_is_preempted_for_work_that_gathers(waited_s: float, leaves: list[str]) -> None:
    low = running(make_job("low", 3600, cpu="800m", memory="1Gi"), "node", since_s=600)
    made = planned(
        [low, small("high", waited_s, priority=100)],
        [make_node("node", "1", "4Gi")],
        limits=Limits(max_nodes=0),
        fallback=Fallback(mode=FallbackMode.PREEMPT),
    )
    assert [item.pod for item in made.preempt] == leaves


@pytest.mark.parametrize("oldest_s", [pytest.param(5, id="while they gather"), pytest.param(41, id="when they have")])
def test_every_waiting_pod_is_placed_once_or_told_once(oldest_s: float) -> None:
    """Eight jobs of one shape: one has room, one has soon, the others have none; four of another shape, a service."""
    there = owned_node("there", "batch", "m3.xsmall", cpu="500m", memory="1Gi")
    busy = owned_node("busy", "batch", "m3.xsmall", cpu="500m", memory="1Gi")
    ends = running(make_job("ends", 600, cpu="500m", memory="1Gi"), "busy", since_s=570)
    waiting = [
        *(small(f"small-{i}", oldest_s - 0.1 * i) for i in range(8)),
        *(make_job(f"large-{i}", 600, cpu="450m", memory="1100Mi", created_at=NOW - 1) for i in range(4)),
        make_pod("service", "500m", "1Gi"),
    ]
    made = planned([ends, *waiting], [there, busy], MANY, value=Value(0))
    placed = [bind.pod for bind in made.bind] + [key for launch in made.launch for key in launch.pods]
    told = [item.pod for item in made.unplaced]
    assert Counter(placed + told) == Counter(pod.key for pod in waiting)
    assert len(gathering(made)) == (10 if oldest_s < FOR_S else 0)
