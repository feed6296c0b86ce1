"""What a machine joins by ends once it has joined, also where the daemon that made it has died."""

from __future__ import annotations

from collections.abc import Callable

from htas.adapters.sqlite.store import SqliteStore
from htas.execution.backoff import Backoffs
from htas.execution.calls import DirectCalls
from htas.execution.cloud_calls import CloudCalls
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.model.claims import ClaimState, NodeClaim
from htas.model.proposals import Launch
from htas.ports import TransientError
from htas.sandbox.cloud import Boot
from htas.sandbox.world import World
from tests.builders import NECTAR, make_policy

POLICY = make_policy()
VALID_S = 1800.0


class Door:
    """Implements JoinPort by a list of who may come in."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.asked: list[str] = []
        self.is_away = False

    def ends_at(self, claim: NodeClaim) -> float:
        return claim.created_at + VALID_S

    def revoke(self, claim: NodeClaim) -> None:
        self.asked.append(claim.id)
        if self.is_away:
            raise TransientError("the API server is away")
        self.open.discard(claim.id)


class Buyer:
    """A daemon's machines: bought, and followed in the world's time."""

    def __init__(self, world: World, door: Door, store: SqliteStore) -> None:
        self.world, self.door, self.store = world, door, store
        self.restart()

    def restart(self) -> None:
        world = self.world
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, self.store, world.announcer, self.door)
        self.machines = Machines(ports, CloudCalls(DirectCalls(), world.clock), POLICY, Backoffs(POLICY.timeouts))

    def buy(self, name: str) -> None:
        self.door.open.add(name)
        self.machines.launch(
            [Launch(claim=name, group="any", flavour=NECTAR[0].name, zone=None, nanos_per_hour=1, pods=())]
        )

    def until(self, is_it: Callable[[], bool]) -> None:
        for _ in range(2000):
            self.world.advance_to(self.world.clock.now() + 1.0)
            self.machines.reconcile(self.world.cluster.observe(), self.world.cloud.instances())
            if is_it():
                return
        raise AssertionError(f"not within 2000 s: {self.states()}")

    def states(self) -> dict[str, ClaimState]:
        return {claim.id: claim.state for claim in self.store.claims()}


def a_buyer() -> Buyer:
    return Buyer(World(), Door(), SqliteStore(":memory:"))


def test_it_ends_once_the_node_has_registered_and_not_before() -> None:
    buyer = a_buyer()
    buyer.buy("first")
    buyer.until(lambda: buyer.states()["first"] is ClaimState.ACTIVE)
    assert buyer.door.open == {"first"}
    buyer.until(lambda: buyer.states()["first"] is ClaimState.READY)
    buyer.until(lambda: not buyer.door.open)
    asked = len(buyer.door.asked)
    buyer.world.advance_to(buyer.world.clock.now() + 60)
    buyer.until(lambda: True)
    assert len(buyer.door.asked) == asked == 1


def test_a_daemon_that_died_in_between_leaves_nothing_open() -> None:
    buyer = a_buyer()
    buyer.buy("first")
    buyer.until(lambda: buyer.states()["first"] is ClaimState.ACTIVE)
    buyer.world.advance_to(buyer.world.clock.now() + 300)  # it registers while nobody looks
    buyer.restart()
    buyer.until(lambda: not buyer.door.open)


def test_a_machine_that_never_comes_has_nothing_to_join_by() -> None:
    buyer = a_buyer()
    buyer.world.cloud.arrange_boot(Boot.NEVER_REGISTERS)
    buyer.buy("first")
    buyer.until(lambda: not buyer.door.open)
    assert buyer.states().get("first") in (ClaimState.FAILED, None)


def test_it_is_tried_again_where_it_failed_but_not_in_every_cycle() -> None:
    buyer = a_buyer()
    buyer.buy("first")
    buyer.door.is_away = True
    buyer.until(lambda: len(buyer.door.asked) == 5)
    begun = buyer.world.clock.now()
    buyer.until(lambda: len(buyer.door.asked) == 6)
    assert buyer.world.clock.now() - begun > 10
    buyer.door.is_away = False
    buyer.until(lambda: not buyer.door.open)


def test_after_a_start_nothing_is_asked_about_machines_that_joined_long_ago() -> None:
    buyer = a_buyer()
    buyer.buy("first")
    buyer.until(lambda: buyer.states()["first"] is ClaimState.READY)
    buyer.until(lambda: not buyer.door.open)
    buyer.world.advance_to(buyer.world.clock.now() + VALID_S)
    buyer.restart()
    buyer.buy("second")
    buyer.until(lambda: not buyer.door.open)
    assert buyer.door.asked == ["first", "second"]
