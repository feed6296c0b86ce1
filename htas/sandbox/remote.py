"""A sandbox world in another process, behind the same ports."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import msgspec

from htas.model.claims import Headroom, Instance, NodeClaim, Usage
from htas.model.constraints import Taint
from htas.model.flavours import Flavour
from htas.model.migrations import MigrationRecord
from htas.model.moves import MigrationMethod, Move
from htas.model.news import News
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.snapshot import ClusterView
from htas.ports import HTASError, PermanentError, TransientError
from htas.sandbox.ledger import Ledger
from htas.sandbox.wire import CALLS, Answer, raised

TIMEOUT_S = 30.0
LOOK_S, AWAY_S = 0.02, 1.0
"""Between looks for changes, and while the world does not answer."""


class Connection:
    """One socket to a world. Where a kept one turns out to be lost, it is made anew once and the call repeated.

    Every call of the ports may be carried out twice (its first answer may be what was lost); a call that timed out is
    not repeated, since the world may still be at it.
    """

    def __init__(self, address: Path) -> None:
        self._address = address
        self._lock = Lock()
        self._file: Any = None

    def call(self, name: str, *args: object) -> Any:
        """Carry out a call over there; raises what it raised, TransientError where the world cannot be reached."""
        request = msgspec.json.encode({"call": name, "args": args}) + b"\n"
        with self._lock:
            try:
                line = self._exchange_again(request)
            except (OSError, ValueError) as error:
                self.close()
                raise TransientError(f"the sandbox at {self._address} cannot be reached: {error}") from error
        kind = CALLS[name][2]
        try:
            reply = msgspec.json.decode(line, type=Answer)
            if reply.error is None:
                return msgspec.json.decode(reply.ok, type=kind) if kind is not None else None
        except (msgspec.MsgspecError, ValueError) as error:  # ValueError: what is no UTF-8
            what = f"the sandbox at {self._address} answered {name} with what makes no sense"
            raise TransientError(f"{what}: {error}") from error
        raise raised(reply.error)

    def _exchange_again(self, request: bytes) -> bytes:
        was_kept = self._file is not None
        try:
            return self._exchange(request)
        except ConnectionError:
            if not was_kept:
                raise
        self.close()
        return self._exchange(request)

    def _exchange(self, request: bytes) -> bytes:
        if self._file is None:
            plug = socket.socket(socket.AF_UNIX)
            plug.settimeout(TIMEOUT_S)
            try:
                plug.connect(str(self._address))
                self._file = plug.makefile("rwb")
            finally:
                plug.close()  # the file keeps the socket open for as long as it lives
        self._file.write(request)
        self._file.flush()
        line: bytes = self._file.readline()
        if not line:
            raise ConnectionError("the connection was closed")
        return line

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            try:
                file.close()
            except OSError:
                return


class Looking:
    """Asks a world for its changes again and again, since nobody tells of them over there."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._wake: dict[str, Callable[[], None]] = {}
        self._stopping = Event()
        self._thread: Thread | None = None

    def on_change(self, call: str, wake: Callable[[], None]) -> None:
        """Have `wake` called when what `call` answers has grown."""
        self._wake[call] = wake
        if self._thread is None:
            self._thread = Thread(target=self._run, name="sandbox changes", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(TIMEOUT_S)

    def _run(self) -> None:
        seen: dict[str, int] = {}
        pause_s = LOOK_S
        while not self._stopping.wait(pause_s):
            try:
                for call, wake in tuple(self._wake.items()):
                    changes = int(self._connection.call(call))
                    if seen.get(call) != changes:  # the first look may be late: it wakes, too
                        seen[call] = changes
                        wake()
                pause_s = LOOK_S
            except HTASError:
                pause_s = AWAY_S  # whoever needs an answer is told why there is none


class RemoteClock:
    """Implements Clock. Its speed is asked for once, unless it is given."""

    def __init__(self, connection: Connection, speed: float | None = None) -> None:
        self._connection = connection
        self._speed = speed

    def now(self) -> float:
        return float(self._connection.call("clock.now"))

    @property
    def speed(self) -> float:
        if self._speed is None:
            self._speed = float(self._connection.call("clock.speed"))
        return self._speed


class RemoteCluster:
    """Implements ClusterPort."""

    def __init__(self, connection: Connection, looking: Looking) -> None:
        self._call = connection.call
        self._looking = looking

    def observe(self) -> ClusterView:
        view: ClusterView = self._call("cluster.observe")
        return view

    def changes(self) -> int:
        return int(self._call("cluster.changes"))

    def on_change(self, wake: Callable[[], None]) -> None:
        self._looking.on_change("cluster.changes", wake)

    def bind(self, pod: Pod, node: str, deletion_cost: int | None = None) -> None:
        self._call("cluster.bind", pod, node, deletion_cost)

    def evict(self, pod: Pod, grace_s: float | None = None) -> None:
        self._call("cluster.evict", pod, grace_s)

    def nominate(self, pod: Pod, node: str | None) -> None:
        self._call("cluster.nominate", pod, node)

    def preempt(self, pod: Pod, message: str) -> None:
        self._call("cluster.preempt", pod, message)

    def set_draining(self, node: str, draining: bool) -> None:
        self._call("cluster.set_draining", node, draining)

    def set_up_node(self, node: str, labels: Mapping[str, str], taints: Sequence[Taint] = ()) -> None:
        self._call("cluster.set_up_node", node, dict(labels), list(taints))

    def disown_node(self, node: str) -> None:
        self._call("cluster.disown_node", node)

    def delete_node(self, node: str) -> None:
        self._call("cluster.delete_node", node)


class RemoteCloud:
    """Implements ProviderPort."""

    def __init__(self, connection: Connection, looking: Looking) -> None:
        self._call = connection.call
        self._looking = looking

    def create(self, claim: NodeClaim, flavour: Flavour, node: Node) -> Instance:
        instance: Instance = self._call("cloud.create", claim, flavour, node)
        return instance

    def delete(self, instance_id: str) -> None:
        self._call("cloud.delete", instance_id)

    def adopt(self, instance_id: str, cluster: str, claim: str, group: str) -> None:
        self._call("cloud.adopt", instance_id, cluster, claim, group)

    def instances(self) -> Sequence[Instance]:
        found: list[Instance] = self._call("cloud.instances")
        return found

    def usage(self, since: float, until: float) -> Sequence[Usage] | None:
        found: list[Usage] | None = self._call("cloud.usage", since, until)
        return found

    def headroom(self) -> Headroom:
        room: Headroom = self._call("cloud.headroom")
        return room

    def changes(self) -> int:
        return int(self._call("cloud.changes"))

    def on_change(self, wake: Callable[[], None]) -> None:
        self._looking.on_change("cloud.changes", wake)


class RemoteMigration:
    """Implements MigrationPort."""

    def __init__(self, connection: Connection) -> None:
        self._call = connection.call

    def start(self, pod: Pod, target: str, method: MigrationMethod = MigrationMethod.CHECKPOINT) -> None:
        self._call("migration.start", pod, target, method)

    def moving(self) -> Sequence[Move]:
        moves: list[Move] = self._call("migration.moving")
        return moves

    def records(self) -> Sequence[MigrationRecord]:
        records: list[MigrationRecord] = self._call("migration.records")
        return records


class RemoteAnnouncer:
    """Implements AnnouncerPort. What is said of the work must not stop it: a lost call is a lost announcement."""

    def __init__(self, connection: Connection) -> None:
        self._call = connection.call

    def tell(self, news: Iterable[News]) -> None:
        with suppress(HTASError):
            self._call("announcer.tell", list(news))

    def mark_waiting(self, pod: Pod, message: str) -> None:
        with suppress(HTASError):
            self._call("announcer.mark_waiting", pod, message)

    def publish(self, status: str) -> None:
        with suppress(HTASError):
            self._call("announcer.publish", status)

    @property
    def status(self) -> str:
        """The status document as it was published last; raises HTASError."""
        published: str = self._call("announcer.published")
        return published

    def told(self) -> list[News]:
        told: list[News] = self._call("announcer.told")
        return told


class RemoteWorld:
    """A world by its address; raises PermanentError when there is none. No `speed`: as the world itself states it."""

    def __init__(self, address: Path, speed: float | None = None) -> None:
        if not address.exists():
            raise PermanentError(
                f"{address}: no sandbox listens there; start one with: htas sandbox --socket {address}"
            )
        self.connection = Connection(address)
        self.clock = RemoteClock(self.connection, speed)
        self._looking = Looking(self.connection)
        self.cluster = RemoteCluster(self.connection, self._looking)
        self.cloud = RemoteCloud(self.connection, self._looking)
        self.migration = RemoteMigration(self.connection)
        self.announcer = RemoteAnnouncer(self.connection)

    def close(self) -> None:
        """End the connection, and asking over it."""
        self._looking.close()
        self.connection.close()

    def advance_to(self, instant: float) -> None:
        self.connection.call("world.advance_to", instant)

    def next_event_at(self) -> float | None:
        at: float | None = self.connection.call("world.next_event_at")
        return at

    def ledger(self) -> Ledger:
        ledger: Ledger = self.connection.call("world.ledger")
        return ledger
