"""From no node to a thousand bound pods: machines are bought, made by KWOK, and filled.

Pods of the HTAS paper's shapes (Table 4) on an API server without a node, from the first creation to the last bind as a
third party sees it. Machines start at once, so that what is measured is HTAS and not its cloud. Busy loops beside take
the cores from all of it, as on a crowded machine. Needs the binaries of tools/testenv/kube-build.sh.

    python -m tools.bench.from_nothing                       # 1,000 pods, three rounds
    python -m tools.bench.from_nothing --busy 2 --rounds 1   # with two busy loops beside
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
from rich.console import Console
from rich.table import Table

from htas.sandbox.workloads.day import SHAPES
from tools.bench.binding import CREATORS, SPACE, UNLIMITED, Binds, manifest
from tools.testenv.cluster import Cluster
from tools.testenv.daemon import Htas, configuration

SEED = 11
LOOP = "while True: pass"


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds until every pod was created and bound; what that took of machines, calls and CPU seconds."""

    created_s: float
    bound_s: float
    machines: int
    calls: float
    htas_cpu_s: float
    api_server_cpu_s: float


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that never rest."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, its own and the kernel's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(directory: Path, binaries: Path, pods: int, loops: int) -> Round:
    cluster = Cluster(directory / "kube", binaries, HTAS_KUBE_SCHEDULER="no")
    try:
        api_server = int((directory / "kube" / "pid" / "kube-apiserver").read_text())
        config = configuration(
            directory,
            cluster.kubeconfig,
            kubernetes={"kubeconfig": str(cluster.kubeconfig), **UNLIMITED},
            provider={"kwok": {"startupDelay": "0s"}},
            cycles={},
            limits={"maxNodes": 1000},
        )
        binds = Binds(cluster)
        with Htas(config, directory / "htas.log") as daemon, busy(loops):
            daemon.says("leads")
            before = cpu_s(daemon.process.pid), cpu_s(api_server)
            created_s, bound_s = _all(cluster, binds, pods)
            spent = cpu_s(daemon.process.pid) - before[0], cpu_s(api_server) - before[1]
            found = Round(
                created_s,
                bound_s,
                len(cluster.nodes()),
                daemon.metric("htas_apiserver_requests_total"),
                *spent,
            )
            binds.stop()
            return found
    finally:
        cluster.purge()


def _all(cluster: Cluster, binds: Binds, count: int) -> tuple[float, float]:
    """Seconds until all were created, and until all were bound."""
    random = Random(SEED)
    shapes = [random.choice(SHAPES) for _ in range(count)]
    names = [f"pod-{i:05d}" for i in range(count)]
    began = time.monotonic()
    with ThreadPoolExecutor(CREATORS) as pool:
        list(
            pool.map(
                lambda i: cluster.api.post(SPACE, manifest(names[i], "htas", shapes[i][1], shapes[i][2])), range(count)
            )
        )
    created_s = time.monotonic() - began
    return created_s, binds.wait_for(names, 600) - began


def report(rounds: list[Round], pods: int, loops: int, console: Console) -> None:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("round", "all created", "all bound", "machines", "calls", "CPU: htas", "API server"):
        table.add_column(column, justify="right")
    for i, each in enumerate(rounds):
        table.add_row(
            str(i + 1),
            f"{each.created_s:.1f} s",
            f"{each.bound_s:.1f} s",
            str(each.machines),
            f"{each.calls:.0f}",
            f"{each.htas_cpu_s:.1f} s",
            f"{each.api_server_cpu_s:.1f} s",
        )
    console.print(table)
    median = statistics.median(each.bound_s for each in rounds)
    console.print(f"{pods} pods from nothing: {median:.1f} s; {loops} busy loops, {os.cpu_count()} cores, seed {SEED}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0, help="busy loops beside")
    parser.add_argument("--json", action="store_true", help="print the rounds as JSON")
    options = parser.parse_args()
    binaries = Path(os.environ.get("HTAS_KUBE_BIN", "~/.cache/htas/kube-bin")).expanduser()
    rounds = []
    with tempfile.TemporaryDirectory(prefix="htas-bench-") as folder:
        for i in range(options.rounds):
            directory = Path(folder) / str(i)
            directory.mkdir()
            rounds.append(measure(directory, binaries, options.pods, options.busy))
    if options.json:
        sys.stdout.write(msgspec.json.encode(rounds).decode() + "\n")
    else:
        report(rounds, options.pods, options.busy, Console())


if __name__ == "__main__":
    main()
