"""Pods of a hostile namespace beside a quiet one: the quiet one's get what they would get alone.

Pods come as the API server would list them, are read by the live view and planned for, all in one cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from htas.adapters.kubernetes.dump import read_dump
from htas.model.plan import Plan
from htas.model.snapshot import ClusterSnapshot
from htas.planning.planner import plan
from tools.adversary.attack import Attack, Verdict, verdict
from tools.adversary.scene import shipped_policy

Json = dict[str, Any]
NOW = 1_767_571_200.0
QUIET = 20
MOST_COST = 3.0
"""Machines for a hostile namespace of a few small pods may cost so many times the quiet one's."""


def pod(
    name: str, namespace: str, cpu: str = "500m", meta: Json | None = None, spec: Json | None = None, **requests: str
) -> Json:
    resources = {"requests": {"cpu": cpu, "memory": "512Mi", **requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}-{name}",
            "creationTimestamp": "2026-01-04T23:59:00Z",
            **(meta or {}),
        },
        "spec": {"schedulerName": "htas", "containers": [{"name": "c", "resources": resources}], **(spec or {})},
        "status": {"phase": "Pending"},
    }


def _owned(kind: str, version: str = "apps/v1") -> Json:
    return {"ownerReferences": [{"apiVersion": version, "kind": kind, "name": "x", "uid": "x", "controller": True}]}


def _affinity(kind: str, terms: int, **fields: Any) -> Json:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "nobody"}}, **fields}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term] * terms}}}


NODE_NAMES = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{i}" for i in range(200)]}]}
        ]
    }
}

SHAPES: dict[str, Callable[[int], Json]] = {
    "an invented DaemonSet asks for 1,000 cores": lambda i: pod(f"h{i}", "hostile", "1000", meta=_owned("DaemonSet")),
    "an invented DaemonSet asks for 3 cores": lambda i: pod(f"h{i}", "hostile", "3", meta=_owned("DaemonSet")),
    "a DaemonSet of a tenant's own kind": lambda i: pod(f"h{i}", "hostile", meta=_owned("DaemonSet", "tenant/v1")),
    "a million cores": lambda i: pod(f"h{i}", "hostile", "1000000"),
    "less than nothing": lambda i: pod(f"h{i}", "hostile", "-5"),
    "quantities beyond all numbers": lambda i: pod(f"h{i}", "hostile", "9e99", memory="9" * 400),
    "invented resources": lambda i: pod(f"h{i}", "hostile", **{f"x.example/{i}-{j}": "1" for j in range(200)}),
    "2,000 host ports": lambda i: pod(
        f"h{i}",
        "hostile",
        spec={"containers": [{"name": "c", "ports": [{"hostPort": p, "containerPort": p} for p in range(1, 2001)]}]},
    ),
    "priority beyond all": lambda i: pod(f"h{i}", "hostile", "1000", spec={"priority": 2_147_483_647}),
    "priority that is a word": lambda i: pod(f"h{i}", "hostile", spec={"priority": "high"}),
    "affinity to nobody": lambda i: pod(f"h{i}", "hostile", spec=_affinity("podAffinity", 1)),
    "1,000 terms of affinity": lambda i: pod(f"h{i}", "hostile", spec=_affinity("podAntiAffinity", 1000)),
    "anti-affinity to all namespaces": lambda i: pod(
        f"h{i}", "hostile", spec=_affinity("podAntiAffinity", 1, labelSelector={}, namespaceSelector={})
    ),
    "anti-affinity over a topology of nobody": lambda i: pod(
        f"h{i}", "hostile", spec=_affinity("podAntiAffinity", 1, labelSelector={}, topologyKey="no/such")
    ),
    "200 names of nodes": lambda i: pod(f"h{i}", "hostile", spec={"affinity": {"nodeAffinity": NODE_NAMES}}),
    "a selector for nobody": lambda i: pod(f"h{i}", "hostile", spec={"nodeSelector": {"no/such": "node"}}),
    "spread over zones of nobody": lambda i: pod(
        f"h{i}",
        "hostile",
        spec={
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "no/such", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 10**9}
            ]
        },
    ),
    "a run length of for ever": lambda i: pod(f"h{i}", "hostile", meta={"annotations": {"htas.io/runtime": "9e99h"}}),
    "a run length of no number": lambda i: pod(f"h{i}", "hostile", meta={"annotations": {"htas.io/runtime": "nan"}}),
    "work of no kind": lambda i: pod(f"h{i}", "hostile", meta={"labels": {"htas.io/workload": "\u202eecivres"}}),
    "claims of nobody": lambda i: pod(
        f"h{i}", "hostile", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}
    ),
    "born tomorrow": lambda i: pod(f"h{i}", "hostile", meta={"creationTimestamp": "9999-12-31T23:59:59Z"}),
    "dying for ever": lambda i: pod(f"h{i}", "hostile", meta={"deletionTimestamp": "9999-12-31T23:59:59Z"}),
    "a scheduler's gates": lambda i: pod(f"h{i}", "hostile", spec={"schedulingGates": [{"name": "wait"}] * 500}),
    "everything is of the wrong type": lambda i: {"kind": "Pod", "metadata": {"name": i}, "spec": [], "status": 1},
    "a name of a quiet pod": lambda i: pod(f"quiet-{i}", "hostile"),
    "nominated to nowhere": lambda i: pod(f"h{i}", "hostile") | {"status": {"nominatedNodeName": "nowhere"}},
}


