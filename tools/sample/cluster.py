"""The sample: a kubeadm cluster on OpenStack with what such clusters run, spread as kube-scheduler spreads it.

python -m tools.sample.cluster > sample.json          # --workers 18, --seed 1, --kinds Node,Pod …, --no-types
htas simulate --from sample.json --flavours config/flavours/nectar.yaml
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from tools.sample.objects import (
    CINDER,
    CONTROL_PLANE,
    SIZES,
    TYPE,
    ZONES,
    Object,
    beside_node,
    budget,
    instant,
    made,
    node,
    volume,
)
from tools.sample.work import STATIC, WORK, Work

WORKERS = 18
FLAVOURS = ("m1.xlarge", "m1.large", "m1.large", "m1.medium")
"""Of the workers, in turn."""
TEAMS = ("argo", "billing", "shop")


@dataclass(slots=True)
class Room:
    """A worker, what is left of it, and which workloads it has a pod of."""

    name: str
    zone: str
    cpu_m: int
    memory_mi: int
    of: set[str] = field(default_factory=set)

    def share_left(self, size: tuple[int, int]) -> float:
        cores, gib = size
        return self.cpu_m / (cores * 1000) + self.memory_mi / (gib * 1024)


class Sample:
    """Builds the objects; the same seed and number of workers give the same cluster."""

    def __init__(self, workers: int = WORKERS, seed: int = 1) -> None:
        self._rng = random.Random(seed)
        self._sizes: dict[str, tuple[int, int]] = {}
        self._rooms: list[Room] = []
        self._masters = [f"cp-{i + 1}" for i in range(3)]
        self._workers = [f"worker-{i + 1:02}" for i in range(workers)]
        self.objects: list[Object] = []

    def build(self) -> list[Object]:
        for i, name in enumerate(self._masters):
            self._add_node(node(name, "m1.medium", ZONES[i % 2], is_control_plane=True))
        for i, name in enumerate(self._workers):
            flavour = FLAVOURS[i % len(FLAVOURS)]
            self._add_node(node(name, flavour, ZONES[i % 2]))
            cores, gib = self._sizes[name] = SIZES[flavour]
            self._rooms.append(Room(name, ZONES[i % 2], cores * 1000, int(gib * 1024 * 0.97) - 100))
        works = sorted(_works(len(self._workers)), key=lambda work: work.kind != "DaemonSet")  # these come first
        self._add_classes({work.namespace for work in works})
        for work in works:
            self._add_work(work)
        for master in self._masters:
            for name, cpu_m in STATIC.items():
                self.objects.append(_static(name, master, cpu_m))
        return self.objects

    def _add_node(self, made_node: Object) -> None:
        self.objects += [made_node, *beside_node(made_node["metadata"]["name"])]

    def _add_classes(self, spaces: Collection[str]) -> None:
        self.objects += [made("Namespace", "v1", name) for name in sorted({*spaces, "kube-node-lease"})]
        self.objects += [
            made("PriorityClass", "scheduling.k8s.io/v1", "system-cluster-critical", value=2_000_000_000),
            made("PriorityClass", "scheduling.k8s.io/v1", "system-node-critical", value=2_000_001_000),
            made(
                "StorageClass",
                "storage.k8s.io/v1",
                "csi-cinder",
                provisioner=CINDER,
                volumeBindingMode="WaitForFirstConsumer",
            ),
        ]

    def _add_work(self, work: Work) -> None:
        owner, controllers = self._controller(work)
        self.objects += controllers
        if work.kind == "DaemonSet":
            nodes = self._masters if work.on_control_plane_alone else [*self._masters, *self._workers]
            for name in nodes:
                self.objects.append(self._pod(work, f"{work.name}-{self._suffix()}", name, owner))
                self._spend(name, work)
        else:
            for i in range(work.replicas):
                self._add_replica(work, i, owner)
        for name, labels, allowed in work.budgets:
            self.objects.append(budget(name, work.namespace, labels, allowed))

    def _add_replica(self, work: Work, number: int, owner: Object | None) -> None:
        if work.kind in ("StatefulSet", "Cluster"):
            name = f"{work.name}-{number + (work.kind == 'Cluster')}"
        elif work.kind in ("Pod", "Job", "Workflow"):
            name = work.name if work.kind == "Pod" else f"{work.name}-{self._suffix()}"
        else:
            name = f"{work.name}-{_hash(work)}-{self._suffix()}"
        room = self._roomiest(work)
        pod = self._pod(work, name, room.name, owner, number)
        if work.disk_gib:
            claim = name if work.kind == "Cluster" else f"data-{name}"
            self.objects += volume(claim, work.namespace, room.zone, work.disk_gib)
            pod["spec"]["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": claim}})
        room.of.add(work.name)
        self._spend(room.name, work)
        self.objects.append(pod)

    def _controller(self, work: Work) -> tuple[Object | None, list[Object]]:
        """What pods name as their controller, and those of its objects that a dump has."""
        name = f"{work.name}-{_hash(work)}" if work.kind == "ReplicaSet" else work.name
        owner = {"kind": work.kind, "name": name, "apiVersion": work.version, "controller": True, "uid": f"u-{name}"}
        if work.kind == "Pod":
            return None, []
        if work.kind == "ReplicaSet":
            above = {"kind": "Deployment", "name": work.name, "apiVersion": "apps/v1", "controller": True}
            meta, spec = {"ownerReferences": [above]}, {"replicas": work.replicas}
            return owner, [made("ReplicaSet", "apps/v1", name, work.namespace, meta=meta, spec=spec)]
        if work.kind == "Job":
            return owner, [made("Job", "batch/v1", name, work.namespace, spec={"parallelism": work.replicas})]
        if work.kind == "StatefulSet":
            return owner, [made("StatefulSet", "apps/v1", name, work.namespace, spec={"replicas": work.replicas})]
        if work.kind == "DaemonSet":
            meta, spec = {"uid": owner["uid"]}, {"template": self._template(work)}
            return owner, [made("DaemonSet", "apps/v1", name, work.namespace, meta=meta, spec=spec)]
        return owner, []

    def _template(self, work: Work) -> Object:
        """A pod without what its controller and the scheduler add."""
        pod = self._pod(work, work.name, "", None)
        spec = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "affinity")}
        return {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": spec}

    def _pod(self, work: Work, name: str, where: str, owner: Object | None, number: int = 0) -> Object:
        batch = work.kind in ("Job", "Workflow")
        age = timedelta(minutes=20 + number * 7) if batch else timedelta(days=30 - number)
        labels = {"app": work.name, **({"role": "primary" if number == 0 else "replica"} if work.budgets else {})}
        meta: Object = {"labels": labels, "annotations": dict(work.annotations)}
        meta["creationTimestamp"] = started = instant(age)
        if owner is not None:
            meta["ownerReferences"] = [owner]
        if work.kind == "ReplicaSet":
            labels["pod-template-hash"] = _hash(work)
        cpu_m, memory_mi = work.cpu_m, work.memory_mi
        requests = {"cpu": f"{cpu_m}m", "memory": f"{memory_mi}Mi"} if cpu_m else {}
        spec: Object = {
            "nodeName": where,
            "schedulerName": "default-scheduler",
            "restartPolicy": "Never" if batch else "Always",
            "containers": [{"name": work.name, "image": f"example/{work.name}:1", "resources": {"requests": requests}}],
            "volumes": [{"name": "scratch", work.scratch: {}}] if work.scratch else [],
        }  # fmt: skip
        if work.kind == "DaemonSet":
            spec["tolerations"] = [{"operator": "Exists"}]
            match = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [where]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [match]}}
            spec["affinity"] = {"nodeAffinity": required}
            if work.on_control_plane_alone:
                spec["nodeSelector"] = {CONTROL_PLANE: ""}
        elif work.apart:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": work.name}}}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": started}
        state = {"name": work.name, "state": {"running": {"startedAt": started}}}
        status = {"phase": "Running", "startTime": started, "conditions": [ready], "containerStatuses": [state]}
        return made("Pod", "v1", name, work.namespace, meta=meta, spec=spec, status=status)

    def _roomiest(self, work: Work) -> Room:
        """The node that kube-scheduler would take: of those with room, none of its kind first, then the emptiest."""
        able = [room for room in self._rooms if room.cpu_m >= work.cpu_m and room.memory_mi >= work.memory_mi]
        return max(
            able, key=lambda room: (work.name not in room.of, room.share_left(self._sizes[room.name]), room.name)
        )

    def _spend(self, name: str, work: Work) -> None:
        for room in self._rooms:
            if room.name == name:
                room.cpu_m -= work.cpu_m
                room.memory_mi -= work.memory_mi

    def _suffix(self) -> str:
        return "".join(self._rng.choices("bcdfghjklmnpqrstvwxz2456789", k=5))


def _works(workers: int) -> list[Work]:
    """The work of the sample; of more workers the teams' own over again, so that they are as full."""
    more = [
        replace(work, namespace=f"{work.namespace}-{copy}")
        for copy in range(2, workers // WORKERS + 1)
        for work in WORK
        if work.namespace in TEAMS
    ]
    return [*WORK, *more]


def _hash(work: Work) -> str:
    return f"{sum(work.name.encode()) * 7919 % 0xFFFFFF:06x}"


def _static(name: str, master: str, cpu_m: int) -> Object:
    owner = {"kind": "Node", "name": master, "apiVersion": "v1", "controller": True, "uid": f"Node-{master}"}
    meta = {"ownerReferences": [owner], "annotations": {"kubernetes.io/config.mirror": "0"}}
    container = {"name": name, "resources": {"requests": {"cpu": f"{cpu_m}m", "memory": "100Mi"}}}
    spec = {"nodeName": master, "hostNetwork": True, "containers": [container], "tolerations": [{"operator": "Exists"}]}
    spec["volumes"] = [{"name": "files", "hostPath": {"path": "/etc/kubernetes"}}]
    status = {"phase": "Running", "startTime": instant(timedelta(days=60))}
    return made("Pod", "v1", f"{name}-{master}", "kube-system", meta=meta, spec=spec, status=status)


def sample(workers: int = WORKERS, seed: int = 1, kinds: Collection[str] = (), *, typed: bool = True) -> list[Object]:
    """The objects of a cluster; of these `kinds` alone where some are named, without instance types if not `typed`."""
    objects = Sample(workers, seed).build()
    if not typed:
        for item in objects:
            item["metadata"].get("labels", {}).pop(TYPE, None)
    return [item for item in objects if not kinds or item["kind"] in kinds]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Print a sample cluster as kubectl prints one.")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="", help="such as Node,Pod; else all")
    parser.add_argument("--no-types", action="store_true", help="nodes without instance-type labels")
    said = parser.parse_args(words)
    kinds = [kind for kind in said.kinds.split(",") if kind]
    items = sample(said.workers, said.seed, kinds, typed=not said.no_types)
    print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


if __name__ == "__main__":
    main()
