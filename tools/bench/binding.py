"""Binding against kube-scheduler: the same pods on the same API server, each scheduler started fresh, in turn.

5,000 pods of the HTAS paper's shapes (Table 4) on 500 KWOK nodes, from the first creation to the last bind, as a third
party sees it; then single pods on the idle cluster, from the request to the bind. Both schedulers may call the API
server as often as they like. Needs the binaries of tools/testenv/kube-build.sh.

    python -m tools.bench.binding                  # 5,000 pods, 500 nodes, two rounds in opposite orders
    python -m tools.bench.binding --pods 500 --nodes 50 --rounds 1
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Condition, Event, Thread

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from htas.ports import HTASError
from htas.sandbox.workloads.day import SHAPES
from tools.testenv.cluster import NODES, PODS, Cluster, Json, eventually
from tools.testenv.daemon import Htas, configuration

SEED = 11
CREATORS = 8
SINGLES = 30
SPACE = "/api/v1/namespaces/default/pods"
UNLIMITED = {"requestsPerSecond": 5000.0, "burst": 10000}
"""What tools/testenv/kube-up.sh gives kube-scheduler, too."""


class _Meta(msgspec.Struct):
    name: str
    resourceVersion: str = ""  # noqa: N815 # the API's own name


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 # the API's own name


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


_EVENTS = msgspec.json.Decoder(_Event)


class Binds:
    """When each pod was first seen bound, by a watch of the bench's own."""

    def __init__(self, cluster: Cluster) -> None:
        self.at: dict[str, float] = {}
        self.changed = Condition()
        self._api = cluster.api
        self._stopping = Event()
        listed = msgspec.json.decode(self._api.get(PODS, {"limit": 1}))
        self._version = listed["metadata"]["resourceVersion"]
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                for line in self._api.lines(PODS, {"watch": 1, "resourceVersion": self._version}, 600.0):
                    event = _EVENTS.decode(line)
                    self._version = event.object.metadata.resourceVersion
                    if event.object.spec.nodeName and event.object.metadata.name not in self.at:
                        with self.changed:
                            self.at[event.object.metadata.name] = time.monotonic()
                            self.changed.notify_all()
            except HTASError:
                self._stopping.wait(0.1)

    def wait_for(self, names: list[str], within_s: float) -> float:
        """When the last of them was bound."""
        with self.changed:
            if not self.changed.wait_for(lambda: all(name in self.at for name in names), within_s):
                missing = sum(name not in self.at for name in names)
                raise SystemExit(f"{missing} of {len(names)} pods were not bound within {within_s:g} s")
        return max(self.at[name] for name in names)

    def stop(self) -> None:
        self._stopping.set()


@dataclass
class Result:
    """Of one scheduler: seconds for all pods, and for each single pod, over the rounds."""

    all_s: list[float] = field(default_factory=list)
    single_s: list[float] = field(default_factory=list)


def manifest(name: str, scheduler: str, cpu_m: int, gib: float) -> Json:
    requests = {"cpu": f"{cpu_m}m", "memory": f"{round(gib * 1024)}Mi"}
    container = {"name": "main", "image": "example.com/none", "resources": {"requests": requests}}
    spec = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"bench": "binding"}}, "spec": spec}


