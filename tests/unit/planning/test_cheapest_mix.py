"""Purchases by the cheapest mix, as plans show them."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest

from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import AutoscalingAlgorithm, Fallback, FallbackMode, Limits, NodeGroup, Policy, Workload
from htas.model.reservations import Reservation
from htas.model.snapshot import Memory
from htas.planning.planner import plan
from htas.planning.provision.bound import lower_bound_nanos
from tests.builders import (
    NECTAR,
    NOW,
    batch_group,
    labels_are,
    make_flavour,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    running,
)
from tests.stories.play import Story, job
from tests.unit.planning.plans import bought

MIX = {"autoscaling": AutoscalingAlgorithm.CHEAPEST_MIX, "mix_budget_s": 0.3}


def mixed(pods: list[Pod], flavours: Any = NECTAR, group: Any = MIX, **policy: Any) -> Plan:
    groups = [NodeGroup("any", Workload.ANY, **group)]
    return plan(make_snapshot([], pods), make_policy(groups, flavours, **policy), NOW)


def services(count: int, seed: int) -> list[Pod]:
    random = Random(seed)
    return [
        make_pod(f"p{i}", f"{random.randint(1, 18) * 100}m", f"{random.randint(1, 30) * 128}Mi") for i in range(count)
    ]


def fluid_bound(pods: list[Pod]) -> int:
    """What the work costs at least if it fills machines like a fluid."""
    asked = [sum(pod.requests.cpu_m for pod in pods), sum(pod.requests.memory_bytes for pod in pods)]
    sold = [(flavour.allocatable.cpu_m, flavour.allocatable.memory_bytes) for flavour in NECTAR]
    return lower_bound_nanos(asked, sold, [flavour.nanos_per_hour for flavour in NECTAR])


@pytest.mark.parametrize("seed", range(6))
def test_the_mix_is_never_dearer_than_the_greedy_and_never_below_its_bound(seed: int) -> None:
    pods = services(25, seed)
    greedy, mix = mixed(pods, group={}), mixed(pods)
    assert not mix.unplaced
    assert sorted(pod for item in mix.launch for pod in item.pods) == sorted(pod.key for pod in pods)
    assert fluid_bound(pods) <= mix.cost.after_nanos <= greedy.cost.after_nanos


def test_it_buys_what_the_greedy_misses() -> None:
    """Three pods of two cores: the greedy's best score is the four-core machine, and then another for what is left."""
    flavours = [make_flavour("four", "4", "8Gi", "0.19"), make_flavour("six", "6", "12Gi", "0.30")]
    pods = [make_pod(f"p{i}", "2", "1Gi") for i in range(3)]
    assert bought(mixed(pods, flavours)) == {"six": 1}


def test_a_fee_by_the_node_makes_large_machines_cheaper() -> None:
    small, large = make_flavour("small", "1", "2Gi", "0.03"), make_flavour("large", "4", "8Gi", "0.13")
    pods = [make_pod(f"p{i}", "1", "1Gi") for i in range(4)]
    assert bought(mixed(pods, [small, large])) == {"small": 4}
    fee = 10_000_000
    dearer = [
        msgspec.structs.replace(f, nanos_per_hour=f.nanos_per_hour + fee, fee_nanos_per_hour=fee)
        for f in (small, large)
    ]
    result = mixed(pods, dearer)
    assert bought(result) == {"large": 1}
    assert result.cost.after_nanos == 140_000_000


def test_jobs_that_end_together_share_a_machine() -> None:
    """Two run for 3 minutes and two for 11, two to a machine: by expected rental the long ones belong together."""
    flavour = make_flavour("two", "2", "4Gi", "0.10")
    pods = [
        make_job(name, runs, cpu="1", memory="1Gi") for name, runs in (("a", 180), ("b", 660), ("c", 180), ("d", 660))
    ]
    result = plan(make_snapshot([], pods), make_policy([batch_group(**MIX)], [flavour]), NOW)
    assert sorted(item.pods for item in result.launch) == [("default/a", "default/c"), ("default/b", "default/d")]


@pytest.mark.parametrize(
    "limits", [Limits(max_nodes=3), Limits(max_cpu_m=8000), Limits(max_nanos_per_hour=250_000_000)], ids=str
)
def test_limits_hold(limits: Limits) -> None:
    result = mixed([make_pod(f"p{i}", "500m", "900Mi") for i in range(12)], limits=limits)
    flavours = {flavour.name: flavour for flavour in NECTAR}
    machines = [flavours[item.flavour] for item in result.launch]
    assert machines
    assert limits.max_nodes is None or len(machines) <= limits.max_nodes
    assert limits.max_cpu_m is None or sum(f.capacity.cpu_m for f in machines) <= limits.max_cpu_m
    assert limits.max_nanos_per_hour is None or sum(f.nanos_per_hour for f in machines) <= limits.max_nanos_per_hour


