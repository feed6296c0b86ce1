"""Machines of the sandbox's cloud: their lives, faults, quota and invoice."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.billing import Billing
from htas.model.claims import ClaimState, Headroom, Instance, InstanceState, NodeClaim
from htas.model.money import bill_amount
from htas.planning.cluster.machines import machine_node
from htas.ports import CapacityError, NotFoundError, TransientError
from htas.sandbox.cloud import Boot, Chances
from htas.sandbox.world import World
from tests.builders import make_flavour, make_policy
from tests.unit.sandbox.situations import SMALL, job, node, pods, rent, wait, world_of


def states(world: World) -> list[InstanceState]:
    return [instance.state for instance in world.cloud.instances()]


def names(world: World) -> list[str]:
    return [node.name for node in world.cluster.observe().nodes]


def test_a_machine_is_built_then_active_then_a_node_then_ready() -> None:
    world = World(startup_s=100)
    rent(world)
    wait(world, 49)
    assert (states(world), names(world)) == ([InstanceState.BUILDING], [])
    wait(world, 1)
    assert (states(world), names(world)) == ([InstanceState.ACTIVE], [])
    wait(world, 30)
    assert not node(world, "c1").is_ready
    before = world.cluster.changes()
    wait(world, 20)
    assert node(world, "c1").is_ready
    assert node(world, "c1").allocatable == SMALL.allocatable
    assert world.cluster.changes() > before


def test_machines_tell_the_kubelet_of_the_image_that_they_were_ordered_with() -> None:
    world = World(startup_s=100)
    rent(world)
    world.cloud.kubelet = "v1.34.1"
    rent(world, "c2")
    wait(world, 100)
    assert [node(world, name).kubelet for name in ("c1", "c2")] == ["", "v1.34.1"]


@pytest.mark.parametrize("asked", [True, False], ids=["deleted", "broken"])
@pytest.mark.parametrize(
    "at_s", [10, 55, 85, 98, 200], ids=["building", "active", "registered", "nearly ready", "ready"]
)
def test_a_machine_that_is_gone_never_becomes_ready(at_s: float, asked: bool) -> None:
    world = World(startup_s=100)
    instance = rent(world)
    wait(world, at_s)
    if asked:
        world.cloud.delete(instance.id)
    else:
        world.cloud.vanish(instance.id)
    wait(world, 500)
    assert not states(world)
    assert all(not node.is_ready for node in world.cluster.observe().nodes)
    assert world.ledger.rentals[0].ended_at == world.ledger.rentals[0].started_at + at_s


def test_the_node_of_a_machine_that_is_gone_stays_until_it_is_deleted() -> None:
    world = World()
    instance = rent(world)
    wait(world, 60)
    world.cloud.delete(instance.id)
    assert states(world) == [InstanceState.DELETING]
    world.cloud.delete(instance.id)
    wait(world, 3)
    with pytest.raises(NotFoundError):
        world.cloud.delete(instance.id)
    assert names(world) == ["c1"]
    world.cluster.delete_node("c1")
    assert not names(world)


def test_a_machine_deleted_with_work_on_it_is_a_violation_that_is_counted() -> None:
    world = world_of(job("j"))
    instance = rent(world)
    wait(world, 60)
    world.cluster.bind(pods(world)["j-1"], "c1")
    wait(world, 10)
    world.cloud.delete(instance.id)
    assert world.ledger.killed_by_release == 1
    wait(world, 1)
    assert list(pods(world)) == ["j-2"]


@pytest.mark.parametrize(
    ("boot", "expected"),
    [
        pytest.param(Boot.FAILS, [InstanceState.ERROR], id="a failed boot shows as an error"),
        pytest.param(Boot.NEVER_REGISTERS, [InstanceState.ACTIVE], id="a machine without a node"),
    ],
)
def test_machines_that_never_become_nodes(boot: Boot, expected: list[InstanceState]) -> None:
    world = World()
    world.cloud.arrange_boot(boot)
    rent(world)
    rent(world, "c2")
    wait(world, 3600)
    assert states(world) == [*expected, InstanceState.ACTIVE]
    assert names(world) == ["c2"]
    fault = world.cloud.instances()[0].fault
    assert bool(fault) == (boot is Boot.FAILS)


def test_a_node_that_registers_late_registers() -> None:
    world = World(startup_s=60)
    world.cloud.arrange_boot(Boot.REGISTERS_LATE)
    rent(world)
    wait(world, 230)
    assert not names(world)
    wait(world, 70)
    assert node(world, "c1").is_ready


@pytest.mark.parametrize(
    ("chances", "expected"),
    [
        pytest.param(Chances(boot_failure=1), (0, 0), id="every boot fails"),
        pytest.param(Chances(never_registers=1), (0, 0), id="none registers"),
        pytest.param(Chances(registers_late=1), (0, 20), id="all register late"),
        pytest.param(Chances(), (20, 20), id="all is well"),
    ],
)
def test_chances_of_one_are_certain(chances: Chances, expected: tuple[int, int]) -> None:
    world = World(chances=chances, startup_s=60)
    for number in range(20):
        rent(world, f"c{number}")
    soon = len(names(wait(world, 60)))
    assert (soon, len(names(wait(world, 240)))) == expected


def test_chances_are_drawn_by_seed_and_claim() -> None:
    def fates(seed: int) -> list[str]:
        world = World(chances=Chances(0.3, 0.3, 0.3, 0.3), seed=seed)
        seen = []
        for number in range(40):
            try:
                rent(world, f"c{number}")
                seen.append("rented")
            except CapacityError as error:
                seen.append(str(error))
        wait(world, 400)
        return [*seen, *(i.state.value for i in world.cloud.instances()), *names(world)]

    assert fates(1) == fates(1)
    assert fates(1) != fates(2)


# Refusals.


def test_stock_is_a_flavours_own_and_comes_back() -> None:
    scarce = msgspec.structs.replace(SMALL, stock=1)
    world = World()
    first = rent(world, "c1", scarce)
    with pytest.raises(CapacityError, match=r"m3\.small is out of stock") as refused:
        rent(world, "c2", scarce)
    assert not refused.value.is_quota
    rent(world, "c3", make_flavour("other", "1", "1Gi", "0.01"))
    world.cloud.delete(first.id)
    wait(world, 3)
    rent(world, "c2", scarce)


@pytest.mark.parametrize(
    ("quota", "what"),
    [
        pytest.param(Headroom(instances=1), "instances", id="instances"),
        pytest.param(Headroom(cpu_m=3000), "cores", id="cores"),
        pytest.param(Headroom(memory_bytes=7 * 2**30), "ram", id="memory"),
    ],
)
def test_quota_is_refused_with_what_is_short(quota: Headroom, what: str) -> None:
    world = World(quota=quota)
    rent(world, "c1")
    with pytest.raises(CapacityError, match=what) as refused:
        rent(world, "c2")
    assert refused.value.is_quota
    assert len(world.ledger.rentals) == 1


def test_machines_of_others_take_of_the_quota_and_are_never_taken_for_ours() -> None:
    world = World(quota=Headroom(instances=2))
    world.cloud.add_foreign(
        Instance("x", "c1", SMALL.name, InstanceState.ACTIVE, world.clock.now(), cluster="other", claim="c1")
    )
    assert rent(world, "c1").id != "x"
    with pytest.raises(CapacityError, match="instances"):
        rent(world, "c2")


def test_a_repeated_create_is_answered_with_the_first_and_counted() -> None:
    world = World()
    assert rent(world).id == rent(world).id
    assert world.ledger.double_creates == 1
    assert len(world.ledger.rentals) == 1


@pytest.mark.parametrize("call", ["create", "delete", "instances", "headroom"])
def test_an_arranged_error_strikes_once_and_only_its_own_call(call: str) -> None:
    world = World()
    first = rent(world)
    calls = {
        "create": lambda: rent(world, "c2"),
        "delete": lambda: world.cloud.delete(first.id),
        "instances": world.cloud.instances,
        "headroom": world.cloud.headroom,
    }
    world.cloud.faults.arrange(call, TransientError("the cloud is away"))
    for name, act in calls.items():
        if name != call:
            act()
    with pytest.raises(TransientError, match="is away"):
        calls[call]()
    calls[call]()


# The invoice.


@pytest.mark.parametrize(
    ("held_s", "billing", "amount"),
    [
        pytest.param(0, Billing(60, 60), "0.001143", id="the minimum is paid"),
        pytest.param(60, Billing(60, 60), "0.001143", id="a whole minute is one minute"),
        pytest.param(61, Billing(60, 60), "0.002287", id="a second more is two"),
        pytest.param(3600, Billing(3600, 3600), "0.068600", id="an hour is the price an hour"),
        pytest.param(3601, Billing(3600, 3600), "0.137200", id="by the hour, a second more is two hours"),
        pytest.param(100, Billing(1, 60), "0.001906", id="by the second"),
    ],
)
def test_the_invoice_of_one_machine(held_s: float, billing: Billing, amount: str) -> None:
    world = World()
    instance = rent(world)
    wait(world, held_s)
    world.cloud.delete(instance.id)
    wait(world, 10_000)
    assert str(bill_amount(world.ledger.nano_seconds(billing, world.clock.now()))) == amount


@settings(max_examples=40, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 4000)), max_size=8))
def test_the_invoice_is_the_sum_over_machines(rentals: list[tuple[int, int]]) -> None:
    """However rentals overlap, each is billed for its own time."""
    world = World(start=0.0)
    changes = [(at, 0, f"c{i}") for i, (at, _) in enumerate(rentals)]
    changes += [(at + held, 1, f"c{i}") for i, (at, held) in enumerate(rentals)]
    ids = {}
    for at, kind, name in sorted(changes):
        world.advance_to(at)
        if kind == 0:
            ids[name] = rent(world, name).id
        else:
            world.cloud.delete(ids[name])
    billing = Billing(60, 120)
    expected = sum(SMALL.nanos_per_hour * max(120, -(-held // 60) * 60) for _, held in rentals)
    assert world.ledger.nano_seconds(billing, 10_000.0) == expected
    assert world.ledger.machine_hours(10_000.0) == pytest.approx(sum(held for _, held in rentals) / 3600)


@pytest.mark.parametrize(
    ("waits", "share", "expected"),
    [
        pytest.param([], 0.99, 0.0, id="nobody waited"),
        pytest.param([5.0], 0.99, 5.0, id="one pod"),
        pytest.param([float(n) for n in range(100, 0, -1)], 0.99, 99.0, id="the nearest rank of a hundred"),
        pytest.param([1.0, 2.0, 3.0, 4.0], 0.5, 2.0, id="the lower of two middles"),
    ],
)
def test_percentiles_of_waiting(waits: list[float], share: float, expected: float) -> None:
    ledger = World().ledger
    ledger.waits_s = waits
    assert ledger.wait_percentile_s(share) == expected


def test_a_node_that_is_there_is_of_no_zone_that_its_labels_do_not_name() -> None:
    """Only of a machine that is not there yet nobody knows the zone: kept-apart pods were refused by it for ever."""
    world, policy = World(startup_s=100), make_policy(flavours=[SMALL])
    planned = machine_node(policy, policy.groups[0], SMALL, None, "c1")
    claim = NodeClaim("c1", "any", SMALL.name, ClaimState.REQUESTED, created_at=0.0, since=0.0)
    world.cloud.create(claim, SMALL, planned)
    wait(world, 100)
    assert planned.is_of_any_zone
    assert not node(world, "c1").is_of_any_zone
