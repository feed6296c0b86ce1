"""Cassandra's store: rows of events written, the latest state of all instances and one instance's day read.

    python -m tools.bench.cassandra [--events 100000] [--instances 5000] [--flush 1000] [--dir DIR]

The profiler hands rows over in flushes of so many. Beside it the driver alone writes as many of the same rows, one by
one, 100 at a time (execute_concurrent_with_args): what it can do on this machine in the same run. DIR is
cassandra-up.sh's working directory (default: one of its own, removed at the end), one node, durable writes.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path

import cassandra
from cassandra.concurrent import execute_concurrent_with_args
from rich.progress import Progress

from htas.adapters.cassandra import profile, schema
from htas.adapters.cassandra.rows import date_of, day_of, millis, shard_of
from htas.adapters.cassandra.session import Session
from htas.adapters.cassandra.settings import CassandraSettings
from htas.adapters.cassandra.store import CassandraStore
from htas.adapters.cassandra.tables import placed
from htas.model.record import ProfileEvent, ProfileRow
from tools.testenv.cassandra import DATACENTER, Cassandra

BEGUN = 1_790_035_200.0
"""A midnight: the events are of one day."""
DAY_S = 86_400.0
BARE_ROWS = 20_000
READS = 20


def events(count: int, instances: int) -> list[ProfileRow]:
    """As many of each of the paper's events as come: an instance is provisioned, then work comes and goes."""
    work = (ProfileEvent.DEPLOYMENT, ProfileEvent.DEPLOYMENT, ProfileEvent.TERMINATION, ProfileEvent.RESCHEDULING)
    rows = []
    for i, kind in enumerate(islice(cycle(work), count)):
        event = ProfileEvent.PROVISIONING if i < instances else kind
        name, at = f"htas-batch-{i % instances:05}", round(BEGUN + i * DAY_S / count, 3)
        left, ram, cpu_m = 8 - (i // instances) % 8, 2**35, 8000
        rows.append(
            ProfileRow(at, event, name, "m1.xlarge", int(at - BEGUN), ram, cpu_m, left * ram // 8, left * cpu_m // 8)
        )
    return rows


def by_the_driver(server: Cassandra, keyspace: str, rows: Sequence[ProfileRow]) -> None:
    """The same rows by the driver alone, into the same table, as another cluster's."""
    statement = server.admin.prepare(placed(profile.ADD, keyspace))
    values = [
        (
            "bare",
            date_of(day_of(row.event_time)),
            shard_of(row.instance_name, profile.SHARDS),
            row.instance_name,
            millis(row.event_time),
            row.event.value,
            row.instance_type,
            row.runtime,
            *(Decimal(each) for each in (row.ramcapacity, row.cpucapacity, row.ramavailable, row.cpuavailable)),
            int(DAY_S),
        )
        for row in rows
    ]
    execute_concurrent_with_args(server.admin, statement, values, concurrency=100)


def timed(call: Callable[[], object]) -> float:
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def written(store: CassandraStore, rows: Sequence[ProfileRow], flush: int) -> float:
    """Seconds until all are acknowledged."""
    begun = time.monotonic()
    with Progress(transient=True) as progress:
        for i in progress.track(range(0, len(rows), flush), description="writing"):
            store.add_profile(rows[i : i + flush])
    return time.monotonic() - begun


def told(name: str, times: Sequence[float]) -> str:
    median, worst = statistics.median(times) * 1000, max(times) * 1000
    return f"{name}: median {median:.0f} ms, worst {worst:.0f} ms of {len(times)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--instances", type=int, default=5000)
    parser.add_argument("--flush", type=int, default=1000)
    parser.add_argument("--dir", type=Path)
    options = parser.parse_args()
    server = Cassandra(options.dir or Path(tempfile.mkdtemp(prefix="htas-cassandra-")))
    try:
        measure(server, options.events, options.instances, options.flush)
    finally:
        if options.dir is None:
            server.purge()


def measure(server: Cassandra, count: int, instances: int, flush: int) -> None:
    settings = CassandraSettings(server.contact_points, DATACENTER, "bench", keyspace="htas_bench")
    session = Session(settings)
    schema.init(session, {DATACENTER: 1})
    session.close()
    server.wipe(settings.keyspace)
    release = server.admin.execute("SELECT release_version FROM system.local").one()[0]
    print(
        f"{os.cpu_count()} cores, Cassandra {release} (one node, commit log synced before each answer),"
        f" driver {cassandra.__version__}, Python {platform.python_version()}"
    )
    rows, store = events(count, instances), CassandraStore(settings)
    few = rows[:BARE_ROWS]
    bare = len(few) / timed(lambda: by_the_driver(server, settings.keyspace, few))
    ours, theirs = time.process_time(), server.cpu_s()
    rate = len(rows) / written(store, rows, flush)
    ours, theirs = ((each / len(rows)) * 1e6 for each in (time.process_time() - ours, server.cpu_s() - theirs))
    print(f"{len(rows):,} rows written in flushes of {flush}: {rate:,.0f} rows/s")
    print(f"processor time for a row: {ours:.0f} µs here, {theirs:.0f} µs in the server;", end=" ")
    print(
        f"{os.cpu_count()} cores with nothing else to do: {(os.cpu_count() or 1) * 1e6 / (ours + theirs):,.0f} rows/s"
    )
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    print(f"the driver alone, row by row, 100 at a time: {bare:,.0f} rows/s")
    print(told(f"latest state of {instances:,} instances", [timed(store.latest) for _ in range(READS)]))
    name = rows[0].instance_name
    print(told("one instance's day", [timed(lambda: store.profile(name, BEGUN)) for _ in range(READS)]))
    assert len(store.latest()) == instances
    assert len(store.profile(name, BEGUN)) == len([row for row in rows if row.instance_name == name])
    store.close()


if __name__ == "__main__":
    main()