def test_a_flavours_stock_is_bought_and_no_more() -> None:
    few = make_flavour("few", "2", "4Gi", "0.01", stock=2)
    result = mixed([make_pod(f"p{i}", "2", "1Gi") for i in range(4)], [few, make_flavour("many", "2", "4Gi", "0.10")])
    assert bought(result) == {"few": 2, "many": 2}


def test_zones_are_bought_in_balance() -> None:
    zoned = [msgspec.structs.replace(flavour, zones=("a", "b", "c")) for flavour in NECTAR]
    result = mixed([make_pod(f"p{i}", "1", "1Gi") for i in range(6)], zoned)
    assert Counter(item.zone for item in result.launch) == {"a": 2, "b": 2, "c": 2}


def test_work_with_wishes_about_other_pods_is_bought_for_as_well() -> None:
    apart = Constraints(anti_affinity=(PodAffinityTerm("kubernetes.io/hostname", labels_are(app="web")),))
    webs = [make_pod(f"w{i}", labels={"app": "web"}, constraints=apart) for i in range(3)]
    result = mixed([*webs, *services(6, 1)])
    assert not result.unplaced
    assert all(sum("/w" in pod for pod in item.pods) <= 1 for item in result.launch)


def test_free_room_is_used_before_anything_is_bought() -> None:
    policy = make_policy([NodeGroup("any", Workload.ANY, **MIX)])  # type: ignore[arg-type]
    result = plan(make_snapshot([make_node("there", "4", "8Gi")], [make_pod("p", "1", "1Gi")]), policy, NOW)
    assert [bind.node for bind in result.bind] == ["there"]
    assert not result.launch


def tight() -> tuple[Policy, list[tuple[str, int]]]:
    """Sizes in cores that fill machines of ten in one way: 6 + 4, 5 + 5, 7 + 3. Best fit puts 5 beside 4 or 3."""
    flavour = make_flavour("ten", "10", "64Gi", "1.0")
    policy = make_policy([batch_group(**MIX)], [flavour])
    return policy, [("a", 6), ("b", 4), ("c", 5), ("d", 5), ("e", 7), ("f", 3)]


def test_what_was_bought_for_a_mix_holds_it_when_the_machines_come() -> None:
    policy, sizes = tight()
    arrivals = [job(name, runs_s=600, cpu_m=cores * 1000, gib=1 + i / 8) for i, (name, cores) in enumerate(sizes)]
    story = Story(policy, *arrivals).play(2400)
    story.assert_over(6)
    assert len(story.store.bills()) == 3


def test_a_tight_mix_is_found_again_where_somebody_more_important_preempts() -> None:
    """Two machines of 10 GiB were bought for 4, 3 and 3 GiB each; best fit puts both 4 GiB on one of them."""
    nodes = [make_node("a", "64", "10Gi"), make_node("b", "64", "10Gi"), make_node("c", "64", "20Gi")]
    sizes = [("a4", 4), ("a3", 3), ("a3b", 3), ("b4", 4), ("b3", 3), ("b3b", 3)]
    mix = [make_pod(name, "100m", f"{gib}Gi", priority=50) for name, gib in sizes]
    low = running(make_pod("low", "1", "20Gi", priority=0), "c")
    high = make_pod("high", "1", "20Gi", priority=100)
    memory = Memory(reservations={pod.key: Reservation(pod.name[0], NOW - 60) for pod in mix})
    policy = make_policy(flavours=NECTAR[:1], fallback=Fallback(mode=FallbackMode.PREEMPT))
    result = plan(make_snapshot(nodes, [low, high, *mix], memory=memory), policy, NOW)
    assert [victim.pod for victim in result.preempt] == ["default/low"]
    assert {bind.pod for bind in result.bind} == {pod.key for pod in mix}


def test_the_same_seed_gives_the_same_history() -> None:
    def played() -> Story:
        arrivals = [job(f"j{i}", at_s=i % 3, runs_s=200 + 40 * (i % 5), cpu_m=300 + 100 * (i % 4)) for i in range(12)]
        return Story(make_policy([batch_group(**MIX)]), *arrivals).play(1800)

    first, second = played(), played()
    assert msgspec.json.encode(first.world.ledger) == msgspec.json.encode(second.world.ledger)
    assert first.messages == second.messages
