"""The implementations every contract runs against: the sandbox in this process, and one in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.model.nodes import Node
from htas.model.pods import WorkKind
from htas.model.resources import Resources
from htas.ports import Clock, ClusterPort, MigrationPort, ProviderPort, StorePort
from htas.sandbox.remote import RemoteWorld
from htas.sandbox.workload import Arrival, ControllerKind, Task, Workload
from htas.sandbox.world import World
from tests.builders import make_node
from tests.far_store import opened_behind

WORK = Workload(
    "contract",
    (
        Arrival(0.0, Task("job", Resources(500, 2**30, 0, 1), WorkKind.BATCH, runs_s=100.0, stated_s=100.0)),
        Arrival(0.0, Task("web", Resources(500, 2**30, 0, 1), labels={"app": "web"}), ControllerKind.REPLICA_SET, 2),
    ),
)
NODES: tuple[Node, ...] = (make_node("a", "2", "4Gi"), make_node("b", "2", "4Gi"))


@dataclass(frozen=True, slots=True)
class Universe:
    """One implementation of all ports, and how to let its time pass."""

    clock: Clock
    cluster: ClusterPort
    provider: ProviderPort
    migration: MigrationPort
    advance_to: Callable[[float], None]

    def wait(self, seconds: float) -> None:
        self.advance_to(self.clock.now() + seconds)


def fresh_world() -> World:
    world = World()
    world.add_nodes(NODES)
    world.load(WORK)
    world.advance_to(world.clock.now() + 1)
    return world


SERVE = """
import sys, threading
from pathlib import Path
from htas.sandbox.server import WorldServer
from tests.contracts.conftest import fresh_world
server = WorldServer(fresh_world(), Path(sys.argv[1]), None)
server.start()
sys.stdin.read()
server.stop()
"""


@pytest.fixture(params=["in process", "another process"])
def universe(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Universe]:
    if request.param == "in process":
        world = fresh_world()
        yield Universe(world.clock, world.cluster, world.cloud, world.migration, world.advance_to)
        return
    socket = tmp_path / "world.sock"
    command = [sys.executable, "-c", SERVE, str(socket)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).parents[2]) as server:
        wait_for(socket)
        remote = RemoteWorld(socket)
        yield Universe(remote.clock, remote.cluster, remote.cloud, remote.migration, remote.advance_to)
        remote.close()
        assert server.stdin is not None
        server.stdin.close()
        server.wait(10)


def wait_for(path: Path) -> None:
    """Until a process we started has made its socket; bounded."""
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorePort]:
    """Each implementation of the StorePort; the next one is another line here."""
    kinds: dict[str, Callable[[], Any]] = {
        "file": lambda: SqliteStore(str(tmp_path / "htas.db")),
        "memory": lambda: SqliteStore(":memory:"),
        "write behind": lambda: opened_behind(tmp_path),
    }
    made = kinds[request.param]()
    yield made
    made.close()
