"""`htas store`: making and checking the store. A SQLite file makes itself."""

from __future__ import annotations

from htas.adapters.sqlite.schema import VERSION
from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import Loaded
from htas.daemon.wiring.stores import recorded_file, require_driver, store_path


def init(loaded: Loaded) -> str:
    """Make the store; says what was made. Raises PermanentError where another program or another htas owns it."""
    from htas.daemon.http.audit import note_command

    note_command(loaded, "htas store init")
    if loaded.cassandra is None:
        return f"{_opened(loaded)}: is ready; htas run would have made it, too"
    require_driver()
    from htas.daemon.wiring.cassandra import init_store

    place = f"keyspace {loaded.cassandra.keyspace}"
    return f"{place}: made" if init_store(loaded, loaded.cassandra) else f"{place}: is there already, nothing changed"


def check(loaded: Loaded) -> str:
    """What was found; raises HTASError naming what is wrong."""
    if loaded.cassandra is None:
        return _checked(recorded_file(loaded))
    require_driver()
    from htas.daemon.wiring.cassandra import check_store

    found = check_store(loaded, loaded.cassandra)
    return "\n".join(
        (
            f"keyspace {loaded.cassandra.keyspace}: schema {found.version}",
            f"servers: Cassandra {', '.join(found.releases)}; {found.nodes} nodes known,"
            f" {found.local} in {loaded.cassandra.local_datacenter}",
            f"replicas: {', '.join(f'{name} {factor}' for name, factor in found.replicas)}",
            "rights: can read, write, and write by lightweight transaction",
        )
    )


def _checked(path: str) -> str:
    """What is in a file; nothing in it is changed."""
    store = SqliteStore(path, only_reads=True)
    try:
        return f"{path}: schema {VERSION}, can be read; open claims: {len(store.claims())}"
    finally:
        store.close()


def _opened(loaded: Loaded) -> str:
    path = store_path(loaded)
    SqliteStore(path).close()
    return path