def _planned(items: list[Json]) -> Plan:
    view = read_dump(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}), "attack")
    return plan(ClusterSnapshot(taken_at=NOW, cluster=view), shipped_policy(), NOW)


def _quiet() -> list[Json]:
    return [pod(f"quiet-{number}", "quiet") for number in range(QUIET)]


def _cost(made: Plan) -> int:
    return sum(launch.nanos_per_hour for launch in made.launches)


def _provided(made: Plan) -> set[str]:
    """Quiet pods that a machine is bought for."""
    return {name for launch in made.launches for name in launch.pods if name.startswith("quiet/")}


@dataclass(frozen=True, slots=True)
class _Beside:
    shape: Callable[[int], Json]
    count: int

    def run(self) -> Verdict:
        alone = _planned(_quiet())
        both = _planned([*(self.shape(number) for number in range(self.count)), *_quiet()])
        times = _cost(both) / max(1, _cost(alone))
        missing = QUIET - len(_provided(both))
        return verdict(
            f"{QUIET - missing} of {QUIET} quiet pods are bought for; the bill is {times:.1f} times theirs alone",
            {
                f"{missing} quiet pods are not bought for": missing > 0,
                "alone the quiet pods are not all bought for": len(_provided(alone)) != QUIET,
                f"the bill is {times:.1f} times theirs alone": times > MOST_COST,
            },
        )


def all_at_once(count: int) -> Verdict:
    """Every shape beside every other."""
    alone = _planned(_quiet())
    shapes = [
        _renamed(shape(number), f"h{kind}-{number}")
        for kind, shape in enumerate(SHAPES.values())
        for number in range(count)
    ]
    missing = len(_provided(alone) - _provided(_planned([*shapes, *_quiet()])))
    return verdict(
        f"{len(shapes)} hostile pods of {len(SHAPES)} shapes; {QUIET - missing} of {QUIET} quiet ones are bought for",
        {f"{missing} quiet pods are not bought for": missing > 0},
    )


def _renamed(item: Json, name: str) -> Json:
    return item | {"metadata": item["metadata"] | {"name": name, "uid": name}}


def attacks() -> list[Attack]:
    return [
        *(Attack(f"tenant: {name}", _Beside(shape, 20).run) for name, shape in SHAPES.items()),
        Attack("tenant: all shapes at once", partial(all_at_once, 3)),
        Attack("tenant: fifty of all shapes at once", partial(all_at_once, 50), is_long=True),
    ]
