"""The API and the pages at 5,000 nodes and 50,000 pods: `python -m tools.bench.seat`.

A cluster of services is planned once, cycles follow one another, and the documents are asked for over loopback: first
of a new picture (nobody has asked yet), then again. Beside that the time of a cycle's own work with ten pages open
(each follows the events and asks for what it shows whenever the cluster has changed) against none, and what that holds
in memory.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import urllib3

from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.daemon.http.app import Endpoints, HttpServer
from htas.daemon.http.authorization import Gate
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, Node
from htas.model.pods import Owner, Phase, Pod
from htas.model.policy import Cycles, Policy
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory
from htas.planning.planner import plan
from htas.web.pages import ASSETS
from htas.web.seat import Seat, Seen

NOW = 1_790_000_000.0
FILES = sorted(each.name for each in files("htas.web").joinpath("static").iterdir() if each.name != "index.html")
PAGES = ("/cluster", "/nodes?limit=60", "/pods?limit=100", "/top", "/decisions", "/cluster")
"""The first of all works out every node; of later ones only those that changed."""


def cluster(nodes: int, pods: int, policy: Policy) -> ClusterView:
    """Nodes of one flavour, each with as many pods of 200 services."""
    flavour, group = policy.catalogue.flavours[-1], policy.groups[0].name
    labels = {CLUSTER_LABEL: policy.cluster, GROUP_LABEL: group, INSTANCE_TYPE_LABEL: flavour.name}
    made = [
        Node(
            _claim(policy, group, i),
            flavour.allocatable,
            labels={**labels, HOSTNAME_LABEL: f"n{i}", CLAIM_LABEL: _claim(policy, group, i)},
            created_at=NOW - 86_400,
        )
        for i in range(nodes)
    ]
    asks = Resources(flavour.allocatable.cpu_m * nodes // pods * 7 // 10, 2**29, 0, 1)
    work = [
        Pod(
            f"team-{i % 20}",
            f"web-{i % 200}-{i:05}",
            asks,
            uid=str(i),
            owner=Owner("ReplicaSet", f"web-{i % 200}", str(i % 200)),
            template=f"Deployment/web-{i % 200}",
            node=made[i % nodes].name,
            phase=Phase.RUNNING,
            started_at=NOW - 3600,
            created_at=NOW - 3600,
        )
        for i in range(pods)
    ]
    return ClusterView(tuple(made), tuple(work))


def _claim(policy: Policy, group: str, number: int) -> str:
    """As claims are named: ten hexadecimal digits, which do not compress."""
    return f"{policy.cluster}-{group}-{blake2b(str(number).encode(), digest_size=5).hexdigest()}"


@dataclass(slots=True)
class Bench:
    """A seat behind a listener, and cycles that it is told of."""

    seat: Seat
    view: ClusterView
    policy: Policy
    url: str
    token: str
    memory: Memory = field(default_factory=Memory)
    changed: float = 0.0
    """The share of the pods that are others in each cycle: what is kept of nodes must be worked out anew for theirs."""
    cycles: int = 0

    def cycle(self) -> float:
        """Plan, and tell the seat; how long it took."""
        self._change()
        began = time.perf_counter()
        snapshot = ClusterSnapshot(NOW + time.monotonic(), self.view, memory=self.memory)
        made = plan(snapshot, self.policy, snapshot.taken_at)
        self.memory = made.memory
        self.seat.observe(Seen(snapshot, made))
        return time.perf_counter() - began

    def _change(self) -> None:
        """Other pods in place of some, one node after the other."""
        self.cycles += 1
        pods, count = list(self.view.pods), round(len(self.view.pods) * self.changed)
        for i in range(count):
            place = (self.cycles * count + i) % len(pods)
            pods[place] = msgspec.structs.replace(pods[place], uid=f"{place}-{self.cycles}")
        self.view = msgspec.structs.replace(self.view, pods=tuple(pods))

    def ask(self, path: str, pool: urllib3.PoolManager, etag: str = "") -> tuple[float, int, str]:
        """Seconds, bytes as they are sent, and the ETag."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept-Encoding": "gzip", "If-None-Match": etag}
        began = time.perf_counter()
        answer = pool.request("GET", f"{self.url}{path}", headers=headers, preload_content=False, retries=False)
        body = answer.read(decode_content=False)
        answer.release_conn()
        assert answer.status in (200, 304), body[:200]
        return time.perf_counter() - began, len(body), answer.headers.get("ETag", "")

    def page(self, stop: Callable[[], bool]) -> None:
        """An open page: it asks again whenever the version has changed."""
        pool, version, etag = urllib3.PoolManager(), -1, ""
        while not stop():
            if self.seat.version != version:
                version = self.seat.version
                _, _, etag = self.ask("/api/v1/cluster", pool, etag)
                self.ask("/api/v1/nodes?limit=60", pool)
            time.sleep(0.25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changed", type=float, default=0.02, help="share of the pods that are new in each cycle")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--cycles", type=int, default=10)
    chosen = parser.parse_args()
    policy = load_configuration(config_file("htas.yaml")).policy
    view = cluster(chosen.nodes, chosen.pods, policy)
    seat = Seat("live", lambda: policy, None, lambda: NOW)
    with TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text("bench-bench-bench")
        desks = Endpoints(Health(Cycles()), Metrics(), MigrateEndpoint(), OptimizeEndpoint(), seat)
        server = HttpServer(("127.0.0.1", 0), desks, Gate(token))
        server.start()
        url = f"http://127.0.0.1:{server.port}"
        bench = Bench(seat, view, policy, url, "bench-bench-bench", changed=chosen.changed)
        measure(bench, chosen.cycles)
        server.stop()


