"""What the real kube-scheduler makes of the instances: recorded once, so that the grid runs without a control plane.

Two profiles of kube-scheduler, on etcd and kube-apiserver, with the ReplicaSets created one after another:

- as-is: kube-scheduler's own defaults, preemption of lower priorities included, equal scores by chance. It is what the
  document compares its optimiser with.
- in-order: nothing is preempted and equal scores go by the node's name: how the document picks its instances.

The nodes are objects alone, kept Ready by nobody questioning them; pods are bound and never run, which no score sees.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from threading import Condition, Event, Lock, Thread

import msgspec

from htas.ports import HTASError, NotFoundError
from tools.bench.priority_instances import Cell, Instance, node_name
from tools.testenv.cluster import APPS, CORE, NODES, PODS, Cluster, Json

RECORDED = Path(__file__).with_name("priority_placements.jsonl")
AS_IS, IN_ORDER = "as-is", "in-order"
FOR_HTAS = "for-htas"
"""As it is, for pods that HTAS schedules once kube-scheduler is gone: the whole flow, in priority_clusters.py."""
SCHEDULER_OF = {AS_IS: "default-scheduler", IN_ORDER: "in-order", FOR_HTAS: "htas"}
PATIENCE_S = 2.0
"""The document waits as long for a ReplicaSet's pods, then creates the next."""
QUIET_S = 3.0
"""… and at least as long at the end, for what preemption sets going."""
REST_S = 60.0
"""kube-scheduler tries a pod again after 1, 2, 4, 8 and 10 s; by then it has come to rest, or nothing is recorded."""
SCHEDULER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: scheduler.kubeconfig, qps: 5000, burst: 10000}
leaderElection: {leaderElect: false}
profiles:
- schedulerName: default-scheduler
- schedulerName: htas
- schedulerName: in-order
  plugins:
    postFilter: {disabled: [{name: DefaultPreemption}]}
    score:  # the default weights times 1,000, so that the order of names decides between equals alone
      enabled:
      - {name: NodeResourcesFit, weight: 1000}
      - {name: NodeResourcesBalancedAllocation, weight: 1000}
      - {name: PodTopologySpread, weight: 2000}
      - {name: NodeAffinity, weight: 1}
"""
WITHOUT_KUBELETS = {
    "HTAS_KUBE_KWOK": "no",
    "HTAS_KUBE_CONTROLLER_FLAGS": "--controllers=replicaset-controller,serviceaccount-controller",
    "HTAS_KUBE_APISERVER_FLAGS": "--disable-admission-plugins=TaintNodesByCondition",
}

Key = tuple[Cell, int, str]
Placement = tuple[int, ...]


def recorded(path: Path = RECORDED) -> dict[Key, Placement]:
    """By cell, seed and profile: each pod's node, or -1. Pods of a ReplicaSet are alike: those placed come first."""
    if not path.exists():
        return {}
    found: dict[Key, Placement] = {}
    for line in map(json.loads, path.read_text().splitlines()):
        found[Cell(*line["cell"]), line["seed"], line["profile"]] = tuple(line["node_of"])
    return found


def placed_as(instance: Instance, placement: Placement) -> Instance:
    """The instance with another placement; raises AssertionError if a node were over-full."""
    for requests, room in ((instance.cpu_m, instance.node_cpu_m), (instance.memory_bytes, instance.node_memory_bytes)):
        asked: Counter[int] = Counter()
        for amount, node in zip(requests, placement, strict=True):
            asked[node] += amount
        if any(amount > room for node, amount in asked.items() if node >= 0):
            raise AssertionError(f"a node of instance {instance.seed} is over-full")
    return replace(instance, node_of=placement)


def alike(instance: Instance, one: Placement, other: Placement) -> bool:
    """Whether they differ by the names of pods of a ReplicaSet at most."""
    return Counter(zip(instance.replica_set, one, strict=True)) == Counter(
        zip(instance.replica_set, other, strict=True)
    )


def is_at_rest(instance: Instance, placement: Placement) -> bool:
    """Whether kube-scheduler has nothing left to do: no pending pod fits, nor would by preempting lower priorities."""
    held: dict[int, dict[int, tuple[int, int]]] = {node: {} for node in range(instance.cell.nodes)}
    """By node and priority: what its pods of that priority or a higher one ask for."""
    priorities = sorted(set(instance.priority))
    for node, of_node in held.items():
        for least in priorities:
            there = [i for i, at in enumerate(placement) if at == node and instance.priority[i] >= least]
            of_node[least] = sum(instance.cpu_m[i] for i in there), sum(instance.memory_bytes[i] for i in there)
    return not any(
        held[node][instance.priority[i]][0] + instance.cpu_m[i] <= instance.node_cpu_m
        and held[node][instance.priority[i]][1] + instance.memory_bytes[i] <= instance.node_memory_bytes
        for i, at in enumerate(placement)
        if at < 0
        for node in held
    )


