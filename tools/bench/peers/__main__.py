"""A day of Jobs and Deployments under HTAS and under the real Karpenter, on a real control plane with KWOK.

    python -m tools.bench.peers                                # both, the whole day of 12 min, seed 1: half an hour
    python -m tools.bench.peers --minutes 4 --seeds 1-3        # a third of it, three seeds
    python -m tools.bench.peers --only karpenter

Same pods, prices (the paper's Table 7, by the second) and start of machines for both; a third party's watch keeps
the books, and the bill ends when the last Job has ended and every Deployment is whole. Needs the binaries of
tools/testenv/kube-build.sh and Go for Karpenter's (tools/bench/peers/karpenter/build.sh). Cluster Autoscaler is not
played: it is published as no Go module that could be built by its name.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import msgspec
import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from htas.config.loader import load_catalogue
from htas.config.places import config_file
from htas.model.billing import Billing
from htas.model.money import bill_amount
from htas.sandbox.workload import Workload
from tools.bench.money.__main__ import seeds
from tools.bench.money.bound import least_nano_seconds
from tools.bench.money.scenes import Scene
from tools.bench.peers.autoscalers import htas, karpenter
from tools.bench.peers.day import DEFAULT, HTAS, day, manifest
from tools.bench.peers.watching import Seen, Watch
from tools.testenv.cluster import BATCH, Cluster

PEERS = ("karpenter", "htas")
START_S = 20.0
PATIENCE_S = 600.0
"""After the last arrival."""


class Played(msgspec.Struct, frozen=True):
    """One day under one autoscaler. Bills are billionths of the currency an hour × seconds."""

    peer: str
    seed: int
    minutes: float
    bill: int
    bound: int
    mean_wait_s: float
    p99_wait_s: float
    machines: int
    evicted: int
    took_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=12.0, help="how long work arrives")
    parser.add_argument("--seeds", default="1", help="such as 1-3, or 1,5")
    parser.add_argument("--only", choices=PEERS, default=None)
    parser.add_argument("--start", type=float, default=START_S, help="seconds from an order to a registered node")
    parser.add_argument("--keep", type=Path, default=None, help="a folder that logs are left in")
    chosen = parser.parse_args(arguments)
    console = Console()
    found = []
    for seed in seeds(chosen.seeds):
        for peer in (chosen.only,) if chosen.only else PEERS:
            with tempfile.TemporaryDirectory(prefix="htas-peers-") as folder:
                directory = (chosen.keep or Path(folder)) / f"{peer}-{seed}"
                directory.mkdir(parents=True, exist_ok=True)
                found.append(_play(peer, seed, chosen.minutes, chosen.start, directory))
            sys.stdout.write(msgspec.json.encode(found[-1]).decode() + "\n")
    console.print(_table(found))
    return 0


def _play(peer: str, seed: int, minutes: float, start_s: float, directory: Path) -> Played:
    prices = yaml.safe_load(config_file("flavours/nectar.yaml").read_text())
    prices["billing"] = {"granularity": "1s", "minimum": "1s"}
    catalogue = msgspec.structs.replace(load_catalogue(config_file("flavours/nectar.yaml")), billing=Billing(1, 1))
    work, seen = day(seed, minutes), Seen(catalogue, start_s)
    binaries = Path(os.environ.get("HTAS_KUBE_BIN", "~/.cache/htas/kube-bin")).expanduser()
    cluster = Cluster(directory / "kube", binaries)
    try:
        running = (
            htas(cluster, directory, prices, start_s)
            if peer == HTAS
            else karpenter(cluster, directory, catalogue, start_s)
        )
        with running:
            watch = Watch(cluster, seen)
            took_s = _arrive(cluster, work, HTAS if peer == HTAS else DEFAULT, peer)
            bill = seen.bill(time.monotonic())
            watch.stop()
    finally:
        cluster.purge()
    return _result(peer, seed, minutes, seen, bill, took_s, Scene(work, catalogue, start_s))


def _result(peer: str, seed: int, minutes: float, seen: Seen, bill: int, took_s: float, scene: Scene) -> Played:
    waits = seen.waits()
    p99 = waits[max(0, -(-99 * len(waits) // 100) - 1)]
    bound = least_nano_seconds(scene)
    return Played(peer, seed, minutes, bill, bound, fmean(waits), p99, len(seen.machines), seen.evicted, took_s)


def _arrive(cluster: Cluster, work: Workload, scheduler: str, peer: str) -> float:
    """Seconds until all Jobs have ended and all Deployments are whole."""
    began = time.monotonic()
    columns = (TextColumn("{task.description:<12}"), BarColumn(), TextColumn("{task.completed} of {task.total}"))
    with Progress(*columns, TimeElapsedColumn()) as progress:
        shown = progress.add_task(peer, total=len(work.arrivals))
        for arrival in work.arrivals:
            time.sleep(max(0.0, began + arrival.at_s - time.monotonic()))
            cluster.create(manifest(arrival, scheduler))
            progress.advance(shown)
        deadline = time.monotonic() + PATIENCE_S
        while not _is_over(cluster):
            if time.monotonic() > deadline:
                raise SystemExit(f"{peer}: not all work has ended {PATIENCE_S:g} s after the last arrival")
            time.sleep(0.5)
    return time.monotonic() - began


def _is_over(cluster: Cluster) -> bool:
    jobs = cluster.items(f"{BATCH}/namespaces/default/jobs")
    if any(not each["status"].get("succeeded") for each in jobs):
        return False
    deployments = cluster.items("/apis/apps/v1/namespaces/default/deployments")
    return all(each["status"].get("readyReplicas") == each["spec"]["replicas"] for each in deployments)


def _table(found: Sequence[Played]) -> Table:
    drawn = Table(title="The same day under each; bills until the last Job has ended")
    for column in ("peer", "seed", "bill", "fluid bound", "waits: mean / 99th, s", "machines", "evicted"):
        drawn.add_column(column, justify="left" if column == "peer" else "right")
    for each in found:
        drawn.add_row(
            each.peer,
            str(each.seed),
            f"{bill_amount(each.bill):.3f}",
            f"{bill_amount(each.bound):.3f}",
            f"{each.mean_wait_s:.1f} / {each.p99_wait_s:.1f}",
            str(each.machines),
            str(each.evicted),
        )
    return drawn


if __name__ == "__main__":
    sys.exit(main())