def measure(bench: Bench, cycles: int) -> None:
    pool = urllib3.PoolManager()
    loaded = ("/", *(f"{ASSETS}{name}" for name in FILES))
    bench.cycle()
    before = memory_mb()
    print(f"{len(bench.view.nodes):,} nodes, {len(bench.view.pods):,} pods")
    first_view = sum(bench.ask(path, pool)[1] for path in loaded)
    shown: dict[str, int] = {}
    for path in PAGES:
        time.sleep(1.1)
        bench.cycle()
        computed = time.process_time()
        first, size, _ = bench.ask(f"/api/v1{path}", pool)
        computed = time.process_time() - computed
        again = statistics.median(bench.ask(f"/api/v1{path}", pool)[0] for _ in range(20))
        shown[path] = size
        took = f"first {first * 1000:6.0f} ms ({computed * 1000:4.0f} of CPU), then {again * 1000:5.1f} ms"
        print(f"{path:18} {took}, {size / 1000:6.1f} kB")
    print(f"first view (document, styles, modules, /cluster): {(first_view + shown['/cluster']) / 1000:.0f} kB")
    unseen = memory_mb()
    alone = statistics.median(bench.cycle() for _ in range(cycles))
    is_over = threading.Event()
    pages = [threading.Thread(target=bench.page, args=(is_over.is_set,)) for _ in range(10)]
    for page in pages:
        page.start()
    beside = statistics.median(_after_a_pause(bench) for _ in range(cycles))
    is_over.set()
    for page in pages:
        page.join()
    print(f"a cycle's planning: {alone:.2f} s with no page open, {beside:.2f} s with ten")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"memory: {before:.0f} MB with the cluster and its plan, {unseen:.0f} MB once every page was asked for,")
    print(f"        {memory_mb():.0f} MB after ten pages; {peak:.0f} MB at most")


def memory_mb() -> float:
    """What this process holds now: the daemon's share, and ten clients that keep nothing."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def _after_a_pause(bench: Bench) -> float:
    time.sleep(1.0)
    return bench.cycle()


if __name__ == "__main__":
    main()
