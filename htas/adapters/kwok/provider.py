"""ProviderPort with simulated machines: each is a ConfigMap, and once it has "booted" a Node that KWOK keeps.

The ConfigMaps are this cloud's truth. They outlive the daemon, so that one that was killed, or another that now leads,
finds every machine that was ever asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Condition, Thread

import msgspec
import structlog

from htas.adapters.kubernetes.api import MERGE_PATCH, ApiServer, part
from htas.adapters.kwok.machines import MARK, Fate, Faults, Machine, fate_of, node_manifest
from htas.model.claims import Headroom, Instance, InstanceState, NodeClaim, Usage
from htas.model.flavours import Flavour
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL, Node
from htas.ports import CapacityError, ConflictError, HTASError, NotFoundError, TransientError

log = structlog.get_logger()

PREFIX = "kwok-"
"""Before the claim's id in a machine's."""
BOOTS_AT_ONCE = 8
"""Nodes that are registered at one time: with one after another, 150 machines took 20 s on a busy API server."""
RETRY_S = 1.0
"""Until a boot that the API server refused is tried again."""


class _Meta(msgspec.Struct):
    name: str
    labels: dict[str, str] = {}
    deletionTimestamp: str | None = None  # noqa: N815 # the API's own name


class _ConfigMap(msgspec.Struct):
    metadata: _Meta
    data: dict[str, str] = {}


class _Spec(msgspec.Struct):
    provider_id: str = msgspec.field(default="", name="providerID")


class _Node(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _ConfigMaps(msgspec.Struct):
    items: list[_ConfigMap] = []


_LISTS = msgspec.json.Decoder(_ConfigMaps)


class KwokProvider:
    """Implements ProviderPort. `start` lets machines boot, `close` ends that: only the daemon that leads does so.

    `startup_s` is what a boot takes. `reached` is told of every effect, for the kill tests.
    """

    def __init__(
        self,
        api: ApiServer,
        cluster: str,
        namespace: str,
        startup_s: float,
        faults: Faults,
        *,
        clock: Callable[[], float] = time.time,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._path = f"/api/v1/namespaces/{part(namespace)}/configmaps"
        self._namespace = namespace
        self._startup_s = startup_s
        self._faults = faults
        self._clock = clock
        self._reached = reached
        self._wake = Condition()
        self._boots: dict[str, tuple[float, Machine]] = {}
        self._unchecked: list[Machine] = []
        """Registered, while nobody has looked yet whether they were deleted meanwhile."""
        self._check_at = 0.0
        self._is_closing = False
        self._thread: Thread | None = None
        self._pool = ThreadPoolExecutor(BOOTS_AT_ONCE, thread_name_prefix="kwok boot")

    # The port.

    def create(self, claim: NodeClaim, flavour: Flavour, node: Node) -> Instance:
        fate = fate_of(claim.id, self._faults)
        if fate is Fate.OUT_OF_STOCK:
            raise CapacityError(f"no {flavour.name} in stock (simulated)")
        now = self._clock()
        delay_s = self._startup_s + (self._faults.late_s if fate is Fate.REGISTERS_LATE else 0.0)
        machine = Machine(
            id=f"{PREFIX}{claim.id}",
            claim=claim.id,
            group=claim.group,
            flavour=flavour.name,
            zone=claim.zone,
            created_at=now,
            active_at=now + self._startup_s,
            boots_at=None if fate is Fate.NEVER_REGISTERS else now + delay_s,
            node=node_manifest(node, flavour, f"{PREFIX}{claim.id}"),
        )
        try:
            self._api.post(self._path, self._manifest(machine))
        except ConflictError:  # asked for already: the answer was lost, or this is the next attempt
            machine = _machine(msgspec.json.decode(self._api.get(f"{self._path}/{machine.id}"), type=_ConfigMap))
        self._reached("kwok.machine-recorded")
        self._arrange(machine)
        return self._instance(machine, self._cluster)

    def delete(self, instance_id: str) -> None:
        """The ConfigMap goes first: without it nothing boots any more. Then the Node, which KWOK would keep Ready.

        Repeated after half of it failed, it finishes the other half, and says that the machine is gone.
        """
        with self._wake:
            self._boots.pop(instance_id, None)
        claim = instance_id.removeprefix(PREFIX)
        try:
            self._api.delete(f"{self._path}/{part(instance_id)}")
        except NotFoundError:
            self._delete_node(claim)
            raise
        self._reached("kwok.machine-deleted")
        self._delete_node(claim)
        self._reached("kwok.node-deleted")

    def adopt(self, instance_id: str, cluster: str, claim: str, group: str) -> None:
        path = f"{self._path}/{part(instance_id)}"
        machine = _machine(msgspec.json.decode(self._api.get(path), type=_ConfigMap))
        told = msgspec.structs.replace(machine, claim=claim, group=group)
        labels = {CLUSTER_LABEL: cluster, CLAIM_LABEL: claim, GROUP_LABEL: group}
        data = {"machine": msgspec.json.encode(told).decode()}
        self._api.patch(path, {"metadata": {"labels": labels}, "data": data}, MERGE_PATCH)

    def instances(self) -> Sequence[Instance]:
        found = _LISTS.decode(self._api.get(self._path, {"labelSelector": MARK}))
        return tuple(
            self._instance(_machine(item), item.metadata.labels.get(CLUSTER_LABEL))
            for item in found.items
            if "machine" in item.data
        )

    def headroom(self) -> Headroom:
        return Headroom()

    def usage(self, since: float, until: float) -> Sequence[Usage] | None:
        return None  # nobody keeps books on machines that cost nothing

    def changes(self) -> int:
        return 0  # these machines fail when they are asked for, or not at all

    def on_change(self, wake: Callable[[], None]) -> None:
        pass

    # The cloud.

    def start(self) -> None:
        """Boot what is due, now and from now on, also what an earlier process asked for."""
        self._thread = Thread(target=self._boot_all, name="kwok cloud", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(5.0)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _arrange(self, machine: Machine) -> None:
        if machine.boots_at is None:
            return
        with self._wake:
            self._boots[machine.id] = machine.boots_at, machine
            self._wake.notify()

    def _boot_all(self) -> None:
        is_recalled = False
        while True:
            if not is_recalled:
                is_recalled = self._recall()
            with self._wake:
                if self._is_closing:
                    return
                due = [machine for at, machine in self._boots.values() if at <= self._clock()]
                if not due and not self._must_check():
                    self._wake.wait(self._pause_s(is_recalled))
                    continue
            self._boot_together(due)

    def _pause_s(self, is_recalled: bool) -> float | None:
        """Until the next boot; None: nothing is arranged."""
        pauses = [at - self._clock() for at, _ in self._boots.values()]
        if not is_recalled:
            pauses.append(RETRY_S)
        if self._unchecked:
            pauses.append(self._check_at - self._clock())
        return max(0.0, min(pauses)) if pauses else None

    def _recall(self) -> bool:
        """Find the machines that an earlier process asked for and that have no node yet."""
        try:
            found = self._ours()
        except HTASError as error:
            log.warning("simulated machines cannot be listed, tried again", error=str(error))
            return False
        for machine in found:
            self._arrange(machine)
        return True

    def _ours(self) -> list[Machine]:
        found = _LISTS.decode(self._api.get(self._path, {"labelSelector": f"{MARK},{CLUSTER_LABEL}={self._cluster}"}))
        return [_machine(item) for item in found.items if "machine" in item.data]

    def _boot_together(self, machines: Sequence[Machine]) -> None:
        """Register the nodes of machines that are due, several at a time; one whose call fails is tried again soon.

        A machine that was deleted meanwhile loses its node again: one look afterwards tells of all of them.
        """
        for machine, is_there in zip(machines, self._pool.map(self._boot, machines), strict=True):
            if is_there:
                self._unchecked.append(machine)
        if self._must_check():
            self._check()

    def _must_check(self) -> bool:
        return bool(self._unchecked) and self._check_at <= self._clock()

    def _check(self) -> None:
        """Take the nodes of deleted machines away; after a call that failed all are looked at again, in a second."""
        try:
            left = {machine.id for machine in self._ours()}
            for machine in self._unchecked:
                if machine.id not in left:
                    self._delete_node(machine.claim)
        except HTASError as error:
            log.warning("simulated boots cannot be checked, tried again", error=str(error))
            self._check_at = self._clock() + RETRY_S
            return
        self._unchecked.clear()

    def _boot(self, machine: Machine) -> bool:
        """Register a machine's node; False: it was deleted before, or is tried again."""
        with self._wake:
            if machine.id not in self._boots:
                return False
        try:
            self._create_node(machine)
        except HTASError as error:
            log.warning("simulated boot failed, tried again", machine=machine.id, error=str(error))
            self._try_again(machine)
            return False
        with self._wake:
            self._boots.pop(machine.id, None)
        self._reached("kwok.node-created")
        return True

    def _try_again(self, machine: Machine) -> None:
        with self._wake:
            if machine.id in self._boots:
                self._boots[machine.id] = self._clock() + RETRY_S, machine

    def _create_node(self, machine: Machine) -> None:
        """Register the node; a conflict is good news only if it is there already."""
        try:
            self._api.post("/api/v1/nodes", machine.node)
        except ConflictError as error:
            try:
                self._api.get(f"/api/v1/nodes/{part(machine.claim)}")
            except NotFoundError:
                raise TransientError(str(error)) from error

    def _delete_node(self, claim: str) -> None:
        """The Node object of a machine, which bears its claim's name; if it is ours."""
        path = f"/api/v1/nodes/{part(claim)}"
        try:
            found = msgspec.json.decode(self._api.get(path), type=_Node)
            is_its = found.spec.provider_id == f"kwok://{PREFIX}{claim}"  # its labels may say anything by now
            if is_its or found.metadata.labels.get(CLAIM_LABEL) == claim:
                self._api.delete(path)
        except NotFoundError:
            return

    def _manifest(self, machine: Machine) -> dict[str, object]:
        labels = {MARK: "true", CLUSTER_LABEL: self._cluster, CLAIM_LABEL: machine.claim, GROUP_LABEL: machine.group}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": machine.id, "namespace": self._namespace, "labels": labels},
            "data": {
                "machine": msgspec.json.encode(machine).decode(),
                "flavour": machine.flavour,
                "created": datetime.fromtimestamp(machine.created_at, UTC).isoformat(timespec="seconds"),
            },
        }

    def _instance(self, machine: Machine, cluster: str | None) -> Instance:
        is_active = self._clock() >= machine.active_at
        return Instance(
            id=machine.id,
            name=machine.id,
            flavour=machine.flavour,
            state=InstanceState.ACTIVE if is_active else InstanceState.BUILDING,
            created_at=machine.created_at,
            zone=machine.zone,
            cluster=cluster,
            claim=machine.claim,
            group=machine.group,
            launched_at=machine.created_at,
        )


def _machine(found: _ConfigMap) -> Machine:
    return msgspec.json.decode(found.data["machine"], type=Machine)
