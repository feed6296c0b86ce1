"""A bill is at the price of the zone that the machine is really in, whatever zone was ordered."""

from __future__ import annotations

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.execution.backoff import Backoffs
from htas.execution.calls import DirectCalls
from htas.execution.cloud_calls import CloudCalls
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.model.billing import Cap
from htas.model.claims import ClaimState, Instance, InstanceState
from htas.model.flavours import Flavour, ZonePrice
from htas.model.record import Bill
from htas.model.snapshot import ClusterView
from htas.sandbox.world import World
from tests.builders import batch_group, make_flavour, make_policy, owned_node, ready_claim

CAP = Cap(100 * 10**9)
BY_ZONE = make_flavour(
    "medium",
    "4",
    "8Gi",
    "0.20",
    zones=("a", "b"),
    prices=(ZonePrice("a", 200_000_000), ZonePrice("b", 260_000_000, CAP)),
)
PLAIN = make_flavour("medium", "4", "8Gi", "0.20")


@pytest.mark.parametrize(
    ("flavour", "ordered", "told", "zone", "nanos", "cap"),
    [
        pytest.param(BY_ZONE, "a", "a", "a", 200_000_000, None, id="as it was ordered"),
        pytest.param(BY_ZONE, "a", None, "a", 200_000_000, None, id="the cloud does not say yet"),
        pytest.param(BY_ZONE, "a", "b", "b", 260_000_000, CAP, id="the cloud put it elsewhere"),
        pytest.param(BY_ZONE, "a", "c", "c", 200_000_000, None, id="where nothing is known of the price"),
        pytest.param(PLAIN, None, "nova", None, 200_000_000, None, id="one price: zones do not matter"),
    ],
)
def test_the_bill_and_the_claim_have_the_zone_that_the_cloud_says(
    flavour: Flavour, ordered: str | None, told: str | None, zone: str | None, nanos: int, cap: Cap | None
) -> None:
    world, store = World(), SqliteStore(":memory:")
    policy, now = make_policy([batch_group()], [flavour]), world.clock.now()
    ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
    machines = Machines(ports, CloudCalls(DirectCalls(), world.clock), policy, Backoffs(policy.timeouts))
    node = owned_node("c", group="batch")
    claim = msgspec.structs.replace(
        ready_claim(node), state=ClaimState.ACTIVE, created_at=now, since=now, zone=ordered, nanos_per_hour=200_000_000
    )
    store.put_claim(claim)
    store.put_bill(Bill("c", "batch", "medium", 200_000_000, now))
    seen = Instance("vm-c", "c", "medium", InstanceState.ACTIVE, now, told, "test", "c", launched_at=now)
    for _ in range(2):  # what is known already is not written again
        machines.reconcile(ClusterView(), [seen])
    ((bill,), (known,)) = store.bills(), store.claims()
    assert bill == Bill("c", "batch", "medium", nanos, now, instance="vm-c", cap=cap)
    assert (known.zone, known.nanos_per_hour, known.cap) == (zone, nanos, cap)
    store.close()


def test_a_machine_that_is_found_has_the_price_of_its_zone() -> None:
    world, store = World(), SqliteStore(":memory:")
    policy, now = make_policy([batch_group()], [BY_ZONE]), world.clock.now()
    ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
    machines = Machines(ports, CloudCalls(DirectCalls(), world.clock), policy, Backoffs(policy.timeouts))
    found = Instance("vm-c", "c", "medium", InstanceState.ACTIVE, now, "b", "test", "c", "batch", launched_at=now)
    machines.reconcile(ClusterView(), [found])
    assert [(bill.nanos_per_hour, bill.cap) for bill in store.bills()] == [(260_000_000, CAP)]
    store.close()