class _Meta(msgspec.Struct):
    name: str
    uid: str
    namespace: str
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    deletionTimestamp: str | None = None  # noqa: N815 # the API's own name
    resourceVersion: str = ""  # noqa: N815 # the API's own name


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 # the API's own name


class _PodCondition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_PodCondition] = msgspec.field(default_factory=list)
    nominatedNodeName: str = ""  # noqa: N815 # the API's own name


class PodSeen(msgspec.Struct):
    """What of a pod is looked at."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def was_tried(self) -> bool:
        """Whether kube-scheduler has found it a node, or none."""
        return bool(self.spec.nodeName) or any(
            each.type == "PodScheduled" and each.status == "False" for each in self.status.conditions
        )


class _Change(msgspec.Struct):
    type: str
    object: PodSeen


_CHANGES = msgspec.json.Decoder(_Change)


class Pods:
    """The pods that are there, by namespace, as a watch tells."""

    def __init__(self, cluster: Cluster, listen: Callable[[str, PodSeen], None] = lambda kind, pod: None) -> None:
        self._api, self._listen = cluster.api, listen
        self._there: dict[str, dict[str, PodSeen]] = {}
        self._changed_at: dict[str, float] = {}
        self._changed = Condition()
        self._stopping = Event()
        self._version: str = msgspec.json.decode(self._api.get(PODS, {"limit": 1}))["metadata"]["resourceVersion"]
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(HTASError):
                for line in self._api.lines(PODS, {"watch": 1, "resourceVersion": self._version}, 300.0):
                    change = _CHANGES.decode(line)
                    with self._changed:
                        self._see(change.type, change.object)

    def _see(self, kind: str, pod: PodSeen) -> None:
        self._version = pod.metadata.resourceVersion
        there = self._there.setdefault(pod.metadata.namespace, {})
        if kind == "DELETED" or pod.metadata.deletionTimestamp:
            there.pop(pod.metadata.uid, None)
        else:
            there[pod.metadata.uid] = pod
        self._changed_at[pod.metadata.namespace] = time.monotonic()
        self._listen(kind, pod)
        self._changed.notify_all()

    def of(self, namespace: str) -> list[PodSeen]:
        with self._changed:
            return list(self._there.get(namespace, {}).values())

    def settle(self, namespace: str, count: int, patience_s: float) -> None:
        """Wait until `count` pods are there, all were tried, and none waits for room that is being made.

        For what is being made room for no longer than so many seconds. Raises TimeoutError after a minute.
        """
        began = time.monotonic()
        with self._changed:
            while not self._is_settled(namespace, count, time.monotonic() - began > patience_s):
                if time.monotonic() - began > 60:
                    raise TimeoutError(f"{namespace}: {count} pods are not settled")
                self._changed.wait(0.2)

    def _is_settled(self, namespace: str, count: int, is_late: bool) -> bool:
        there = self._there.get(namespace, {}).values()
        is_nominated = any(pod.status.nominatedNodeName and not pod.spec.nodeName for pod in there)
        return len(there) == count and all(pod.was_tried for pod in there) and (is_late or not is_nominated)

    def is_quiet(self, namespace: str) -> bool:
        return time.monotonic() - self._changed_at.get(namespace, 0.0) > QUIET_S

    def stop(self) -> None:
        self._stopping.set()


@contextmanager
def control_plane(**options: str) -> Iterator[Cluster]:
    """etcd, kube-apiserver, kube-scheduler with the profiles, and the controllers that `options` leave."""
    binaries = Path(os.environ.get("HTAS_KUBE_BIN", "~/.cache/htas/kube-bin")).expanduser()
    with TemporaryDirectory(prefix="htas-placing-") as folder:
        config = Path(folder) / "scheduler.yaml"
        config.write_text(SCHEDULER)
        flags = f"--config={config}"
        cluster = Cluster(Path(folder) / "kube", binaries, HTAS_KUBE_SCHEDULER_FLAGS=flags, **options)
        try:
            yield cluster
        finally:
            cluster.purge()


@dataclass(frozen=True, slots=True)
class Bench:
    """A namespace with nodes of its own, on which one instance at a time is placed."""

    name: str
    cluster: Cluster
    pods: Pods

    def opened(self) -> Bench:
        """Make its namespace; pods are refused until that has its service account."""
        self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}})
        while True:
            with suppress(NotFoundError):
                self.cluster.api.get(f"{CORE}/namespaces/{self.name}/serviceaccounts/default")
                return self
            time.sleep(0.05)

    def place(self, instance: Instance, profile: str) -> Placement:
        """Where the profile's scheduler puts the pods; nothing is left behind."""
        self.fill(instance, profile)
        found = self.read(instance)
        self.clear(instance.cell.nodes)
        return found

    def fill(self, instance: Instance, profile: str, annotations: Json | None = None) -> None:
        """Create the nodes and, one after another, the ReplicaSets; return when their pods have come to rest."""
        for number in range(instance.cell.nodes):
            self.cluster.create(self._node(instance, number))
        created = 0
        for replica_set, size in Counter(instance.replica_set).items():
            manifest = self._replica_set(instance, profile, replica_set, size)
            manifest["spec"]["template"]["metadata"]["annotations"] = annotations or {}
            self.cluster.create(manifest)
            created += size
            self.pods.settle(self.name, created, PATIENCE_S)
        until = time.monotonic() + REST_S
        while profile != IN_ORDER and time.monotonic() < until and not self._is_at_rest(instance):
            time.sleep(0.2)

    def _is_at_rest(self, instance: Instance) -> bool:
        """What preemption sets going may take seconds: who made room for itself is tried again after a pause."""
        if not self.pods.is_quiet(self.name) or len(self.pods.of(self.name)) != len(instance.node_of):
            return False
        return is_at_rest(instance, self.read(instance))

    def read(self, instance: Instance) -> Placement:
        """Where the pods are now."""
        sizes = Counter(instance.replica_set)
        nodes: dict[int, list[int]] = {each: [] for each in sizes}
        for pod in self.pods.of(self.name):
            if pod.spec.nodeName:
                number = int(pod.spec.nodeName.rpartition("-")[2]) - 1
                nodes[int(pod.metadata.labels["set"])].append(number)
        return tuple(
            node for each, size in sizes.items() for node in sorted(nodes[each]) + [-1] * (size - len(nodes[each]))
        )

    def clear(self, nodes: int) -> None:
        self.cluster.delete(f"{APPS}/namespaces/{self.name}/replicasets")
        while self.pods.of(self.name):
            self.cluster.delete(f"{CORE}/namespaces/{self.name}/pods")
            time.sleep(0.05)
        for number in range(nodes):
            self.cluster.delete(f"{NODES}/{self._node_name(number)}")

    def _node_name(self, number: int) -> str:
        return f"{self.name}-{node_name(number)}"

    def _node(self, instance: Instance, number: int) -> Json:
        name = self._node_name(number)
        room = {"cpu": f"{instance.node_cpu_m}m", "memory": str(instance.node_memory_bytes), "pods": "512"}
        labels = {"kubernetes.io/hostname": name, "bench": self.name}
        meta = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
        status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}

    def _replica_set(self, instance: Instance, profile: str, number: int, size: int) -> Json:
        first = instance.replica_set.index(number)
        requests = {"cpu": f"{instance.cpu_m[first]}m", "memory": str(instance.memory_bytes[first])}
        labels = {"set": str(number)}
        spec = {
            "schedulerName": SCHEDULER_OF[profile],
            "priorityClassName": f"p{instance.priority[first]}",
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"bench": self.name},
            "containers": [{"name": "main", "image": "example.com/none", "resources": {"requests": requests}}],
        }
        if profile == IN_ORDER:
            spec["affinity"] = {"nodeAffinity": self._by_name(instance.cell.nodes)}
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": f"rs-{number:03d}", "namespace": self.name},
            "spec": {
                "replicas": size,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }

    def _by_name(self, nodes: int) -> Json:
        """The first by name is preferred most: `nodes` points, then one fewer for each."""

        def term(number: int) -> Json:
            values = [self._node_name(number)]
            expressions = [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]
            return {"weight": nodes - number, "preference": {"matchExpressions": expressions}}

        return {"preferredDuringSchedulingIgnoredDuringExecution": list(map(term, range(nodes)))}


