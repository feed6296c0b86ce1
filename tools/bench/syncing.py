"""Starting on a large cluster: 50,000 pods listed and watched. Time to synced, and the daemon's memory.

500 nodes and 50,000 pods that run on them, as Deployments of 50 would have made them; `htas run` as a process of its
own, with all it does. Goals: synced in 15 s, 700 MB. Needs the binaries of tools/testenv/kube-build.sh.

    python -m tools.bench.syncing                  # 50,000 pods
    python -m tools.bench.syncing --pods 5000
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import Progress

from htas.adapters.kubernetes.api import ApiServer
from tools.testenv.cluster import NODES, Cluster, Json, eventually
from tools.testenv.daemon import Htas, configuration

NODE_COUNT = 500
REPLICAS = 50
CREATORS = 8
SETTLE_S = 30.0
SPACE = "/api/v1/namespaces/default/pods"
PATIENT = {"leaseDuration": "60s", "renewDeadline": "40s", "retryPeriod": "5s"}


def node(i: int) -> Json:
    name = f"node-{i:04d}"
    room = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def pod(i: int) -> Json:
    """A pod as clusters have them: an owner, labels, two containers with probes, environment and mounts."""
    app = f"app-{i // REPLICAS:04d}"
    owner = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-5d9c", "uid": app, "controller": True,
    }  # fmt: skip
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    environment = [{"name": f"SETTING_{n}", "value": "some value of common length"} for n in range(8)]
    container = {
        "name": "main",
        "image": f"example.com/team/{app}:1.2.3",
        "env": environment,
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
    }
    sidecar = {
        "name": "proxy",
        "image": "example.com/proxy:2",
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-5d9c-{i:05d}",
            "labels": {"app": app, "pod-template-hash": "5d9c", "team": f"team-{i % 20}"},
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": "0123456789abcdef" * 4},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": f"node-{i % NODE_COUNT:04d}",
            "containers": [container, sidecar],
            "volumes": [{"name": "config", "configMap": {"name": app}}],
            "automountServiceAccountToken": False,
        },
    }


def fill(api: ApiServer, pods: int, bar: Progress) -> None:
    task = bar.add_task("creating", total=NODE_COUNT + pods)
    with ThreadPoolExecutor(CREATORS) as pool:
        for _ in pool.map(lambda i: api.post(NODES, node(i)), range(NODE_COUNT)):
            bar.advance(task)
        for _ in pool.map(lambda i: api.post(SPACE, pod(i)), range(pods)):
            bar.advance(task)


def memory_mb(pid: int) -> dict[str, float]:
    """Resident now, and at its peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return {"resident": int(fields["VmRSS"].split()[0]) / 1024, "peak": int(fields["VmHWM"].split()[0]) / 1024}


def measure(cluster: Cluster, directory: Path, pods: int) -> dict[str, float]:
    kubernetes = {"kubeconfig": str(cluster.kubeconfig)}
    config = configuration(
        directory, cluster.kubeconfig, kubernetes=kubernetes, leaderElection=PATIENT, cycles={}, limits={"maxNodes": 0}
    )
    began = time.monotonic()
    with Htas(config, directory / "htas.log") as daemon:
        synced = daemon.says("synced", 300.0)
        took_s = time.monotonic() - began
        if synced["pods"] != pods:
            raise SystemExit(f"{synced['pods']} of {pods} pods were seen")
        at_sync = memory_mb(daemon.process.pid)["resident"]
        eventually(lambda: daemon.metric("htas_cycles_total", result="success") > 0, 120, "the first cycle")
        first_s = time.monotonic() - began
        time.sleep(SETTLE_S)
        settled = memory_mb(daemon.process.pid)
        cycles = daemon.metric("htas_cycle_duration_seconds_count", part="all")
        cycle_s = daemon.metric("htas_cycle_duration_seconds_sum", part="all") / cycles
        daemon.stop()
    return {
        "synced_s": took_s,
        "first_cycle_s": first_s,
        "synced_mb": at_sync,
        "settled_mb": settled["resident"],
        "peak_mb": settled["peak"],
        "cycle_s": cycle_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    binaries = Path(os.environ.get("HTAS_KUBE_BIN", "~/.cache/htas/kube-bin")).expanduser()
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="htas-bench-") as folder, Progress(console=console) as bar:
        cluster = Cluster(Path(folder) / "kube", binaries, HTAS_KUBE_SCHEDULER="no", HTAS_KUBE_KWOK="no")
        cluster.stop("kube-controller-manager")  # it would collect pods whose owner is not there
        try:
            fill(cluster.api, options.pods, bar)
            figures = measure(cluster, Path(folder), options.pods)
        finally:
            cluster.purge()
    if options.json:
        sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
        return
    report(figures, options.pods, Console())


def report(figures: dict[str, float], pods: int, console: Console) -> None:
    synced, first = figures["synced_s"], figures["first_cycle_s"]
    at_sync, later, peak = figures["synced_mb"], figures["settled_mb"], figures["peak_mb"]
    console.print(f"{pods} pods on {NODE_COUNT} nodes, {os.cpu_count()} cores")
    console.print(f"synced in {synced:.1f} s from the start of the process (goal 15); first cycle at {first:.1f} s")
    console.print(f"memory: {at_sync:.0f} MB when synced, {later:.0f} MB later, peak {peak:.0f} MB (goal 700)")
    console.print(f"a cycle takes {figures['cycle_s']:.2f} s on average")


if __name__ == "__main__":
    main()
