"""`htas store`: making, bringing up to date and checking the store. A SQLite file makes and migrates itself."""

from __future__ import annotations

from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import Loaded
from htas.daemon.wiring import recorded_store, store_path


def init(loaded: Loaded) -> str:
    """Make the store; says what was made. Raises PermanentError where another program or a newer htas owns it."""
    if loaded.cassandra is None:
        return f"{_opened(loaded)}: is ready; htas run would have made it, too"
    from htas.daemon.cassandra_store import init_store

    place = f"keyspace {loaded.cassandra.keyspace}"
    return f"{place}: made" if init_store(loaded, loaded.cassandra) else f"{place}: is there already, nothing changed"


def migrate(loaded: Loaded) -> str:
    """Bring the store up to date; says from which version."""
    if loaded.cassandra is None:
        recorded_store(loaded).close()
        return f"{store_path(loaded)}: is up to date; htas run migrates it by itself, too"
    from htas.daemon.cassandra_store import migrate_store

    found, version = migrate_store(loaded, loaded.cassandra)
    place = f"keyspace {loaded.cassandra.keyspace}"
    if found == version:
        return f"{place}: has schema {version} already, nothing changed"
    return f"{place}: brought from schema {found} to {version}"


def check(loaded: Loaded) -> str:
    """What was found; raises HTASError naming what is wrong."""
    if loaded.cassandra is None:
        store = recorded_store(loaded)
        try:
            claims = len(store.claims())
        finally:
            store.close()
        return f"{store_path(loaded)}: can be read; open claims: {claims}"
    from htas.daemon.cassandra_store import check_store

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


def _opened(loaded: Loaded) -> str:
    path = store_path(loaded)
    SqliteStore(path).close()
    return path
