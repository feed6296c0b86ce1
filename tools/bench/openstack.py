"""Thirty machines at once on a real Nova: HTAS beside the bare SDK with as many threads.

    python -m tools.bench.openstack [--servers 30] [--rounds 3] [--dir DIR]

Both ask for the same servers, in turns; the clock stops when Nova lists all of them ACTIVE. HTAS journals each claim
first, looks at the cloud beside, and reports each answer. What counts is the ratio within one run: the fake
hypervisor is as fast as the machine. DIR is openstack-up.sh's (default: one of its own, removed at the end).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.progress import Progress

from htas.adapters.openstack.api import OpenStackApi
from htas.adapters.openstack.provider import OpenStackProvider
from htas.adapters.openstack.settings import Access, Recipe
from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.wiring.kubernetes import WallClock
from htas.execution.backoff import Backoffs
from htas.execution.calls import ParallelCalls
from htas.execution.cloud_calls import CloudCalls
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.model.billing import Billing
from htas.model.flavours import Catalogue, Flavour
from htas.model.outcomes import Outcome, OutcomeStatus
from htas.model.policy import NodeGroup, Policy
from htas.model.proposals import Launch
from htas.model.resources import Resources
from htas.sandbox.world import World
from tools.testenv.cluster import eventually
from tools.testenv.openstack import TINY, OpenStack

FLAVOUR = Flavour("m3.xsmall", Resources(1000, 2 * 2**30, 0, 110), 34_300_000)
LOOK_S = 0.5
Ask = Callable[[OpenStack, int, ExitStack], None]
"""Asks for so many servers; what it leaves running ends with the stack."""


def by_sdk(cloud: OpenStack, count: int, stack: ExitStack) -> None:
    """What anybody would write."""
    compute = cloud.user.compute
    flavour, image = compute.find_flavor(FLAVOUR.name).id, cloud.user.image.find_image(TINY).id

    def create(i: int) -> Any:
        return compute.create_server(name=f"sdk-{i}", flavor_id=flavour, image_id=image, networks="none")

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(create, range(count)))


def by_htas(cloud: OpenStack, count: int, stack: ExitStack) -> None:
    """The daemon's own path from a plan's launches to the cloud's answers; it goes on looking at the cloud."""
    policy = Policy(cluster="bench", catalogue=Catalogue((FLAVOUR,), "USD", Billing()), groups=(NodeGroup("any"),))
    api = OpenStackApi(Access("htas", clouds_file=cloud.clouds_file, connections=count))
    provider = OpenStackProvider(api, policy.cluster, Recipe(TINY), None)
    world, calls = World(), ParallelCalls(count)
    store = SqliteStore(str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "journal.db"))
    for end in (store.close, provider.close, calls.close):
        stack.callback(end)
    ports = Ports(WallClock(), world.cluster, provider, world.migration, store, world.announcer)
    machines = Machines(ports, CloudCalls(calls, ports.clock), policy, Backoffs(policy.timeouts))
    provider.start()
    names = [f"bench-any-{time.time_ns()}-{i}" for i in range(count)]
    machines.launch([Launch(name, "any", FLAVOUR.name, None, FLAVOUR.nanos_per_hour, ()) for name in names])
    answers: list[Outcome] = []
    eventually(lambda: answers.extend(machines.cloud.answers()) or len(answers) == count, 300, "all are answered")
    failed = [answer for answer in answers if answer.status is not OutcomeStatus.DONE]
    assert not failed, failed


def timed(cloud: OpenStack, count: int, ask: Ask) -> tuple[float, float]:
    """Seconds until all are asked for, and until Nova lists all of them ACTIVE."""
    cloud.wipe()
    with ExitStack() as stack:
        begun = time.monotonic()
        ask(cloud, count, stack)
        asked_s = time.monotonic() - begun
        while [server.status for server in cloud.servers()] != ["ACTIVE"] * count:
            time.sleep(LOOK_S)
        active_s = time.monotonic() - begun
    cloud.wipe()
    return asked_s, active_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path)
    options = parser.parse_args()
    folder = options.dir or Path(tempfile.mkdtemp(prefix="htas-openstack-"))
    cloud = OpenStack(folder)
    ways: dict[str, Ask] = {"bare SDK": by_sdk, "HTAS": by_htas}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    try:
        timed(cloud, 4, by_sdk)  # Nova's first servers after a start take longer
        with Progress(transient=True) as progress:
            for i in progress.track(range(options.rounds), description="rounds"):
                order = list(ways) if i % 2 == 0 else list(reversed(ways))
                for name in order:
                    found[name].append(timed(cloud, options.servers, ways[name]))
    finally:
        if options.dir is None:
            cloud.purge()
    print(f"{options.servers} servers at once, {options.rounds} rounds in turns, {os.cpu_count()} cores, medians")
    for name, times in found.items():
        asked, active = (statistics.median(each[i] for each in times) for i in (0, 1))
        spread = ", ".join(f"{each[1]:.1f}" for each in times)
        print(f"{name:9} all asked for after {asked:5.1f} s, all ACTIVE after {active:5.1f} s   ({spread})")
    ratio = statistics.median(b[1] / a[1] for a, b in zip(found["bare SDK"], found["HTAS"], strict=True))
    print(f"HTAS ÷ bare SDK to all ACTIVE: {ratio:.2f} (median of the rounds' ratios)")


if __name__ == "__main__":
    main()