def record(tasks: Iterable[tuple[Instance, str]], path: Path, benches: int, until: float) -> int:
    """Place instances, several at once, and append each placement to the file as it comes; how many.

    One scheduler places them all, one pod at a time; each instance has nodes that no other instance's pods may use. No
    further one is begun after `until` (`time.monotonic`).
    """
    done, writing, free = [0], Lock(), Queue[Bench]()
    with control_plane(**WITHOUT_KUBELETS) as cluster, path.open("a") as file, ThreadPoolExecutor(benches) as pool:
        prioritise(cluster)
        pods = Pods(cluster)
        for number in range(benches):
            free.put(Bench(f"bench-{number:02d}", cluster, pods).opened())

        def place(task: tuple[Instance, str]) -> None:
            if time.monotonic() > until:
                return
            instance, profile = task
            bench = free.get()
            placement = bench.place(instance, profile)
            free.put(bench)
            if profile == AS_IS and not is_at_rest(instance, placement):
                return
            cell = instance.cell
            line = {
                "cell": [cell.nodes, cell.pods_per_node, cell.priorities, cell.usage],
                "seed": instance.seed,
                "profile": profile,
                "node_of": placement,
            }
            with writing:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
                file.flush()
                done[0] += 1

        list(pool.map(place, tasks))
        pods.stop()
    return done[0]


def prioritise(cluster: Cluster) -> None:
    """PriorityClasses p1 to p4, of the values 1 to 4."""
    for value in range(1, 5):
        meta = {"name": f"p{value}"}
        cluster.create(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value}
        )
