"""Plan time and peak memory for many waiting pods on many nodes, each case in a process of its own.

Cases: 1k, 10k and 100k waiting pods on 500 and 5,000 nodes with 20 flavours, (a) of 200 templates, (b) every pod
unique; and one purchase for 51,000 pods that needs exactly 2,595 machines. Nodes are half full to begin with; about
half of the 100,000 pods must be bought for. Goals on two cores: 100k × 5,000 in 2 s (a) and 15 s (b), under 1.5 GB.

    python -m tools.bench.plan            # all cases
    python -m tools.bench.plan 100000 5000 unique
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from random import Random
from time import perf_counter

from htas.model.flavours import Catalogue, Flavour
from htas.model.nodes import CLUSTER_LABEL, GROUP_LABEL, HOSTNAME_LABEL, Node
from htas.model.packing import Packing, PackingAlgorithm
from htas.model.pods import Phase, Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import NodeGroup, Policy, Workload
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.planner import plan

NOW = 1_000_000.0
GIB = 2**30
SEED = 7
CASES = [(pods, nodes, form) for nodes in (500, 5000) for pods in (1000, 10_000, 100_000) for form in ("200", "unique")]


def flavours() -> tuple[Flavour, ...]:
    """Twenty: four families of cpu to memory, five sizes each, priced a little below linear."""
    return tuple(
        Flavour(
            f"{family}{cpu}",
            Resources(cpu * 1000, int(cpu * ratio * GIB), 0, 110),
            int((cpu * 0.02 + cpu * ratio * 0.003) * 0.99 ** (cpu // 4) * 10**9),
        )
        for family, ratio in (("c", 2), ("g", 4), ("r", 8), ("x", 1))
        for cpu in (2, 4, 8, 16, 32)
    )


def policy() -> Policy:
    return Policy(
        "bench",
        Catalogue(flavours()),
        (
            NodeGroup("services", Workload.SERVICE),
            NodeGroup("batch", Workload.BATCH, packing=Packing(PackingAlgorithm.TIME_BIN_BFD)),
        ),
    )


def snapshot(pod_count: int, node_count: int, form: str) -> ClusterSnapshot:
    """Half of the work is batch; nodes of 8 cores and 32 GiB run five pods of 800m and 3 GiB each."""
    random = Random(SEED)
    nodes = tuple(
        Node(
            f"node-{i:05d}",
            Resources(8000, 32 * GIB, 0, 110),
            labels={
                HOSTNAME_LABEL: f"node-{i:05d}",
                CLUSTER_LABEL: "bench",
                GROUP_LABEL: "batch" if i % 2 else "services",
            },
        )
        for i in range(node_count)
    )
    running_request = Resources(800, 3 * GIB, 0, 1)
    running = [
        Pod(
            "default",
            f"run-{node.name}-{j}",
            running_request,
            kind=WorkKind.BATCH if node.group == "batch" else WorkKind.SERVICE,
            scheduler="htas",
            phase=Phase.RUNNING,
            node=node.name,
            started_at=NOW - 100,
            run_length=RunLength(random.randint(2, 60) * 60.0, RunLengthSource.ANNOTATION),
        )
        for node in nodes
        for j in range(5)
    ]
    templates = [_template(random) for _ in range(200)] if form == "200" else None
    waiting = [_pod(i, templates[i % 200] if templates is not None else _template(random)) for i in range(pod_count)]
    return ClusterSnapshot(NOW, ClusterView(nodes, (*running, *waiting)))


Template = tuple[Resources, WorkKind, RunLength | None]


def _template(random: Random) -> Template:
    requests = Resources(random.randint(50, 1500), random.randint(64, 4096) * 2**20 + random.randint(0, 4095), 0, 1)
    if random.random() < 0.5:
        return requests, WorkKind.SERVICE, None
    return requests, WorkKind.BATCH, RunLength(random.randint(60, 3600) * 1.0, RunLengthSource.ANNOTATION)


def _pod(number: int, template: Template) -> Pod:
    requests, kind, run_length = template
    return Pod(
        "default",
        f"pod-{number:06d}",
        requests,
        kind=kind,
        labels={"pod": str(number)},
        scheduler="htas",
        created_at=NOW - 5,
        run_length=run_length,
    )


def purchase_snapshot() -> tuple[ClusterSnapshot, Policy]:
    small, large = Resources(50, 0, 0, 1), Resources(95, 0, 0, 1)
    pods = [Pod("default", f"p{i:05d}", small if i < 50_000 else large, scheduler="htas") for i in range(51_000)]
    one = Flavour("one", Resources(1000, 4 * GIB, 0, 100), 10_000_000)
    return ClusterSnapshot(NOW, ClusterView((), tuple(pods))), Policy("bench", Catalogue((one,)), (NodeGroup("any"),))


def run_case(pods: int, nodes: int, form: str) -> None:
    made = (snapshot(pods, nodes, form), policy()) if form != "purchase" else purchase_snapshot()
    before_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = perf_counter()
    result = plan(made[0], made[1], NOW)
    took = perf_counter() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(
        f"{pods:>7} {nodes:>6} {form:>9} {took:>8.3f} {peak_mb:>8.0f} {before_mb:>9.0f} {len(result.bind):>7} "
        f"{len(result.launch):>7} {len(result.unplaced):>8}\n"
    )
    sys.stdout.flush()


def main() -> None:
    if len(sys.argv) == 4:
        run_case(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
        return
    sys.stdout.write(f"cores {os.cpu_count()}, python {sys.version.split()[0]}, seed {SEED}, 20 flavours\n")
    sys.stdout.write("   pods  nodes templates  plan_s  peak_MB  input_MB    bind  launch unplaced\n")
    sys.stdout.flush()
    for pods, nodes, form in [*CASES, (51_000, 0, "purchase")]:
        subprocess.run([sys.executable, "-m", "tools.bench.plan", str(pods), str(nodes), form], check=True)


if __name__ == "__main__":
    main()
