"""The sandbox's cloud: machines that take a while, cost money, and sometimes fail."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from random import Random

import msgspec

from htas.model.billing import Price
from htas.model.claims import Headroom, Instance, InstanceState, NodeClaim, Usage
from htas.model.constraints import Taint
from htas.model.flavours import Flavour
from htas.model.nodes import CLUSTER_LABEL, HOSTNAME_LABEL, Node
from htas.model.resources import NOTHING, Resources
from htas.ports import CapacityError, NotFoundError, TransientError
from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.faults import Faults
from htas.sandbox.ledger import Ledger, Rental

ACTIVE_SHARE, REGISTERED_SHARE = 0.5, 0.8
"""When in the start-up time a machine is active, and when its node registers; at its end the node is Ready."""
DELETE_S = 3.0
"""A few seconds to shut a machine down (HTAS paper 3.1.2 (2))."""


LATE_TIMES = 5.0
"""A node that registers late takes so many times the start-up time (some 5 min where 60 s are usual)."""


class Boot(StrEnum):
    """What becomes of a machine that was asked for."""

    WELL = "well"
    FAILS = "fails"
    NEVER_REGISTERS = "never registers"
    REGISTERS_LATE = "registers late"
    REGISTERS_BARE = "registers bare"
    """Its kubelet gives the node none of the labels and taints it was meant to have."""


class Shows(msgspec.Struct, frozen=True):
    """What a machine's node shows of it: a share of its flavour's cores and memory, and its devices after a while.

    A share above 1: the kubelet lies. `devices_after_s` counts from when the node is Ready; None: they never come.
    """

    share: float = 1.0
    devices_after_s: float | None = 0.0

    def offered(self, flavour: Flavour) -> Resources:
        """What the node offers in the end."""
        whole = flavour.allocatable
        cpu_m, memory = int(whole.cpu_m * self.share), int(whole.memory_bytes * self.share)
        devices = () if self.devices_after_s is None else whole.extended
        return msgspec.structs.replace(whole, cpu_m=cpu_m, memory_bytes=memory, extended=devices)


class Chances(msgspec.Struct, frozen=True):
    """Shares of requests that go wrong."""

    out_of_stock: float = 0.0
    boot_failure: float = 0.0
    never_registers: float = 0.0
    registers_late: float = 0.0

    def boot(self, draw: Callable[[], float]) -> Boot:
        """How a machine boots, by draws from 0 to 1."""
        if draw() < self.boot_failure:
            return Boot.FAILS
        if draw() < self.never_registers:
            return Boot.NEVER_REGISTERS
        return Boot.REGISTERS_LATE if draw() < self.registers_late else Boot.WELL


GIVEN_BY_KUBELETS = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


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
        self._rentals: dict[str, Rental] = {}
        self._boots: deque[Boot] = deque()
        self._serial = 0
        self._changes = 0
        self._wake: Callable[[], None] = lambda: None
        self._deletes_to_forget = 0
        self._unanswered = Counter[str]()
        self._others: deque[Flavour] = deque()
        self._unlisted: set[str] = set()
        self.sold: tuple[str, ...] | None = None
        """Names of the flavours it has; None: whatever is asked for."""
        self.taints: tuple[Taint, ...] = ()
        """What nodes of machines ordered from now on bear beside what is asked for, as an image may have it."""
        self.taints_for_s: float | None = None
        """So long after it is Ready a node loses them; None: never."""
        self.charges_from_launch = False
        """Machines are charged for from when they are active, as by Nova's usage; else from when they are accepted."""
        self.tells_usage = True
        """Whether it says what it charged for."""
        self.labels: dict[str, str] = {}
        """What kubelets of machines ordered from now on write on their nodes, whatever is asked for."""
        self.startup_taints: tuple[Taint, ...] = ()
        """What agents take off nodes `taints_for_s` after they are Ready, whoever gave it; None: at once."""
        self.shows = Shows()
        """What nodes of machines ordered from now on show; those of `arranged` show something else."""
        self.arranged: deque[Shows] = deque()
        self._offered: dict[str, tuple[float | None, Resources]] = {}
        """By machine, so long after it is Ready its node offers this."""
        self.kubelet = ""
        """The version that nodes of machines ordered from now on tell, as an image has it; empty: they tell none."""

    def create(self, claim: NodeClaim, flavour: Flavour, node: Node) -> Instance:
        self.faults.strike("create")
        cluster = node.labels.get(CLUSTER_LABEL)
        first = next((i for i in self._instances.values() if (i.cluster, i.claim) == (cluster, claim.id)), None)
        if first is not None:
            self._ledger.double_creates += 1
            return first
        draw = Random(f"{self._seed}/{claim.id}").random
        if draw() < self.chances.out_of_stock:
            raise CapacityError(f"no valid host was found for {flavour.name}")
        self._check_room(flavour)
        instance = self._rent(claim, self._others.popleft() if self._others else flavour, node)
        self._boot(instance.id, node.name, self._boots.popleft() if self._boots else self.chances.boot(draw))
        self._lose_answer("create")
        return instance

    def _rent(self, claim: NodeClaim, flavour: Flavour, node: Node) -> Instance:
        """The machine is accepted; from now on it is paid for."""
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
        node = msgspec.structs.replace(
            node,
            allocatable=self._first_shown(instance.id, flavour),
            is_ready=False,
            is_of_any_zone=False,  # what is there has the zone that its labels name, or none
            uid=f"node-{instance.id}",
            labels={**GIVEN_BY_KUBELETS, **node.labels, **self.labels},
            taints=tuple(dict.fromkeys((*node.taints, *self.taints))),
            kubelet=self.kubelet,
        )
        self._let(instance, flavour, node)
        return self._instances[instance.id]

    def _first_shown(self, instance_id: str, flavour: Flavour) -> Resources:
        """What a node offers as it registers; its devices may come later."""
        shows = self.arranged.popleft() if self.arranged else self.shows
        offered = shows.offered(flavour)
        self._offered[instance_id] = shows.devices_after_s, offered
        return offered if shows.devices_after_s == 0 else msgspec.structs.replace(offered, extended=())

    def _let(self, instance: Instance, flavour: Flavour, node: Node) -> None:
        """The machine is there, with the node it is or becomes, and is paid for since it was made."""
        self._instances[instance.id] = instance
        self._flavours[instance.id] = flavour
        self._nodes[instance.id] = msgspec.structs.replace(node, provider_id=f"sandbox:///{instance.id}")
        if not self.charges_from_launch or instance.state is not InstanceState.BUILDING:
            self._charge(instance.id, instance.created_at)

    def _charge(self, instance_id: str, since: float) -> None:
        """It is paid for from now on, at the price of its flavour in its zone."""
        instance, flavour = self._instances[instance_id], self._flavours[instance_id]
        launched_at = since if instance.launched_at is None else instance.launched_at
        self._instances[instance_id] = msgspec.structs.replace(instance, launched_at=launched_at)
        price = flavour.price_in(instance.zone) or Price(flavour.nanos_per_hour, flavour.cap)
        rental = Rental(instance.id, instance.claim or "", flavour.name, price.nanos_per_hour, since, cap=price.cap)
        self._rentals[instance_id] = rental
        self._ledger.rentals.append(rental)

    def _boot(self, instance_id: str, node: str, boot: Boot) -> None:
        after, startup_s = self._queue.after, self.startup_s
        if boot is Boot.FAILS:
            after(ACTIVE_SHARE * startup_s, partial(self._fail, instance_id))
            return
        after(ACTIVE_SHARE * startup_s, partial(self._activate, instance_id))
        if boot is Boot.NEVER_REGISTERS:
            return
        if boot is Boot.REGISTERS_BARE:
            known = self._nodes[instance_id]
            self._nodes[instance_id] = msgspec.structs.replace(known, labels={HOSTNAME_LABEL: known.name}, taints=())
        ready_s = startup_s * LATE_TIMES if boot is Boot.REGISTERS_LATE else startup_s
        after(REGISTERED_SHARE * ready_s, partial(self._register, instance_id))
        after(ready_s, partial(self._report, instance_id, node))

    def delete(self, instance_id: str) -> None:
        self.faults.strike("delete")
        instance = self._instances.get(instance_id)
        if instance is None:
            raise NotFoundError(f"machine {instance_id} is gone")
        if instance.state is InstanceState.DELETING:
            self._queue.after(DELETE_S, partial(self._gone, instance_id))
            return
        ended_at = self._end_rental(instance_id)
        self._instances[instance_id] = msgspec.structs.replace(
            instance, state=InstanceState.DELETING, ended_at=ended_at
        )
        for name in self._nodes_of(instance_id):
            self._ledger.killed_by_release += self._cluster.lose_pods(name)
            self._cluster.set_ready(name, False)
        if self._deletes_to_forget:
            self._deletes_to_forget -= 1
        else:
            self._queue.after(DELETE_S, partial(self._gone, instance_id))
        self._lose_answer("delete")

    def adopt(self, instance_id: str, cluster: str, claim: str, group: str) -> None:
        self.faults.strike("adopt")
        known = self._instances.get(instance_id)
        if known is None:
            raise NotFoundError(f"machine {instance_id} is gone")
        self._instances[instance_id] = msgspec.structs.replace(known, cluster=cluster, claim=claim, group=group)
        self._note_change()

    def instances(self) -> Sequence[Instance]:
        self.faults.strike("instances")
        return tuple(each for each in self._instances.values() if each.id not in self._unlisted)

    def headroom(self) -> Headroom:
        self.faults.strike("headroom")
        return self._room()

    def usage(self, since: float, until: float) -> Sequence[Usage] | None:
        self.faults.strike("usage")
        if not self.tells_usage:
            return None
        return [
            Usage(each.instance, each.claim, each.flavour, each.started_at, each.ended_at)
            for each in self._ledger.rentals
            if each.started_at < until and (each.ended_at is None or each.ended_at > since)
        ]

    def changes(self) -> int:
        return self._changes

    def on_change(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def _note_change(self) -> None:
        self._changes += 1
        self._wake()

    def _room(self) -> Headroom:
        """What the quota leaves: every machine listed counts, be it failed, being deleted or somebody else's."""
        together = sum((flavour.capacity for flavour in self._flavours.values()), start=NOTHING)
        return msgspec.structs.replace(self.quota, sold=self.sold).less(len(self._instances), together)

    def add_foreign(self, instance: Instance) -> None:
        """A machine of somebody else in the same project. Of its size nothing is known: it takes one of the quota."""
        self._instances[instance.id] = instance

    def add_rented(self, instance: Instance, flavour: Flavour, node: Node) -> None:
        """A machine that runs already, with its node."""
        self._let(instance, flavour, node)
        self._cluster.add_node(self._nodes[instance.id])

    def arrange_boot(self, boot: Boot) -> None:
        """Let the next machine that is rented boot like this, whatever the chances; may be arranged for several."""
        self._boots.append(boot)

    def forget_deletes(self, count: int) -> None:
        """Let the next machines whose end is asked for stay as they are: a host died with the wish."""
        self._deletes_to_forget += count

    def leave_unanswered(self, call: str, count: int = 1) -> None:
        """Let the next calls (create, delete) be carried out, and their answers be lost."""
        self._unanswered[call] += count

    def _lose_answer(self, call: str) -> None:
        if self._unanswered[call]:
            self._unanswered[call] -= 1
            raise TransientError("the answer was lost")

    def arrange_flavour(self, flavour: Flavour) -> None:
        """Let the next machine that is rented be of this flavour, whatever was ordered; its node names what was."""
        self._others.append(flavour)

    def resize(self, instance_id: str, flavour: Flavour) -> None:
        """An operator gives a machine another flavour; its node offers that from now on, and keeps its labels.

        As Nova does, the cloud says that it was launched then.
        """
        self._flavours[instance_id] = flavour
        instance = msgspec.structs.replace(self._instances[instance_id], flavour=flavour.name, launched_at=None)
        self._instances[instance_id] = instance
        if self._end_rental(instance_id) is not None:
            self._charge(instance_id, self._clock.now())
        node = msgspec.structs.replace(self._nodes[instance_id], allocatable=flavour.allocatable)
        self._nodes[instance_id] = node
        self._cluster.offer(node.name, flavour.allocatable)

    def break_down(self, instance_id: str) -> None:
        """A machine falls into ERROR: it is charged for until it is deleted, and its node falls silent."""
        self._instances[instance_id] = msgspec.structs.replace(
            self._instances[instance_id], state=InstanceState.ERROR, fault="its host failed"
        )
        node = self._nodes[instance_id].name
        self._cluster.lose_pods(node)
        self._cluster.set_ready(node, False)
        self._note_change()

    def unlist(self, instance_id: str) -> None:
        """A machine runs on and is listed no more: the list is another project's, or a part of the cloud is down."""
        self._unlisted.add(instance_id)

    def rebuild(self, instance_id: str) -> None:
        """An operator rebuilds a machine, or unshelves it: as Nova does, the cloud says that it was launched then."""
        known = self._instances[instance_id]
        self._instances[instance_id] = msgspec.structs.replace(known, launched_at=self._clock.now())

    def list_again(self, instance_id: str) -> None:
        """A machine that was not listed is listed again."""
        self._unlisted.discard(instance_id)

    def vanish(self, instance_id: str) -> None:
        """A machine breaks down and is no longer listed; its node stays behind NotReady, without its pods."""
        self._instances.pop(instance_id)
        self._note_change()
        self._flavours.pop(instance_id, None)
        self._end_rental(instance_id)
        for name in self._nodes_of(instance_id):
            self._cluster.lose_pods(name)
            self._cluster.set_ready(name, False)
        self._nodes.pop(instance_id, None)

    def _nodes_of(self, instance_id: str) -> list[str]:
        """The nodes that run on a machine: the one it was made with, and those that name it in their providerID."""
        known = self._nodes.get(instance_id)
        if known is None:
            return []
        return [known.name, *(name for name in self._cluster.on_machine(known.provider_id) if name != known.name)]

    def fail(self, instance_id: str) -> None:
        """The cloud says that a machine is in error, whatever it does: a resize or a migration has gone wrong."""
        known = self._instances[instance_id]
        self._instances[instance_id] = msgspec.structs.replace(known, state=InstanceState.ERROR, fault="resize failed")
        self._note_change()

    def _end_rental(self, instance_id: str) -> float | None:
        """Charge for it no longer; returns the end, None where it was not charged for."""
        rental = self._rentals.pop(instance_id, None)
        if rental is None:
            return None
        rental.ended_at = self._clock.now()
        return rental.ended_at

    def _check_room(self, flavour: Flavour) -> None:
        same = sum(other.name == flavour.name for other in self._flavours.values())
        if flavour.stock is not None and same >= flavour.stock:
            raise CapacityError(f"{flavour.name} is out of stock")
        room, capacity = self._room(), flavour.capacity
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
            if instance.launched_at is None:
                self._charge(instance_id, self._clock.now())

    def _fail(self, instance_id: str) -> None:
        instance = self._instances.get(instance_id)
        if instance is not None and instance.state is InstanceState.BUILDING:
            self._instances[instance_id] = msgspec.structs.replace(
                instance, state=InstanceState.ERROR, fault="the machine failed to boot"
            )
            self._note_change()

    def _register(self, instance_id: str) -> None:
        instance = self._instances.get(instance_id)
        if instance is not None and instance.state is InstanceState.ACTIVE:
            node = msgspec.structs.replace(self._nodes[instance_id], created_at=self._clock.now())
            self._cluster.add_node(node)

    def _report(self, instance_id: str, node: str) -> None:
        """The kubelet reports Ready, unless the machine is gone by then."""
        instance = self._instances.get(instance_id)
        if instance is not None and instance.state is InstanceState.ACTIVE:
            self._cluster.set_ready(node, True)
            passing = (*self.startup_taints, *(self.taints if self.taints_for_s is not None else ()))
            if passing:
                self._queue.after(self.taints_for_s or 0.0, partial(self._cluster.take_off, node, passing))
            after_s, offered = self._offered.get(instance_id, (None, NOTHING))
            if after_s:
                self._queue.after(after_s, partial(self._cluster.set_offered, node, offered))

    def _gone(self, instance_id: str) -> None:
        self._instances.pop(instance_id, None)
        self._flavours.pop(instance_id, None)
        self._nodes.pop(instance_id, None)
