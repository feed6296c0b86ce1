"""A world served to other processes: errors, lost connections, atomic calls and time that goes on."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Event, Thread

import msgspec
import pytest

from htas.ports import CapacityError, ConflictError, HTASError, NotFoundError, PermanentError, TransientError
from htas.sandbox.clock import PacedClock
from htas.sandbox.remote import RemoteWorld
from htas.sandbox.server import WorldServer
from htas.sandbox.wire import answer
from htas.sandbox.world import World
from tests.builders import make_pod
from tests.unit.sandbox.situations import job, pods, wait, world_of


@contextmanager
def serving(world: World, address: Path, speed: float | None = None) -> Iterator[RemoteWorld]:
    server = WorldServer(world, address, speed)
    server.start()
    remote = RemoteWorld(address)
    try:
        yield remote
    finally:
        remote.connection.close()
        server.stop()


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(TransientError("not now"), id="transient"),
        pytest.param(TransientError("not now", 12.5), id="with the wish for a pause"),
        pytest.param(PermanentError("never"), id="permanent"),
        pytest.param(NotFoundError("gone"), id="not found"),
        pytest.param(ConflictError("changed"), id="conflict"),
        pytest.param(CapacityError("no host"), id="out of stock"),
        pytest.param(CapacityError("quota", is_quota=True), id="over quota"),
    ],
)
def test_errors_arrive_as_they_were_raised(error: HTASError, tmp_path: Path) -> None:
    world = World()
    world.cloud.faults.arrange("instances", error)
    with serving(world, tmp_path / "w.sock") as remote:
        with pytest.raises(type(error)) as raised:
            remote.cloud.instances()
        assert type(raised.value) is type(error)
        assert (str(raised.value), vars(raised.value)) == (str(error), vars(error))
        assert remote.cloud.instances() == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"call": "world.end"}', id="no such call"),
        pytest.param(b'{"call": "world.advance_to"}', id="an argument missing"),
        pytest.param(b'{"call": "world.advance_to", "args": ["soon"]}', id="an argument of another type"),
        pytest.param(b'{"call": "clock.now", "args": [1]}', id="an argument too many"),
    ],
)
def test_a_request_that_makes_no_sense_is_answered(line: bytes) -> None:
    assert b'"PermanentError"' in answer(World(), line)


def test_an_error_of_the_worlds_own_is_not_taken_for_a_bad_request() -> None:
    world = World()
    world.queue.after(1, lambda: {}["missing"])
    with pytest.raises(KeyError):
        answer(world, b'{"call": "world.advance_to", "args": [%f]}' % (world.clock.now() + 5))


def test_only_its_owner_may_connect(tmp_path: Path) -> None:
    before = os.umask(0)
    server = WorldServer(World(), tmp_path / "world.sock", speed=None)
    os.umask(before)
    server.start()
    assert stat.S_IMODE(server.address.stat().st_mode) == 0o600
    server.stop()


def test_one_of_several_clients_gets_the_pod(tmp_path: Path) -> None:
    world = world_of(job("j"))
    waiting = pods(world)["j-1"]
    together, outcomes = Barrier(6), []

    def bind(node: str) -> None:
        remote = RemoteWorld(tmp_path / "w.sock")
        together.wait(10)
        try:
            remote.cluster.bind(waiting, node)
            outcomes.append(node)
        except ConflictError:
            outcomes.append("refused")
        remote.connection.close()

    with serving(world, tmp_path / "w.sock"):
        threads = [Thread(target=bind, args=(node,)) for node in ("a", "b") * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    winner = pods(world)["j-1"].node
    assert sorted(outcomes) == sorted([winner] * 3 + ["refused"] * 3)


@pytest.mark.parametrize(
    ("sent", "node"),
    [
        pytest.param(slice(0, 40), None, id="a call cut off is not made"),
        pytest.param(slice(None), "a", id="a call whose caller is gone is made whole"),
    ],
)
def test_a_client_that_is_killed_leaves_the_world_consistent(sent: slice, node: str | None, tmp_path: Path) -> None:
    world = world_of(job("j"))
    request = msgspec.json.encode({"call": "cluster.bind", "args": [pods(world)["j-1"], "a", None]}) + b"\n"
    with serving(world, tmp_path / "w.sock") as remote:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "w.sock"))
            client.sendall(request[sent])
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass  # until the server has closed its end, having dealt with what came
        assert remote.cluster.observe().pods[0].node == node
        remote.advance_to(world.clock.now() + 200)
        assert remote.ledger().finished == (node is not None)


# Lost connections.


@contextmanager
def unsteady(address: Path, lines: Sequence[bytes | None]) -> Iterator[list[bytes]]:
    """A peer that answers each request as told, on one connection until None: then it hangs up after reading one."""
    requests: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen()
        listening.settimeout(10)

        def serve() -> None:
            todo = list(lines)
            while todo:
                plug, _ = listening.accept()
                with plug, plug.makefile("rwb") as file:
                    while todo:
                        reply = todo.pop(0)
                        requests.append(file.readline())
                        if reply is None:
                            break
                        file.write(reply + b"\n")
                        file.flush()

        thread = Thread(target=serve)
        thread.start()
        yield requests
        thread.join(10)


def test_a_lost_connection_is_made_anew_once(tmp_path: Path) -> None:
    with unsteady(tmp_path / "w.sock", [b'{"ok":1}', None, b'{"ok":7}']) as requests:
        remote = RemoteWorld(tmp_path / "w.sock")
        assert [remote.cluster.changes(), remote.cluster.changes()] == [1, 7]
        remote.connection.close()
    assert len(requests) == 3
    assert requests[1] == requests[2]


def test_a_connection_lost_twice_is_told(tmp_path: Path) -> None:
    with unsteady(tmp_path / "w.sock", [b'{"ok":1}', None, None, b'{"ok":7}']):
        remote = RemoteWorld(tmp_path / "w.sock")
        assert remote.cluster.changes() == 1
        with pytest.raises(TransientError, match="cannot be reached"):
            remote.cluster.changes()
        assert remote.cluster.changes() == 7
        remote.connection.close()


def test_a_new_connection_that_is_lost_is_not_tried_twice(tmp_path: Path) -> None:
    with unsteady(tmp_path / "w.sock", [None, b'{"ok":7}']) as requests:
        remote = RemoteWorld(tmp_path / "w.sock")
        with pytest.raises(TransientError):
            remote.cluster.changes()
        assert len(requests) == 1
        assert remote.cluster.changes() == 7
        remote.connection.close()


def test_where_no_world_is_the_way_to_one_is_told(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="htas sandbox --socket"):
        RemoteWorld(tmp_path / "none.sock")


# Time.


def test_a_paced_clock_follows_real_time() -> None:
    real = iter([100.0, 100.0, 100.5, 102.0])
    clock = PacedClock(5000.0, 720.0, lambda: next(real))
    assert [clock.now() for _ in range(3)] == [5000.0, 5360.0, 6440.0]


def test_time_goes_on_while_nobody_is_connected(tmp_path: Path) -> None:
    world, later = World(), Event()
    world.queue.after(3600, later.set)
    server = WorldServer(world, tmp_path / "w.sock", 1e6)
    server.start()
    assert later.wait(20)
    server.stop()


def test_a_worlds_speed_is_what_it_says_itself(tmp_path: Path) -> None:
    with serving(World(), tmp_path / "fast.sock", 720.0) as remote:
        assert remote.clock.speed == 720.0
    with serving(World(), tmp_path / "stepped.sock") as remote:
        assert remote.clock.speed == 1.0


def test_a_stepped_world_moves_only_when_it_is_moved(tmp_path: Path) -> None:
    world = wait(world_of(job("j")), 0)
    start = world.clock.now()
    with serving(world, tmp_path / "w.sock") as remote:
        assert remote.next_event_at() is None
        remote.cluster.bind(remote.cluster.observe().pods[0], "b")
        assert remote.next_event_at() == start + 1.0
        assert remote.clock.now() == start
        remote.advance_to(start + 60)
        assert remote.clock.now() == start + 60
        assert remote.cluster.observe() == world.cluster.observe()


def test_moves_travel(tmp_path: Path) -> None:
    world = world_of(job("j"))
    world.cluster.bind(pods(world)["j-1"], "a")
    wait(world, 5)
    with serving(world, tmp_path / "w.sock") as remote:
        remote.migration.start(pods(world)["j-1"], "b")
        assert tuple(remote.migration.moving()) == tuple(world.migration.moving())
        with pytest.raises(NotFoundError):
            remote.migration.start(make_pod("nobody"), "b")


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b'{"ok": [{"id', id="half a line"),
        pytest.param(b'{"ok": null}', id="nothing, where machines are asked for"),
        pytest.param(b'{"ok": [{"id": 7}]}', id="a machine whose id is a number"),
        pytest.param(b"[]", id="no answer at all"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b'{"ok": [{"id": "\xff"}]}', id="a name that is no text"),
        pytest.param(b'{"error": {"kind": "Gone", "message": "?"}}', id="an error of a kind that is not known"),
    ],
)
def test_an_answer_that_makes_no_sense_may_be_asked_for_again(said: bytes, tmp_path: Path) -> None:
    class Babbling(WorldServer):
        def answer(self, line: bytes) -> bytes:
            return said if b"cloud.instances" in line else super().answer(line)

    server = Babbling(World(), tmp_path / "w.sock", None)
    server.start()
    remote = RemoteWorld(tmp_path / "w.sock")
    try:
        with pytest.raises(TransientError):
            remote.cloud.instances()
        assert remote.clock.now() > 0  # the connection is as good as before
    finally:
        remote.close()
        server.stop()
