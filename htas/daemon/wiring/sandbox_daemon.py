"""A sandbox's daemon; that of a real cluster is put together in service.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from htas.config.loader import Loaded
from htas.config.settings import SandboxSetting
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.optimizer import Optimizer
from htas.daemon.wiring.sandbox import opened_world
from htas.daemon.wiring.stores import open_store
from htas.execution.ports import Ports
from htas.ports import PermanentError, StorePort


@contextmanager
def sandbox_daemon(loaded: Loaded, setting: SandboxSetting, optimizer: Optimizer | None = None) -> Iterator[Daemon]:
    """A daemon on the configured sandbox, which is closed at the end."""
    with opened_world(loaded, setting) as world, ExitStack() as stack:
        store = open_store(loaded, world.clock.now)
        stack.callback(store.close)
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
        yield Daemon(ports, loaded.policy, optimizer=optimizer)


def refuse_another_worlds(store: StorePort, path: str, now: float) -> None:
    """A sandbox within this process begins anew each time: a journal of an earlier one is not this one's."""
    if store.claims() or any(bill.started_at > now or bill.ended_at for bill in store.bills()):
        what = f"{path}: is the journal of an earlier sandbox"
        raise PermanentError(f"{what}; name another file, or remove it; with Cassandra: another name in cluster")
