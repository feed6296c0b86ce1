"""Whole clusters through the API server: kube-scheduler leaves pods pending, HTAS finds them room, moves and binds.

The document's flow end to end: nodes that KWOK plays, ReplicaSets created one after another, kube-scheduler as it is
places what it can. Then HTAS takes its place (the document's plugin is part of the scheduler; two schedulers would take
each other's pods), with nothing to buy: it searches, evicts, and binds what comes back. An outsider watches it all.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from rich.console import Console
from rich.table import Table

from htas.model.pods import MAY_MIGRATE
from tools.bench.priority_instances import Instance
from tools.bench.priority_placements import FOR_HTAS, Bench, Pods, PodSeen, control_plane, placed_as, prioritise
from tools.bench.priority_solving import by_tier
from tools.testenv.cluster import Cluster, Json, eventually
from tools.testenv.daemon import Htas, configuration

NAMESPACE = "work"
TOLD = {"leads", "search", "rearrange", "rearranged", "cancel-rearrangement"}
"""Events of HTAS's log that are shown."""
WITHIN_S = 180.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Flow:
    """What came of one cluster; `after`: pods placed by priority, from the highest."""

    instance: Instance
    """As kube-scheduler has placed it."""
    after: tuple[int, ...]
    status: str
    search_s: float
    moved: int
    evicted: int
    settled_s: float
    """From the daemon's start."""
    over_full: tuple[str, ...]
    """Nodes that at some moment had more promised than they have."""

    @property
    def before(self) -> tuple[int, ...]:
        return by_tier(self.instance, self.instance.node_of)

    @property
    def pods(self) -> int:
        return len(self.instance.node_of)


class Outsider:
    """Sees who comes and goes, and adds up what each node has promised at every change."""

    def __init__(self, instance: Instance, say: Say) -> None:
        self._instance, self._say = instance, say
        self._there: dict[str, tuple[str, int]] = {}
        self._leaving: set[str] = set()
        self.over_full: set[str] = set()
        self.is_telling = False

    def see(self, kind: str, pod: PodSeen) -> None:
        uid, node = pod.metadata.uid, pod.spec.nodeName
        if node and uid not in self._there and kind != "DELETED":
            self._there[uid] = node, self._instance.replica_set.index(int(pod.metadata.labels["set"]))
            self._tell(f"{pod.metadata.name} (priority {self._priority(uid)}) is bound to {node}")
            self._add_up(node)
        if pod.metadata.deletionTimestamp and uid in self._there and uid not in self._leaving:
            self._leaving.add(uid)
            self._tell(f"{pod.metadata.name} (priority {self._priority(uid)}) leaves {node}")
        if kind == "DELETED":
            self._there.pop(uid, None)

    def _priority(self, uid: str) -> int:
        return self._instance.priority[self._there[uid][1]]

    def _tell(self, text: str) -> None:
        if self.is_telling:
            self._say(text)

    def _add_up(self, node: str) -> None:
        first = [number for where, number in self._there.values() if where == node]
        cpu_m = sum(self._instance.cpu_m[number] for number in first)
        memory_bytes = sum(self._instance.memory_bytes[number] for number in first)
        if cpu_m > self._instance.node_cpu_m or memory_bytes > self._instance.node_memory_bytes:
            self.over_full.add(node)


def play(instance: Instance, engine: str, say: Say) -> Flow:
    """One cluster from its first node to the last bind; raises AssertionError where that does not come."""
    with TemporaryDirectory(prefix="htas-flow-") as folder, control_plane() as cluster:
        outsider = Outsider(instance, say)
        pods = Pods(cluster, outsider.see)
        prioritise(cluster)
        bench = Bench(NAMESPACE, cluster, pods).opened()
        bench.fill(instance, FOR_HTAS, {MAY_MIGRATE: "true"})
        instance = placed_as(instance, bench.read(instance))
        before = placed(instance, pods)
        say(f"kube-scheduler has placed {sum(before)} of {len(instance.node_of)} pods: {by_priority(instance, before)}")
        cluster.stop("kube-scheduler")
        outsider.is_telling = True
        try:
            return _rearranged(instance, engine, cluster, pods, outsider, Path(folder), say)
        finally:
            pods.stop()


