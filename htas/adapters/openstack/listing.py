"""The cloud as it showed itself last: listed again and again beside the daemon, so that no cycle waits for it.

Nova's lists lag behind its answers and may leave servers out while a part of it is down. So what we asked for counts at
once, and a machine of ours that a list lacks counts as gone only when it is not found by its id either.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from time import monotonic

import msgspec
import structlog

from htas.adapters.openstack import wire
from htas.adapters.openstack.names import Names
from htas.adapters.openstack.nova import Nova
from htas.model.claims import Headroom, Instance, InstanceState
from htas.model.flavours import Flavour
from htas.ports import HTASError, NotFoundError, TransientError

log = structlog.get_logger()

PASSING = frozenset({InstanceState.BUILDING, InstanceState.DELETING})
"""States that soon become others: looked at more often."""
STALE_TIMES, LEAST_STALE_S = 3, 30.0
"""How many intervals, or seconds, a list may be old before nothing is decided on it any more."""


SWEPT_AT_ONCE = 20
"""Machines whose ports are looked for after one look at the cloud, so that the next is not long in coming."""


class Listing:
    """Our machines, others', and what the quota leaves. `start` begins to look, `close` ends it; `look` looks once.

    Looks come every `interval_s`, or every `quick_s` while a machine is coming or going.
    """

    def __init__(
        self,
        nova: Nova,
        names: Names,
        cluster: str,
        *,
        interval_s: float,
        quick_s: float,
        has_network: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._nova = nova
        self._names = names
        self._cluster = cluster
        self._interval_s = interval_s
        self._quick_s = min(quick_s, interval_s)
        self._has_network = has_network
        self._clock = clock
        self._wake = Condition()
        self._machines: dict[str, Instance] = {}
        self._created: dict[str, tuple[float, Flavour]] = {}
        self._deleted: dict[str, float] = {}
        self._unswept: set[str] = set()
        self._headroom = Headroom()
        self._seen_at: float | None = None
        self._problem = "not listed yet"
        self._changes = 0
        self.on_change: Callable[[], None] = lambda: None
        """Called after each of `changes`, by the thread that brought it."""
        self._is_closing = False
        self._thread: Thread | None = None

    # What it shows.

    def instances(self) -> tuple[Instance, ...]:
        """Raises TransientError where the last look is too old to decide anything on."""
        with self._wake:
            self._check_fresh()
            return tuple(self._machines.values())

    def headroom(self) -> Headroom:
        """What the quota left at the last look, less what was bought since.

        Nova counts a server when its scheduler has found a host for it, some seconds after it was accepted.
        """
        with self._wake:
            self._check_fresh()
            room = self._headroom
            for _, flavour in self._created.values():
                room = room.less(1, flavour.capacity)
            return room

    @property
    def changes(self) -> int:
        return self._changes

    def _note_change(self) -> None:
        self._changes += 1
        self.on_change()

    @property
    def age_s(self) -> float | None:
        """Seconds since the last look that succeeded; None: there was none."""
        return None if self._seen_at is None else self._clock() - self._seen_at

    def of_claim(self, claim: str) -> Instance | None:
        """Our machine of a claim that is there to stay."""
        with self._wake:
            mine = (each for each in self._machines.values() if (each.cluster, each.claim) == (self._cluster, claim))
            return next((each for each in mine if each.state is not InstanceState.DELETING), None)

    def is_anothers(self, instance_id: str) -> bool:
        """Whether a machine is known not to be ours."""
        with self._wake:
            known = self._machines.get(instance_id)
            return known is not None and known.cluster != self._cluster

    # What we did.

    def bought(self, instance: Instance, flavour: Flavour) -> None:
        with self._wake:
            self._machines[instance.id] = instance
            self._created[instance.id] = self._clock(), flavour
            self._wake.notify_all()

    def found(self, instance: Instance) -> None:
        """A machine that was looked for by its claim."""
        with self._wake:
            self._machines[instance.id] = instance

    def released(self, instance_id: str) -> None:
        """Its end has been asked for."""
        with self._wake:
            known = self._machines.get(instance_id)
            if known is not None:
                self._machines[instance_id] = msgspec.structs.replace(known, state=InstanceState.DELETING)
                self._deleted[instance_id] = self._clock()
            self._wake.notify_all()

    def adopted(self, instance_id: str, cluster: str, claim: str, group: str) -> None:
        """Its metadata name us from now on."""
        with self._wake:
            known = self._machines.get(instance_id)
            if known is not None:
                told = msgspec.structs.replace(known, cluster=cluster, claim=claim, group=group)
                self._machines[instance_id] = told

    def gone(self, instance_id: str) -> None:
        with self._wake:
            self._forget(instance_id)

    # Looking.

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="cloud", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._wake:
            self._is_closing = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join(5.0)

    def look(self) -> None:
        """Look once; raises what the cloud answers."""
        begun = self._clock()
        servers = self._nova.servers()
        headroom = self._nova.headroom()
        sold = self._names.sold()
        listed = self._understood(servers)
        missing = self._lost(listed, begun)
        with self._wake:
            self._merge(listed, missing, begun)
            self._headroom = msgspec.structs.replace(headroom, sold=sold)
            counted = {server.id for server in servers if server.task != wire.SCHEDULING}
            self._created = {key: each for key, each in self._created.items() if key not in counted}
            if self._problem:
                self._note_change()  # a first look, or the end of a silence: what waited for it may go on
            self._seen_at, self._problem = begun, ""
        self._sweep()

    def look_at_headroom(self) -> None:
        """The quota alone, at once: it has just been found to be less than was thought."""
        try:
            room = self._nova.headroom()
        except HTASError:
            return  # the next look tells
        with self._wake:
            self._headroom = msgspec.structs.replace(room, sold=self._headroom.sold)

    def _run(self) -> None:
        while True:
            try:
                self.look()
                pause_s = self._pause_s()
            except HTASError as error:
                pause_s = max(self._quick_s, getattr(error, "retry_after_s", None) or 0.0)
                self._note(error)
            except Exception as error:  # an answer that makes no sense must not end the looking
                log.exception("the cloud's answer makes no sense")
                pause_s = self._interval_s
                self._note(error)
            with self._wake:
                if not self._is_closing:
                    self._wake.wait(pause_s)
                if self._is_closing:
                    return

    def _note(self, error: Exception) -> None:
        with self._wake:
            if str(error) != self._problem:
                log.warning("the cloud could not be listed", error=str(error))
            self._problem = str(error) or type(error).__name__

    def _pause_s(self) -> float:
        with self._wake:
            mine = [each for each in self._machines.values() if each.cluster == self._cluster]
            return self._quick_s if any(each.state in PASSING for each in mine) else self._interval_s

    def _check_fresh(self) -> None:
        age_s = self.age_s
        if age_s is None:
            raise TransientError(self._problem)
        if age_s > max(STALE_TIMES * self._interval_s, LEAST_STALE_S):
            raise TransientError(self._problem or f"no answer for {age_s:.0f} s")

    def _understood(self, servers: list[wire.Server]) -> dict[str, Instance]:
        """Machines by id. Of a cell that is down only ids are listed: what is known of those stays as it was."""
        listed: dict[str, Instance] = {}
        for server in servers:
            if server.status in wire.GONE:
                continue
            if server.status == wire.UNKNOWN:
                known = self._machines.get(server.id)
                if known is None:
                    raise TransientError(f"a part of the cloud is down: nothing is known of server {server.id}")
                listed[server.id] = known
                continue
            listed[server.id] = self._with_fault(server)
        return listed

    def _with_fault(self, server: wire.Server) -> Instance:
        """Why a machine of ours failed is not in lists; it is asked for once."""
        instance = wire.instance_of(server)
        if instance.state is not InstanceState.ERROR or instance.cluster != self._cluster or instance.fault:
            return instance
        known = self._machines.get(server.id)
        if known is not None and known.fault:
            return msgspec.structs.replace(instance, fault=known.fault)
        alone = self._nova.server(server.id)
        is_told = alone is not None and alone.fault is not None
        return msgspec.structs.replace(instance, fault=wire.instance_of(alone).fault) if alone and is_told else instance

    def _lost(self, listed: dict[str, Instance], begun: float) -> dict[str, Instance | None]:
        """Machines of ours that the list lacks, as they show when asked for by id (None: gone)."""
        with self._wake:
            mine = [each for each in self._machines.values() if each.cluster == self._cluster]
            since = {key for key, (at, _) in self._created.items() if at >= begun}
        lost: dict[str, Instance | None] = {}
        for known in mine:
            if known.id not in listed and known.id not in since:
                found = self._nova.server(known.id)
                if found is None or found.status in wire.GONE:
                    lost[known.id] = None
                else:
                    lost[known.id] = known if found.status == wire.UNKNOWN else wire.instance_of(found)
        return lost

    def _merge(self, listed: dict[str, Instance], lost: dict[str, Instance | None], begun: float) -> None:
        seen = dict(listed)
        for instance_id, found in lost.items():
            if found is not None:
                seen[instance_id] = found
                continue
            if instance_id not in self._deleted:
                self._note_change()
            self._forget(instance_id)
        for instance_id, (at, _) in self._created.items():
            if at >= begun and instance_id in self._machines:
                seen.setdefault(instance_id, self._machines[instance_id])
        for instance_id, instance in seen.items():
            before = self._machines.get(instance_id)
            if (
                instance.state is InstanceState.ERROR
                and before is not None
                and before.state is not instance.state
                and before.cluster == self._cluster
            ):
                self._note_change()
            if self._deleted.get(instance_id, -1.0) >= begun:  # the list is older than our wish
                seen[instance_id] = msgspec.structs.replace(instance, state=InstanceState.DELETING)
        self._deleted = {key: at for key, at in self._deleted.items() if key in seen}
        self._machines = seen

    def _forget(self, instance_id: str) -> None:
        known = self._machines.pop(instance_id, None)
        self._deleted.pop(instance_id, None)
        self._created.pop(instance_id, None)
        if known is not None and known.cluster == self._cluster and self._has_network:
            self._unswept.add(instance_id)

    def _sweep(self) -> None:
        """Delete ports that machines of ours left behind; Nova does it, but not when it fails half-way.

        Nova gives the ports it makes no name; one with a name was somebody else's before the machine had it.
        """
        for instance_id in tuple(self._unswept)[:SWEPT_AT_ONCE]:
            try:
                ports = [port for port in self._nova.ports_of(instance_id) if not port.name]
                for port in ports:
                    log.warning("a port was left behind and is deleted", port=port.id, machine=instance_id)
                    with suppress(NotFoundError):
                        self._nova.delete_port(port.id)
            except TransientError as error:
                log.warning("ports cannot be looked for, tried again", machine=instance_id, error=str(error))
                return
            except HTASError as error:
                log.warning("a port that was left behind stays", machine=instance_id, error=str(error))
            self._unswept.discard(instance_id)
