"""What becomes of machines teaches: a flavour that fails waits, and one that is Ready shows what it really offers."""

from __future__ import annotations

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.execution.backoff import Backoffs
from htas.execution.calls import DirectCalls
from htas.execution.cloud_calls import CloudCalls
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.model.claims import ClaimState, Instance, InstanceState
from htas.model.nodes import Node
from htas.model.resources import Resources
from htas.model.snapshot import ClusterView
from htas.sandbox.world import World
from tests.builders import batch_group, make_flavour, make_policy, owned_node, ready_claim

OFFERED = make_flavour("medium", "4", "8Gi", "0.20")
COMING = owned_node("c", group="batch", cpu="3900m", memory="7Gi", is_ready=False)
READY = msgspec.structs.replace(COMING, is_ready=True)
S, I = ClaimState, InstanceState  # noqa: E741 - the table reads best with the shortest names


@pytest.mark.parametrize(
    ("was", "machine", "node", "waits", "learns"),
    [
        pytest.param(S.ACTIVE, I.ACTIVE, None, True, False, id="nothing has registered: it says nothing yet"),
        pytest.param(S.ACTIVE, I.ACTIVE, COMING, True, False, id="it registers, and may never be Ready"),
        pytest.param(S.REGISTERED, I.ACTIVE, COMING, True, False, id="it is not Ready yet"),
        pytest.param(S.REGISTERED, I.ACTIVE, READY, False, True, id="Ready: it works, and offers so much"),
        pytest.param(S.REQUESTED, I.ACTIVE, READY, False, True, id="Ready at once"),
    ],
)
def test_a_flavour_waits_until_a_machine_of_it_is_ready(
    was: ClaimState, machine: InstanceState, node: Node | None, waits: bool, learns: bool
) -> None:
    machines, store, backoffs = kept(was)
    backoffs.failed("medium", None, "out of stock", machines.now)
    machines.reconcile(machine, node)
    assert [each.flavour for each in backoffs.current(machines.now + 1)] == (["medium"] if waits else [])
    assert [Resources(*each.parts) for each in store.learned().values()] == ([READY.allocatable] if learns else [])
    [claim] = store.claims()
    assert claim.ready_at == (machines.now if learns else None), "how long starts take is learned from it"


@pytest.mark.parametrize(
    ("was", "waits"),
    [
        pytest.param(S.REQUESTED, True, id="the cloud could not make it"),
        pytest.param(S.ACTIVE, True, id="it did not come up"),
        pytest.param(S.REGISTERED, True, id="it was never Ready"),
        pytest.param(S.READY, False, id="it ran: that says nothing of the flavour"),
    ],
)
def test_a_flavour_waits_where_a_machine_of_it_failed_before_it_ran(was: ClaimState, waits: bool) -> None:
    machines, _, backoffs = kept(was)
    machines.reconcile(I.ERROR, None)
    assert [each.flavour for each in backoffs.current(machines.now + 1)] == (["medium"] if waits else [])


class Kept:
    """Machines with one claim on record."""

    def __init__(self, was: ClaimState) -> None:
        world = World()
        self.now = world.clock.now()
        self.store, policy = SqliteStore(":memory:"), make_policy([batch_group()], [OFFERED])
        self.backoffs = Backoffs(policy.timeouts)
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, self.store, world.announcer)
        self.machines = Machines(ports, CloudCalls(DirectCalls(), world.clock), policy, self.backoffs)
        claim = msgspec.structs.replace(ready_claim(READY), state=was, created_at=self.now, since=self.now)
        self.store.put_claim(claim)

    def reconcile(self, machine: InstanceState, node: Node | None) -> None:
        instance = Instance("vm-c", "c", "medium", machine, self.now, cluster="test", claim="c", fault="no host")
        self.machines.reconcile(ClusterView((node,) if node is not None else ()), [instance])


def kept(was: ClaimState) -> tuple[Kept, SqliteStore, Backoffs]:
    made = Kept(was)
    return made, made.store, made.backoffs
