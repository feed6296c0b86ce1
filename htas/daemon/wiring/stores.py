"""The stores as they are configured. Commands that only read one load neither the planner nor a driver for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import time

from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import Loaded
from htas.ports import PermanentError, StorePort


def store_path(loaded: Loaded) -> str:
    """The store's file here (of Cassandra: its buffer's); a relative path is taken from the configuration's folder."""
    if loaded.cassandra is not None:
        return str(loaded.directory / loaded.cassandra.buffer.path)
    assert loaded.sqlite is not None  # exactly one is configured
    path = loaded.sqlite.path
    return path if path == ":memory:" else str(loaded.directory / path)


def open_store(loaded: Loaded, clock: Callable[[], float] = time) -> StorePort:
    """The configured store as a daemon uses it: a SQLite file, made if there is none, or Cassandra behind a buffer."""
    if loaded.cassandra is not None:
        from htas.daemon.wiring.remote_store import behind_buffer

        require_driver()
        buffer = loaded.cassandra.buffer
        return behind_buffer(partial(_cassandra, loaded), store_path(loaded), buffer.max_bytes, clock)
    assert loaded.sqlite is not None  # exactly one is configured
    return SqliteStore(store_path(loaded), retention=loaded.sqlite.retention.model())


def unshipped(loaded: Loaded) -> int:
    """How many entries wait in a buffer on this machine: what is read from Cassandra lacks them."""
    if loaded.cassandra is None:
        return 0
    from htas.adapters.write_behind.outbox import waiting_in

    return waiting_in(store_path(loaded))


def has_store(loaded: Loaded) -> bool:
    """Whether there is anything to read: on another machine than the daemon's there may be no file."""
    return loaded.sqlite is None or Path(store_path(loaded)).exists()


def recorded_store(loaded: Loaded) -> StorePort:
    """The configured store for reading; raises PermanentError where no daemon has made it yet."""
    return _cassandra(loaded) if loaded.cassandra is not None else SqliteStore(recorded_file(loaded), only_reads=True)


def recorded_file(loaded: Loaded) -> str:
    """The SQLite file that is configured; raises PermanentError where no daemon has made it yet."""
    if not has_store(loaded):
        raise PermanentError(f"{store_path(loaded)}: nothing has been recorded yet; start the daemon with htas run")
    return store_path(loaded)


def require_driver() -> None:
    """Raise PermanentError where Cassandra's driver, which is optional, is not installed."""
    if find_spec("cassandra") is None:
        raise PermanentError("store.cassandra: its driver is not installed: pip install 'htas[cassandra]'")


def _cassandra(loaded: Loaded) -> StorePort:
    """Cassandra itself, which is waited for."""
    require_driver()
    from htas.daemon.wiring.cassandra import cassandra_store  # the driver takes 0.3 s to load

    assert loaded.cassandra is not None  # asked for only then
    return cassandra_store(loaded, loaded.cassandra)


@contextmanager
def reading_store(loaded: Loaded) -> Iterator[StorePort]:
    """The configured store for reading, closed at the end; raises as `recorded_store` does."""
    store = recorded_store(loaded)
    try:
        yield store
    finally:
        store.close()
