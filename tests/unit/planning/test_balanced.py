"""Diverse work: machines are filled with pods whose ratio of cpu to memory matches what is left."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest

from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.flavours import ZonePrice
from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Limits, NodeGroup
from htas.planning.planner import plan
from htas.planning.provision.bound import lower_bound_nanos
from tests.builders import NOW, labels_are, make_flavour, make_pod, make_policy, make_snapshot

RATIOS = [
    make_flavour(f"{family}.{cores}", str(cores), f"{cores * gib}Gi", f"{cores * unit:.4f}")
    for family, gib, unit in (("c", 2, 0.021), ("m", 4, 0.0262), ("r", 8, 0.0365))
    for cores in (2, 4, 8, 16)
]


def diverse(seed: int, kinds: int = 120, spread: float = 1.0) -> list[Pod]:
    """Kinds of one to six pods, from core-heavy to memory-heavy."""
    random = Random(seed)
    pods = []
    for kind in range(kinds):
        cores = min(6000, max(25, int(random.lognormvariate(5.3, spread)) // 25 * 25))
        memory = min(28_000, max(64, int(cores * random.choice([1.2, 2, 3.5, 6, 9])) // 64 * 64))
        pods += [make_pod(f"k{kind}-{n}", f"{cores}m", f"{memory}Mi") for n in range(random.randint(1, 6))]
    return pods


def price(made: Plan) -> int:
    return sum(item.nanos_per_hour for item in made.launch)


def bound(pods: list[Pod]) -> int:
    demand = sum(pod.requests.cpu_m for pod in pods), sum(pod.requests.memory_bytes for pod in pods)
    sold = [(flavour.allocatable.cpu_m, flavour.allocatable.memory_bytes) for flavour in RATIOS]
    return lower_bound_nanos(demand, sold, [flavour.nanos_per_hour for flavour in RATIOS])


@pytest.mark.parametrize("seed", range(4))
def test_diverse_work_costs_little_more_than_if_it_were_fluid(seed: int) -> None:
    """Filled largest first, machines for such work cost 6 to 11 % more than that."""
    pods = diverse(seed)
    made = plan(make_snapshot([], pods), make_policy([NodeGroup("any")], RATIOS), NOW)
    assert not made.unplaced
    assert price(made) <= 1.05 * bound(pods)


def test_core_heavy_pods_share_machines_with_memory_heavy_ones() -> None:
    """Eight of each: four machines in pairs, six by size."""
    flavour = make_flavour("only", "8", "32Gi", "1.00")
    pods = [
        make_pod(f"{name}{n}", cpu, memory)
        for n in range(8)
        for name, cpu, memory in (("c", "3", "4Gi"), ("m", "1", "12Gi"))
    ]
    made = plan(make_snapshot([], pods), make_policy([NodeGroup("any")], [flavour]), NOW)
    assert [len(item.pods) for item in made.launch] == [4, 4, 4, 4]
    assert {Counter(pod.removeprefix("default/")[0] for pod in item.pods)["c"] for item in made.launch} == {2}


def test_promises_between_pods_hold_on_machines_filled_so() -> None:
    """Each kind keeps its pods apart."""
    apart = [
        make_pod(
            f"a{kind}-{n}",
            f"{200 + kind}m",
            f"{300 + 7 * kind}Mi",
            labels={"app": f"a{kind}"},
            constraints=Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app=f"a{kind}")),)),
        )
        for kind in range(70)
        for n in range(3)
    ]
    made = plan(make_snapshot([], apart), make_policy([NodeGroup("any")], RATIOS), NOW)
    assert not made.unplaced
    for item in made.launch:
        kinds = [pod.partition("-")[0] for pod in item.pods]
        assert len(kinds) == len(set(kinds))


def test_machines_are_spread_over_zones_and_limits_hold() -> None:
    sold = [make_flavour("one", "8", "32Gi", "1.00", zones=("x", "y"))]
    group = NodeGroup("any", limits=Limits(max_nodes=3))
    made = plan(make_snapshot([], diverse(1, kinds=100, spread=0.4)), make_policy([group], sold), NOW)
    assert len(made.launch) == 3
    assert sorted(Counter(item.zone for item in made.launch).values()) == [1, 2]
    assert made.unplaced


@pytest.mark.parametrize("dear", [pytest.param("a", id="the first by name"), pytest.param("z", id="the last")])
def test_machines_are_launched_in_the_zone_where_they_are_cheap(dear: str) -> None:
    """Zones are not kept in balance where their prices differ: 7 of 16 machines cost eight times the price."""
    flavour = make_flavour("one", "8", "32Gi", "0.10", zones=("m", dear))
    prices = (ZonePrice("m", flavour.nanos_per_hour), ZonePrice(dear, 8 * flavour.nanos_per_hour))
    policy = make_policy([NodeGroup("any")], [msgspec.structs.replace(flavour, prices=prices)])
    made = plan(make_snapshot([], diverse(1)), policy, NOW)
    assert {(item.zone, item.nanos_per_hour) for item in made.launch} == {("m", flavour.nanos_per_hour)}
    assert not made.unplaced


def test_a_machine_in_a_dear_zone_holds_a_pod_that_is_bound_to_it() -> None:
    sold = make_flavour("one", "8", "32Gi", "0.10", zones=("a", "z"))
    prices = (ZonePrice("a", 8 * sold.nanos_per_hour), ZonePrice("z", sold.nanos_per_hour))
    policy = make_policy([NodeGroup("any")], [msgspec.structs.replace(sold, prices=prices)])
    in_a = Constraints(node_selector=((ZONE_LABEL, "a"),))
    bound_to_a = [make_pod(f"a{i}", f"{500 + 7 * i}m", f"{3000 - 20 * i}Mi", constraints=in_a) for i in range(10)]
    made = plan(make_snapshot([], [*diverse(1), *bound_to_a]), policy, NOW)
    assert not made.unplaced
    keys = {pod.key for pod in bound_to_a}
    assert {item.zone == "a" for item in made.launch if keys & {*item.pods}} == {True}
    assert {item.zone for item in made.launch if not keys & {*item.pods}} == {"z"}
