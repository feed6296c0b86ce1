"""Work that comes steadily: what is bought for little of it, and for services of which more may come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from htas.model.pods import Owner, Pod
from htas.model.policy import Cycles
from tests.builders import NOW, make_flavour, make_job, make_node, make_pod, make_policy, running
from tests.unit.planning.plans import bought, planned


def come(ages_s: list[float]) -> list[Pod]:
    """A job waits; others like it came so long ago, and run on a node that is full."""
    there = [running(make_job(f"j{age}", 600, memory="300Mi", created_at=NOW - age), "full", age) for age in ages_s]
    return [*there, make_job("waits", 600, memory="300Mi")]


FULL = make_node("full", "4", "4Gi", pods=4)


def test_a_job_that_comes_alone_gets_the_smallest_machine() -> None:
    assert bought(planned(come([310.0, 320.0, 330.0, 340.0]), nodes=[FULL])) == {"t3.xsmall": 1}


def test_where_work_comes_steadily_none_is_bought_that_is_dear_for_its_size() -> None:
    """Of a t3.xsmall a GiB costs 15 % more, and a tenth of each m3.xsmall stays empty; the next jobs fill the rest."""
    steadily = come([100.0, 70.0, 40.0, 20.0])
    assert set(bought(planned(steadily, make_policy(look_ahead_s=120.0), nodes=[FULL]))) == {"m3.small"}


def test_a_larger_machine_counts_with_as_much_steady_work_as_will_run_at_one_time() -> None:
    """Twelve jobs of ten minutes in two: 60 at a time, of 2 GiB each. They fill eight of the smaller machines, and
    little more than half of the larger one, which costs less a GiB only when it is full.
    """
    fitting, huge = make_flavour("fitting", "8", "16Gi", "0.40"), make_flavour("huge", "96", "210Gi", "4.0")
    ages = [float(age) for age in range(5, 120, 10)]
    there = [running(make_job(f"j{age}", 600, memory="2Gi", created_at=NOW - age), "full", age) for age in ages]
    policy = make_policy(flavours=[fitting, huge], look_ahead_s=120.0)
    waits = make_job("waits", 600, memory="2Gi")
    result = planned([*there, waits], policy, nodes=[make_node("full", "8", "24Gi", pods=12)])
    assert bought(result) == {"fitting": 1}


def test_no_larger_machine_is_bought_on_faith_for_a_hundredth() -> None:
    """Two jobs of 4 GiB fill an m1.medium, which is 0.1 % cheaper a GiB than an m3.small. It is bought for two that wait;
    for one, and the six that are still to come, machines are bought that each give back alone.
    """
    ages = [float(age) for age in range(5, 120, 10)]
    came = [make_job(f"j{age}", 600, cpu="1", memory="4Gi", created_at=NOW - age) for age in ages]
    there = [running(job, "full", age) for job, age in zip(came, ages, strict=True)]
    policy, nodes = make_policy(look_ahead_s=120.0), [make_node("full", "12", "48Gi", pods=12)]
    waiting = [make_job(name, 600, cpu="1", memory="4Gi") for name in ("waits", "waits-too")]
    assert bought(planned([*there, waiting[0]], policy, nodes=nodes)) == {"m3.small": 7}
    assert bought(planned([*there, *waiting], policy, nodes=nodes)) == {"m1.medium": 1, "m3.small": 6}


def test_without_looking_ahead_nothing_is_steady_and_what_waits_is_bought_for() -> None:
    """As in the paper, whatever came before (Algorithm 3)."""
    steadily = come([100.0, 70.0, 40.0, 20.0])
    policy = make_policy(look_ahead_s=0.0, cycles=Cycles(autoscaling_s=120.0))
    assert bought(planned(steadily, policy, nodes=[FULL])) == {"t3.xsmall": 1}


def test_a_burst_is_no_steady_work() -> None:
    assert bought(planned(come([20.0, 19.0, 18.0, 17.0]), nodes=[FULL])) == {"t3.xsmall": 1}


def service(number: int, age_s: float, **fields: Any) -> Pod:
    owner = Owner("ReplicaSet", f"web-{number}-5d8", f"uid-{number}", 1)
    template = f"Deployment/web-{number}"
    fields = {"memory": "400Mi", "created_at": NOW - age_s, "owner": owner, "template": template, **fields}
    return make_pod(fields.pop("name", f"web-{number}-{age_s:g}"), **fields)


def full_of(pods: list[Pod]) -> list[Any]:
    return [make_node("full", "4", "4Gi", pods=len(pods))] if pods else []


@pytest.mark.parametrize(
    ("there", "want"),
    [
        pytest.param([service(i, 280.0 * (i + 1)) for i in range(4)], "m3.xsmall", id="a service every five minutes"),
        pytest.param([service(i, 280.0 * (i + 1)) for i in range(2)], "t3.xsmall", id="two services in twenty minutes"),
        pytest.param([service(0, 280.0 * (i + 1)) for i in range(4)], "t3.xsmall", id="four pods of one service"),
        pytest.param([service(i, 30.0 + i) for i in range(8)], "t3.xsmall", id="eight services deployed at once"),
        pytest.param(
            [pod for i in range(4) for pod in (service(i, 9000.0), service(i, 280.0 * (i + 1)))],
            "t3.xsmall",
            id="four services that have been there, being rolled out",
        ),
        pytest.param(
            [service(i, 280.0 * (i + 1), owner=None, template="") for i in range(4)],
            "m3.xsmall",
            id="pods without a controller",
        ),
    ],
)
def test_services_that_came_of_late_tell_what_the_next_ones_need(there: list[Pod], want: str) -> None:
    pods = [*(running(pod, "full") for pod in there), service(9, 10.0, name="waits")]
    assert bought(planned(pods, nodes=full_of(there))) == {want: 1}


@pytest.mark.parametrize(
    ("apart_s", "want"),
    [
        pytest.param(900.0, "m3.xsmall", id="the second comes a quarter of an hour after the first"),
        pytest.param(1500.0, "t3.xsmall", id="it comes 25 minutes after"),
        pytest.param(30.0, "t3.xsmall", id="both are deployed in one go"),
    ],
)
def test_where_a_second_service_comes_there_may_be_a_third(apart_s: float, want: str) -> None:
    """A t3.xsmall has room for one of 600 MiB, and costs more than half an m3.xsmall, which has room for three."""
    there = [service(0, apart_s, memory="600Mi")]
    pods = [*(running(pod, "full") for pod in there), service(9, 0.0, name="waits", memory="600Mi")]
    assert bought(planned(pods, nodes=full_of(there))) == {want: 1}


def test_services_deployed_in_one_go_are_one_arrival_however_long_that_takes() -> None:
    """One every 20 s for ten minutes, by one who deploys thirty of them: no more come."""
    there = [service(i, 20.0 * i, memory="600Mi") for i in range(1, 30)]
    pods = [*(running(pod, "full") for pod in there), service(99, 0.0, name="waits", memory="600Mi")]
    nodes = [make_node("full", "40", "40Gi", pods=len(there))]
    assert bought(planned(pods, nodes=nodes)) == {"t3.xsmall": 1}


def come_in_turn(gb: Sequence[float]) -> list[Pod]:
    """Jobs of so many times 1,000 MiB and an eighth of a core for each, which came in 110 s; the last of them waits."""
    jobs = [
        make_job(f"j{i:02}", 600, cpu=f"{125 * of:.0f}m", memory=f"{1000 * of:.0f}Mi", created_at=NOW - age_s)
        for i, of in enumerate(gb)
        for age_s in (110.0 * (len(gb) - 1 - i) / (len(gb) - 1),)
    ]
    return [*(running(job, "full", NOW - job.created_at) for job in jobs[:-1]), jobs[-1]]


@pytest.mark.parametrize(
    ("gb", "has_medium"),
    [
        pytest.param([2.4, 2.4, 0.8, 1.6] * 3, True, id="an m3.small is often left with a third over"),
        pytest.param([4.0] * 12, False, id="a job fills an m3.small, and any larger one no better"),
        pytest.param([2.4, 2.4, 0.8, 1.6, 2.4, 0.8], False, id="six are too few to tell"),
    ],
)
def test_of_flavours_as_good_one_that_stays_fuller_is_bought(gb: list[float], has_medium: bool) -> None:
    policy = make_policy(look_ahead_s=120.0)
    result = planned(come_in_turn(gb), policy, nodes=[make_node("full", "12", "48Gi", pods=len(gb) - 1)])
    assert ("m1.medium" in bought(result)) is has_medium


def test_a_rollout_does_not_flip_the_purchase() -> None:
    """Forty pods are forty, and no more follow: the machines are those that are cheapest for forty."""
    owner = Owner("ReplicaSet", "web-5d8", "uid", 40)
    pods = [
        make_pod(
            f"web-{i:02}", "100m", "400Mi", owner=owner, template="Deployment/web", created_at=NOW - 900.0 * (i % 4)
        )
        for i in range(40)
    ]
    made = planned(pods)
    others = planned([msgspec.structs.replace(pod, created_at=NOW - 9000.0) for pod in pods])
    assert made.cost.after_nanos == others.cost.after_nanos


def test_a_what_if_expects_nothing_more() -> None:
    """The same cluster as a dump: the jobs in it came steadily, and the purchase is for the one that waits."""
    steadily = come([100.0, 70.0, 40.0, 20.0])
    assert bought(planned(steadily, nodes=[FULL])) == {"m3.small": 1}
    assert bought(planned(steadily, nodes=[FULL], expects_more=False)) == {"t3.xsmall": 1}