def _rearranged(
    instance: Instance,
    engine: str,
    cluster: Cluster,
    pods: Pods,
    outsider: Outsider,
    folder: Path,
    say: Say,
) -> Flow:
    fallback = {"mode": "optimize", "after": "1s", "budget": "10s", "pause": "5s", "engine": str(engine), "workers": 1}
    config = configuration(folder, cluster.kubeconfig, limits={"maxNodes": 0}, fallback=fallback)
    began = time.monotonic()
    with Htas(config, folder / "log") as daemon:
        shown = [0]

        def tell() -> None:
            for line in daemon.lines[shown[0] :]:
                shown[0] += 1
                if line.get("event") in TOLD:
                    say(f"htas: {line['event']} {line.get('message', '')}".rstrip())

        def carried_out() -> Json | None:
            """What the search came to, once all of it is done."""
            tell()
            status, text = daemon.get("/api/optimize")
            report: Json = msgspec.json.decode(text) if status == 200 else {}
            wanted = tuple(tier["placedAfter"] for tier in report.get("tiers", []))
            is_over = report.get("state") == "done" and wanted == placed(instance, pods)
            return report if is_over else None

        daemon.says("leads")
        report = eventually(carried_out, WITHIN_S, "what was found is carried out") or {}
        settled_s = time.monotonic() - began
        after = placed(instance, pods)
        daemon.stop()
        tell()
        say(f"{sum(after)} of {len(instance.node_of)} pods have a node: {by_priority(instance, after)}")
    gone = Counter(bool(each["to"]) for each in report["leave"])
    return Flow(
        instance,
        after,
        report["status"],
        report["tookSeconds"],
        gone[True],
        gone[False],
        settled_s,
        tuple(sorted(outsider.over_full)),
    )


def placed(instance: Instance, pods: Pods) -> tuple[int, ...]:
    """Pods that have a node, by priority from the highest."""
    counts = Counter(
        instance.priority[instance.replica_set.index(int(pod.metadata.labels["set"]))]
        for pod in pods.of(NAMESPACE)
        if pod.spec.nodeName
    )
    return tuple(counts[priority] for priority in sorted(set(instance.priority), reverse=True))


def by_priority(instance: Instance, counts: tuple[int, ...]) -> str:
    wanted = Counter(instance.priority)
    priorities = sorted(wanted, reverse=True)
    told = (f"{count} of {wanted[each]} of priority {each}" for each, count in zip(priorities, counts, strict=True))
    return ", ".join(told)


def clusters(instances: list[Instance], engine: str, console: Console) -> list[Flow]:
    """Each cluster in turn, told as it goes, and a table of all."""
    flows = []
    for instance in instances:
        cell = instance.cell
        console.rule(f"{cell.nodes} nodes, {cell.pods_per_node} pods a node, {cell.priorities} priorities, "
                     f"{cell.usage:.0%} asked for, seed {instance.seed}", align="left")  # fmt: skip
        began = time.monotonic()

        def say(text: str, began: float = began) -> None:
            console.print(f"{time.monotonic() - began:7.1f} s  {text}", highlight=False, soft_wrap=True)

        flows.append(play(instance, engine, say))
    console.print(table(flows, engine))
    return flows


def table(flows: list[Flow], engine: str) -> Table:
    found = Table(box=None, header_style="dim", pad_edge=False, title=f"engine {engine}", title_justify="left")
    columns = "nodes", "pods", "kube-scheduler", "then HTAS", "", "search", "moved", "evicted", "settled", "over-full"
    for column in columns:
        found.add_column(column, justify="right")
    for flow in flows:
        found.add_row(
            str(flow.instance.cell.nodes),
            str(flow.pods),
            _counts(flow.before),
            _counts(flow.after),
            flow.status,
            f"{flow.search_s:.2f} s",
            str(flow.moved),
            str(flow.evicted),
            f"{flow.settled_s:.1f} s",
            str(len(flow.over_full)),
        )
    return found


def _counts(placed: tuple[int, ...]) -> str:
    """In all, and by priority from the highest."""
    return f"{sum(placed)} ({' '.join(map(str, placed))})"
