"""The composition root: from a loaded configuration to a daemon with its ports."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import Loaded
from htas.config.settings import SandboxSetting
from htas.daemon.cycle import Daemon
from htas.execution.ports import Ports
from htas.experiments.workloads.day import day
from htas.ports import PermanentError, StorePort
from htas.sandbox.cloud import Chances
from htas.sandbox.remote import RemoteWorld
from htas.sandbox.server import WorldServer
from htas.sandbox.world import World


def new_world(setting: SandboxSetting) -> World:
    """A sandbox as configured, its work already on its way."""
    world = World(
        seed=setting.seed,
        startup_s=setting.startup_delay,
        quota=setting.quota.model(),
        chances=Chances(setting.faults.out_of_stock, setting.faults.boot_failure, setting.faults.never_registers),
    )
    if setting.workload == "day":
        world.load(day(setting.seed))
    return world


def store_path(loaded: Loaded) -> str:
    """Where the configured store is; a relative path is taken from the configuration's folder."""
    path = loaded.sqlite.path
    return path if path == ":memory:" else str(loaded.directory / path)


def open_store(loaded: Loaded) -> StorePort:
    """The configured store, made if there is none."""
    return SqliteStore(store_path(loaded))


def recorded_store(loaded: Loaded) -> StorePort:
    """The configured store for reading; raises PermanentError where no daemon has made it yet."""
    path = store_path(loaded)
    if not Path(path).exists():
        raise PermanentError(f"{path}: nothing has been recorded yet; start the daemon with htas run")
    return open_store(loaded)


@contextmanager
def opened_world(loaded: Loaded) -> Iterator[RemoteWorld]:
    """The configured sandbox: the one at its address, or one of our own that ends with us."""
    setting = loaded.sandbox
    with ExitStack() as stack:
        if setting.address is not None:
            address = loaded.directory / setting.address
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="htas-")))
            address = folder / "world.sock"
            server = WorldServer(new_world(setting), address, setting.speed)
            server.start()
            stack.callback(server.stop)
        world = RemoteWorld(address, setting.speed)
        stack.callback(world.connection.close)
        yield world


@contextmanager
def wired(loaded: Loaded) -> Iterator[Daemon]:
    """A daemon on the configured ports, which are closed at the end."""
    with opened_world(loaded) as world, ExitStack() as stack:
        store = open_store(loaded)
        stack.callback(store.close)
        if loaded.sandbox.address is None:
            _refuse_another_worlds(store, store_path(loaded), world.clock.now())
        yield Daemon(
            Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer), loaded.policy
        )


def _refuse_another_worlds(store: StorePort, path: str, now: float) -> None:
    """A sandbox within this process begins anew each time: a journal of an earlier one is not this one's."""
    if store.claims() or any(bill.started_at > now or bill.ended_at for bill in store.bills()):
        raise PermanentError(f"{path}: is the journal of an earlier sandbox; name another file, or remove it")
