"""The sandbox's cloud: machines that take a while, cost money, and sometimes fail."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from htas.model.claims import Headroom, Instance, InstanceState, NodeClaim
from htas.model.flavours import Flavour
from htas.model.nodes import CLUSTER_LABEL, Node
from htas.ports import CapacityError, NotFoundError
from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.faults import Faults
from htas.sandbox.ledger import Ledger, Rental

ACTIVE_SHARE, REGISTERED_SHARE = 0.5, 0.8
"""When in the start-up time a machine is active, and when its node registers; at its end the node is Ready."""
DELETE_S = 3.0
"""A few seconds to shut a machine down (HTAS paper 3.1.2 (2))."""


class Chances(msgspec.Struct, frozen=True):
    """Shares of requests that go wrong."""

    out_of_stock: float = 0.0
    boot_failure: float = 0.0
    never_registers: float = 0.0


class SandboxCloud:
    """Implements ProviderPort."""

    def __init__(
        self,
        clock: VirtualClock,
        queue: EventQueue,
        cluster: SandboxCluster,
        ledger: Ledger,
        *,
        startup_s: float = 60.0,
        quota: Headroom | None = None,
        chances: Chances | None = None,
        seed: int = 1,
    ) -> None:
        self._clock = clock
        self._queue = queue
        self._cluster = cluster
        self._ledger = ledger
        self.startup_s = startup_s
        self.quota = quota if quota is not None else Headroom()
        self.chances = chances if chances is not None else Chances()
        self.faults = Faults()
        self._seed = seed
        self._instances: dict[str, Instance] = {}
        self._flavours: dict[str, Flavour] = {}
        self._nodes: dict[str, Node] = {}
        self._serial = 0

    def create(self, claim: NodeClaim, flavour: Flavour, node: Node) -> Instance:
        self.faults.strike("create")
        first = next((i for i in self._instances.values() if i.claim == claim.id), None)
        if first is not None:
            self._ledger.double_creates += 1
            return first
        draw = random.Random(f"{self._seed}/{claim.id}").random
        if draw() < self.chances.out_of_stock:
            raise CapacityError(f"no valid host was found for {flavour.name}")
        self._check_room(flavour)
        self._serial += 1
        instance = Instance(
            id=f"vm-{self._serial:05d}",
            name=claim.id,
            flavour=flavour.name,
            state=InstanceState.BUILDING,
            created_at=self._clock.now(),
            zone=claim.zone,
            cluster=node.labels.get(CLUSTER_LABEL),
            claim=claim.id,
            group=claim.group,
        )
        self._instances[instance.id] = instance
        self._flavours[instance.id] = flavour
        self._nodes[instance.id] = msgspec.structs.replace(
            node,
            allocatable=flavour.allocatable,
            is_ready=False,
            provider_id=f"sandbox:///{instance.id}",
            uid=f"node-{instance.id}",
        )
        self._ledger.rentals.append(
            Rental(instance.id, claim.id, flavour.name, flavour.nanos_per_hour, instance.created_at)
        )
        if draw() < self.chances.boot_failure:
            self._queue.after(ACTIVE_SHARE * self.startup_s, lambda: self._fail(instance.id))
            return instance
        self._queue.after(ACTIVE_SHARE * self.startup_s, lambda: self._activate(instance.id))
        if draw() >= self.chances.never_registers:
            self._queue.after(REGISTERED_SHARE * self.startup_s, lambda: self._register(instance.id))
            self._queue.after(self.startup_s, lambda: self._cluster.set_ready(node.name, True))
        return instance

    def delete(self, instance_id: str) -> None:
        self.faults.strike("delete")
        instance = self._instances.get(instance_id)
        if instance is None:
            raise NotFoundError(f"machine {instance_id} is gone")
        if instance.state is InstanceState.DELETING:
            return
        self._instances[instance_id] = msgspec.structs.replace(instance, state=InstanceState.DELETING)
        for rental in self._ledger.rentals:
            if rental.instance == instance_id:
                rental.ended_at = self._clock.now()
        node = self._nodes.get(instance_id)
        if node is not None:
            self._ledger.killed_by_release += self._cluster.lose_pods(node.name)
            self._cluster.set_ready(node.name, False)
        self._queue.after(DELETE_S, lambda: self._gone(instance_id))

    def instances(self) -> Sequence[Instance]:
        self.faults.strike("instances")
        return tuple(self._instances.values())

    def headroom(self) -> Headroom:
        self.faults.strike("headroom")
        alive = [self._flavours[i] for i in self._instances if i in self._flavours]

        def left(granted: int | None, used: int) -> int | None:
            return None if granted is None else max(0, granted - used)

        return Headroom(
            left(self.quota.instances, len(alive)),
            left(self.quota.cpu_m, sum(flavour.capacity.cpu_m for flavour in alive)),
            left(self.quota.memory_bytes, sum(flavour.capacity.memory_bytes for flavour in alive)),
        )

    def add_foreign(self, instance: Instance) -> None:
        """A machine of somebody else in the same project."""
        self._instances[instance.id] = instance

    def vanish(self, instance_id: str) -> None:
        """A machine breaks down and is no longer listed; its node and pods with it."""
        self._instances.pop(instance_id)
        for rental in self._ledger.rentals:
            if rental.instance == instance_id:
                rental.ended_at = self._clock.now()
        node = self._nodes.pop(instance_id, None)
        if node is not None:
            self._cluster.lose_pods(node.name)
            self._cluster.set_ready(node.name, False)

    def _check_room(self, flavour: Flavour) -> None:
        alive = [self._flavours[i] for i in self._instances if i in self._flavours]
        same = sum(other.name == flavour.name for other in alive)
        if flavour.stock is not None and same >= flavour.stock:
            raise CapacityError(f"{flavour.name} is out of stock")
        room, capacity = self.headroom(), flavour.capacity
        for what, granted, asked in (
            ("instances", room.instances, 1),
            ("cores", room.cpu_m, capacity.cpu_m),
            ("ram", room.memory_bytes, capacity.memory_bytes),
        ):
            if granted is not None and granted < asked:
                raise CapacityError(f"quota exceeded for {what}", is_quota=True)

    def _activate(self, instance_id: str) -> None:
        instance = self._instances.get(instance_id)
        if instance is not None and instance.state is InstanceState.BUILDING:
            self._instances[instance_id] = msgspec.structs.replace(instance, state=InstanceState.ACTIVE)

    def _fail(self, instance_id: str) -> None:
        instance = self._instances.get(instance_id)
        if instance is not None and instance.state is InstanceState.BUILDING:
            self._instances[instance_id] = msgspec.structs.replace(
                instance, state=InstanceState.ERROR, fault="the machine failed to boot"
            )

    def _register(self, instance_id: str) -> None:
        instance = self._instances.get(instance_id)
        if instance is not None and instance.state is InstanceState.ACTIVE:
            node = msgspec.structs.replace(self._nodes[instance_id], created_at=self._clock.now())
            self._cluster.add_node(node)

    def _gone(self, instance_id: str) -> None:
        self._instances.pop(instance_id, None)
        self._flavours.pop(instance_id, None)
        self._nodes.pop(instance_id, None)
