"""Prices that differ by zone: what is launched where, what nodes are worth, and what limits and bounds count."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.billing import Billing, Cap, Price
from htas.model.flavours import Catalogue, Flavour, ZonePrice, dominating
from htas.model.money import parse_price
from htas.model.nodes import ZONE_LABEL
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import AutoscalingAlgorithm, Limits, NodeGroup
from htas.planning.rental.bills import RunningBill
from tests.builders import (
    NOW,
    make_flavour,
    make_job,
    make_node,
    make_pod,
    make_policy,
    owned_node,
    ready_claim,
    running,
)
from tests.unit.planning.plans import planned


def zoned(name: str, size: str, **by_zone: str) -> Flavour:
    """A flavour of so many cores and twice as much memory, with its prices by zone."""
    prices = tuple(ZonePrice(zone, parse_price(price)) for zone, price in by_zone.items())
    cheapest = min(by_zone.values(), key=float)
    zones = tuple(by_zone)
    return make_flavour(name, size, f"{2 * int(size)}Gi", cheapest, zones=zones, prices=prices)


M = zoned("m", "4", a="0.20", b="0.26")
L = zoned("l", "8", a="0.60", b="0.30")


def launched(made: Plan) -> list[tuple[str, str | None, int]]:
    return sorted((item.flavour, item.zone, item.nanos_per_hour // 10**7) for item in made.launch)


def _in(pod: Pod, zone: str) -> Pod:
    wanted = msgspec.structs.replace(pod.constraints, node_selector=((ZONE_LABEL, zone),))
    return msgspec.structs.replace(pod, constraints=wanted)


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([make_pod("p", "3", "3Gi")], [("m", "a", 20)], id="anywhere: in the cheapest zone"),
        pytest.param([_in(make_pod("p", "3", "3Gi"), "b")], [("m", "b", 26)], id="in the dearer zone, at its price"),
        pytest.param([_in(make_pod("p", "3", "3Gi"), "c")], [], id="in a zone without a price: none is launched"),
        pytest.param([make_pod(f"p{i}", "3", "3Gi") for i in range(2)], [("l", "b", 30)],
                     id="two: the large one, which is the bargain in the other zone"),
        pytest.param([_in(make_pod(f"p{i}", "3", "3Gi"), "a") for i in range(2)], [("m", "a", 20), ("m", "a", 20)],
                     id="two in the zone where the large one is dear"),
    ],
)  # fmt: skip
def test_what_is_launched_where(pods: list[Pod], want: list[tuple[str, str, int]]) -> None:
    assert launched(planned(pods, make_policy(flavours=[M, L]))) == want


@pytest.mark.parametrize(
    ("zone", "nanos"),
    [
        pytest.param("a", 200_000_000, id="the price of its zone"),
        pytest.param("b", 260_000_000, id="of another zone"),
        pytest.param("c", None, id="a zone without a price: nobody says"),
        pytest.param(None, None, id="a node that names no zone"),
    ],
)
def test_what_a_node_costs(zone: str | None, nanos: int | None) -> None:
    labels = {ZONE_LABEL: zone} if zone is not None else {}
    assert make_policy(flavours=[M]).price_of(owned_node("n", flavour="m", labels=labels)) == nanos


def test_a_plan_counts_each_node_at_the_price_of_its_zone() -> None:
    nodes = [owned_node(zone, flavour="m", labels={ZONE_LABEL: zone}) for zone in ("a", "b")]
    pods = [running(make_pod(f"p{node.name}", "3", "3Gi"), node.name) for node in nodes]
    made = planned(pods, make_policy(flavours=[M]), nodes=nodes, claims=[ready_claim(node) for node in nodes])
    assert (made.cost.before_nanos, made.cost.after_nanos) == (460_000_000, 460_000_000)
    assert made.cost.beside_nanos == 0


def test_of_two_empty_nodes_each_saves_the_price_of_its_zone() -> None:
    nodes = [owned_node(zone, flavour="m", labels={ZONE_LABEL: zone}) for zone in ("a", "b")]
    made = planned([], make_policy(flavours=[M]), nodes=nodes, claims=[ready_claim(node) for node in nodes])
    saved = {item.node: item.savings_nanos_per_hour for item in made.remove}
    assert saved == {"a": 200_000_000, "b": 260_000_000}


def test_a_limit_of_the_price_counts_the_zones_price() -> None:
    """0.50 an hour allow two in the cheap zone, and one in the dear one."""
    policy = make_policy([NodeGroup("any", limits=Limits(max_nanos_per_hour=500_000_000))], [M])
    cheap = planned([_in(make_pod(f"p{i}", "3", "3Gi"), "a") for i in range(3)], policy)
    dear = planned([_in(make_pod(f"p{i}", "3", "3Gi"), "b") for i in range(3)], policy)
    assert (len(cheap.launch), len(dear.launch)) == (2, 1)


@pytest.mark.parametrize(
    ("one", "other", "is_better"),
    [
        pytest.param(zoned("x", "4", a="0.19", b="0.26"), M, True, id="cheaper in one zone and as dear in the other"),
        pytest.param(zoned("x", "4", a="0.10", b="0.27"), M, False, id="dearer in one of its zones"),
        pytest.param(zoned("x", "4", a="0.10"), M, False, id="not sold in both"),
        pytest.param(make_flavour("x", "4", "8Gi", "0.20"), M, True, id="one price, as low as that of its cheapest"),
        pytest.param(make_flavour("x", "4", "8Gi", "0.10"), make_flavour("y", "4", "8Gi", "0.20", cap=Cap(10**9)), False,
                     id="cheaper by the hour, without the other's monthly cap"),
        pytest.param(make_flavour("x", "4", "8Gi", "0.20", cap=Cap(10**9)), make_flavour("y", "4", "8Gi", "0.20"), True,
                     id="as dear by the hour, up to a cap"),
    ],
)  # fmt: skip
def test_a_flavour_is_superfluous_where_another_costs_no_more_in_any_of_its_zones(
    one: Flavour, other: Flavour, is_better: bool
) -> None:
    assert (dominating(other, [one, other]) is one) is is_better


def test_the_catalogue_names_the_price_of_a_zone() -> None:
    catalogue = Catalogue((M, make_flavour("s", "1", "1Gi", "0.05", cap=Cap(10**10))))
    assert catalogue.price("m", "b") == Price(260_000_000)
    assert catalogue.price("m", "c") is None
    assert catalogue.price("s", "c") == Price(50_000_000, Cap(10**10)), "one price holds everywhere"
    assert catalogue.price("gone", "a") is None
    assert make_policy(flavours=[M]).price_of(make_node("other", labels={})) is None


@pytest.mark.parametrize("autoscaling", AutoscalingAlgorithm)
def test_each_way_of_choosing_machines_goes_by_the_zones_price(autoscaling: AutoscalingAlgorithm) -> None:
    """The dear zone comes first by name: what is worked out of a flavour there holds for no other zone."""
    flavour = zoned("m", "4", a="0.90", b="0.26")
    policy = make_policy([NodeGroup("any", autoscaling=autoscaling)], [flavour, make_flavour("s", "4", "8Gi", "0.30")])
    jobs = [make_job(f"j{i}", 600, cpu="3", memory="3Gi") for i in range(4)]
    pinned = _in(make_pod("p", "3", "3Gi"), "a")
    assert launched(planned([*jobs, pinned], policy)) == [("m", "a", 90), *([("m", "b", 26)] * 4)]


def test_the_cheapest_mix_is_in_the_zone_where_it_is_cheap() -> None:
    """Three pods of two cores go on one machine of six. Zones are not kept in balance where their prices differ."""
    six = zoned("six", "6", a="0.90", b="0.30")
    pods = [make_pod(f"p{i}", "2", "1Gi") for i in range(3)]
    group = NodeGroup("any", autoscaling=AutoscalingAlgorithm.CHEAPEST_MIX)
    policy = make_policy([group], [make_flavour("four", "4", "8Gi", "0.19"), six])
    assert launched(planned(pods, policy)) == [("six", "b", 30)]


def test_a_cap_counts_where_a_machine_is_held_for_longer_than_it_takes_to_reach_it() -> None:
    """A job of two days: a cap of 3.00 in the month makes the machine that is dearer by the hour the cheaper one."""
    capped = make_flavour("capped", "4", "8Gi", "0.22", cap=Cap(3 * 10**9))
    node = owned_node("n", flavour="capped")
    long_held = msgspec.structs.replace(ready_claim(node, since_s=30 * 3600.0), flavour="capped")
    bill = RunningBill(capped.nanos_per_hour, long_held.rented_since, Billing(3600, 3600), capped.cap)
    assert bill.longer(NOW, NOW + 24 * 3600) == 0, "all of it is paid for until the month ends"
    assert RunningBill(capped.nanos_per_hour, NOW, Billing(3600, 3600), capped.cap).longer(NOW, NOW + 24 * 3600) > 0