def nodes(cluster: Cluster, count: int) -> None:
    """Nodes of 8 cores and 32 GiB, Ready."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}

    def create(i: int) -> None:
        name = f"node-{i:04d}"
        meta = {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        }
        status = {"capacity": room, "allocatable": room}
        cluster.api.post(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status})

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(create, range(count)))
    eventually(lambda: _ready(cluster) == count, 120, "all nodes are Ready")


def _ready(cluster: Cluster) -> int:
    def is_ready(item: Json) -> bool:
        conditions = {each["type"]: each["status"] for each in item["status"].get("conditions", [])}
        return conditions.get("Ready") == "True" and not item["spec"].get("taints")

    return sum(is_ready(item) for item in cluster.nodes())


@contextmanager
def scheduler(name: str, cluster: Cluster, directory: Path) -> Iterator[str]:
    """Run one afresh; gives the schedulerName that its pods bear."""
    if name == "htas":
        config = configuration(
            directory,
            cluster.kubeconfig,
            kubernetes={"kubeconfig": str(cluster.kubeconfig), **UNLIMITED},
            cycles={},
            limits={"maxNodes": 0},
        )
        with Htas(config, directory / "htas.log") as daemon:
            yield "htas"
            daemon.stop()
    else:
        cluster.env["HTAS_KUBE_SCHEDULER"] = "yes"
        cluster.start()
        yield "default-scheduler"
        cluster.stop("kube-scheduler")
        cluster.env["HTAS_KUBE_SCHEDULER"] = "no"


def measure(name: str, cluster: Cluster, directory: Path, pods: int, result: Result) -> None:
    binds = Binds(cluster)
    with scheduler(name, cluster, directory) as bears:
        cluster.api.post(SPACE, manifest(f"{name}-warm", bears, 100, 0.3))
        binds.wait_for([f"{name}-warm"], 60)
        result.all_s.append(_all(name, bears, cluster, binds, pods))
        _sweep(cluster)
        for i in range(SINGLES):
            single = f"{name}-single-{i}"
            began = time.monotonic()
            cluster.api.post(SPACE, manifest(single, bears, 100, 0.3))
            result.single_s.append(binds.wait_for([single], 60) - began)
            time.sleep(0.3)  # the cluster is idle again
    binds.stop()
    _sweep(cluster)


def _all(name: str, bears: str, cluster: Cluster, binds: Binds, count: int) -> float:
    random = Random(SEED)
    shapes = [random.choice(SHAPES) for _ in range(count)]
    names = [f"{name}-{i:05d}" for i in range(count)]
    began = time.monotonic()
    with ThreadPoolExecutor(CREATORS) as pool:
        list(
            pool.map(
                lambda i: cluster.api.post(SPACE, manifest(names[i], bears, shapes[i][1], shapes[i][2])), range(count)
            )
        )
    return binds.wait_for(names, 300) - began


def _sweep(cluster: Cluster) -> None:
    def is_swept() -> bool:
        cluster.delete(SPACE)
        return not cluster.items(PODS, limit="1")

    eventually(is_swept, 180, "all pods are gone")
    time.sleep(3.0)  # for the controllers and KWOK to come to rest


def report(results: dict[str, Result], pods: int, node_count: int, console: Console) -> None:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("scheduler", f"{pods} pods on {node_count} nodes", "pods/s", "single pod: median", "95th of 100"):
        table.add_column(column, justify="left" if column == "scheduler" else "right")
    for name, result in results.items():
        all_s = statistics.median(result.all_s)
        single = sorted(result.single_s)
        runs = ", ".join(f"{each:.1f}" for each in result.all_s)
        worst = single[int(len(single) * 0.95)]
        table.add_row(
            name,
            f"{all_s:.1f} s ({runs})",
            f"{pods / all_s:.0f}",
            f"{statistics.median(single) * 1000:.0f} ms",
            f"{worst * 1000:.0f} ms",
        )
    console.print(table)
    ratio = statistics.median(results["kube-scheduler"].all_s) / statistics.median(results["htas"].all_s)
    told = f"ratio {ratio:.2f} (kube-scheduler's time over HTAS's; goal 1.0)"
    console.print(f"{told}, {os.cpu_count()} cores, seed {SEED}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the seconds as JSON")
    options = parser.parse_args()
    binaries = Path(os.environ.get("HTAS_KUBE_BIN", "~/.cache/htas/kube-bin")).expanduser()
    results = {"htas": Result(), "kube-scheduler": Result()}
    with tempfile.TemporaryDirectory(prefix="htas-bench-") as folder, Progress(console=Console(stderr=True)) as bar:
        cluster = Cluster(Path(folder) / "kube", binaries, HTAS_KUBE_SCHEDULER="no")
        try:
            nodes(cluster, options.nodes)
            task = bar.add_task("binding", total=2 * options.rounds)
            for i in range(options.rounds):
                for name in sorted(results, reverse=i % 2 == 0):
                    bar.update(task, description=f"round {i + 1}: {name}")
                    directory = Path(folder) / f"{i}-{name}"
                    directory.mkdir()
                    measure(name, cluster, directory, options.pods, results[name])
                    bar.advance(task)
        finally:
            cluster.purge()
    if options.json:
        sys.stdout.write(msgspec.json.encode(results).decode() + "\n")
    else:
        report(results, options.pods, options.nodes, Console())


if __name__ == "__main__":
    main()
