"""Shapes of hostile dumps: `count` objects with `size` entries each, of every kind that a tenant or a cloud may write.

The API server bounds an object by its bytes alone (1.5 MB), so that 500 entries of each list are well within it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.adversary.tenant import pod

Json = dict[str, Any]
Shape = Callable[[int, int], list[Json]]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SOON = "requiredDuringSchedulingIgnoredDuringExecution"
MAYBE = "preferredDuringSchedulingIgnoredDuringExecution"


def _each(of: Callable[[int, int], Json]) -> Shape:
    """`count` objects, the n-th made from n and the size."""
    return lambda count, size: [of(number, size) for number in range(count)]


def _with(spec: Callable[[int, int], Json], **meta: Any) -> Shape:
    return _each(lambda n, size: pod(f"h{n}", "hostile", meta={**meta, "labels": {"app": f"a{n}"}}, spec=spec(n, size)))


def _meta(meta: Callable[[int, int], Json]) -> Shape:
    return _each(lambda n, size: pod(f"h{n}", "hostile", meta=meta(n, size)))


def _near(kind: str, of: Callable[[int, int], Json]) -> Shape:
    """Terms of pod affinity or anti-affinity, made from the pod's number and the term's."""
    return _with(lambda n, size: _affinity(kind, {SOON: [of(n, i) for i in range(size)]}))


def _term(labels: Json, key: str = HOST, **more: Any) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}


def _expressions(key: str, operator: str, values: list[str]) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}


def _affinity(kind: str, terms: Json) -> Json:
    return {"affinity": {kind: terms}}


def _nodes_like(terms: Callable[[int, int], list[Json]]) -> Shape:
    return _with(lambda n, size: _affinity("nodeAffinity", {SOON: {"nodeSelectorTerms": terms(n, size)}}))


def _nodes_named(field: bool) -> Shape:
    what = "matchFields" if field else "matchExpressions"
    key = "metadata.name" if field else HOST

    def spec(_: int, size: int) -> Json:
        names = [f"n{i}" for i in range(size)]
        terms = [{what: [{"key": key, "operator": "In", "values": names}]}]
        return {"affinity": {"nodeAffinity": {SOON: {"nodeSelectorTerms": terms}}}}

    return _with(spec)


def _spread(n: int, i: int, **more: Any) -> Json:
    chosen = {"matchLabels": {"app": f"a{n}", f"k{i}": "v"}}
    base = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": chosen}
    return base | more


def _object(kind: str, name: str, spec: Json, version: str = "v1", **meta: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "uid": name, **meta}, "spec": spec}


def _running(n: int, node: str, meta: Json | None = None, spec: Json | None = None) -> Json:
    made = pod(f"r{n}", "hostile", "10m", meta, {"nodeName": node, **(spec or {})})
    return made | {"status": {"phase": "Running", "startTime": "2026-01-04T23:59:30Z"}}


def _own_terms(count: int, size: int) -> list[Json]:
    """Each stays away from every other by a term of its own: no two are alike."""
    del size
    shape = _near("podAntiAffinity", lambda n, i: _term({"app": f"a{(n + 1) % count}"}))
    return shape(count, 1)


def _namespaces(count: int, size: int) -> list[Json]:
    """Sixteen namespace selectors a pod, over thousands of namespaces with many labels."""
    labels = {f"l{i}": "v" for i in range(50)}
    spaces = [_object("Namespace", f"ns{i}", {}, labels=labels | {"own": str(i)}) for i in range(size * 6)]
    chosen = [{"matchLabels": {"own": str(i), "l1": "v"}} for i in range(16)]
    terms = [_term({"x": "y"}, namespaceSelector=each) for each in chosen]
    shape = _with(lambda n, _: {"affinity": {"podAntiAffinity": {SOON: terms}}})
    return [*spaces, *shape(count, size)]


def _own_namespaces(count: int, size: int) -> list[Json]:
    """Each pod has namespace selectors of its own, which no other has."""
    spaces = [_object("Namespace", f"ns{i}", {}, labels={"a": str(i % 7), "own": str(i)}) for i in range(size * 6)]
    shape = _near(
        "podAntiAffinity", lambda n, i: _term({"x": "y"}, namespaceSelector=_expressions("own", "NotIn", [f"{n}-{i}"]))
    )
    return [*spaces, *shape(count, 100)]


def _budgets(count: int, size: int) -> list[Json]:
    """As many budgets over the same pods."""
    budgets = [
        _object("PodDisruptionBudget", f"b{i}", {"minAvailable": 1, "selector": {}}, "policy/v1", namespace="hostile")
        for i in range(size)
    ]
    return [*budgets, *(_running(n, f"n{n % 50}") for n in range(count))]


def _bound_terms(count: int, size: int) -> list[Json]:
    """Pods that run and keep everybody away from their node, by many terms each."""
    terms = [_term({f"k{i}": "v"}) for i in range(min(size, 100))]
    spec = {"affinity": {"podAntiAffinity": {SOON: terms}}}
    return [_running(n, f"n{n % 50}", {"labels": {"app": f"a{n}"}}, spec) for n in range(count)]


def _volumes(count: int, size: int) -> list[Json]:
    """Claims that are there, each of a volume with many terms of its own."""
    zones = [{"matchExpressions": [{"key": f"k{i}", "operator": "In", "values": ["v"]}]} for i in range(size)]
    found: list[Json] = []
    for n in range(count):
        volume = {"nodeAffinity": {"required": {"nodeSelectorTerms": zones}}, "capacity": {"storage": "1Gi"}}
        found.append(_object("PersistentVolume", f"pv{n}", volume))
        found.append(_object("PersistentVolumeClaim", f"c{n}", {"volumeName": f"pv{n}"}, namespace="hostile"))
        claim = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": f"c{n}"}}]}
        found.append(pod(f"h{n}", "hostile", spec=claim))
    return found


def _tainted(count: int, size: int) -> list[Json]:
    """Nodes with many taints and labels, and pods that tolerate as many others."""
    taints = [{"key": f"t{i}", "value": "v", "effect": "NoSchedule"} for i in range(size)]
    labels = {f"l{i}": "v" for i in range(size)}
    nodes = [
        {
            **_object("Node", f"t{i}", {"taints": taints}, labels=labels),
            "status": {
                "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for i in range(100)
    ]
    tolerations = [{"key": f"t{i}", "operator": "Equal", "value": f"w{i}"} for i in range(size)]
    return [*nodes, *_with(lambda n, _: {"tolerations": tolerations})(count, size)]


def _tasks(kind: str) -> Shape:
    resources = {"requests": {"cpu": "10m", "memory": "1Mi"}}
    return _with(lambda n, size: {kind: [{"name": f"c{i}", "resources": resources} for i in range(size)]})


def _storm(count: int, size: int) -> list[Json]:
    """As many priorities as pods, each more important than all that run."""
    runs = [_running(n, f"n{n % 50}", spec={"priority": n}) for n in range(count)]
    waits = [pod(f"h{n}", "hostile", "4", spec={"priority": 10_000 + n}) for n in range(size)]
    return [*runs, *waits]


def _daemon_sets(count: int, size: int) -> list[Json]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1m"}}}]
    template = {"metadata": {"labels": {"d": "d"}}, "spec": {"containers": containers}}
    found = [
        _object("DaemonSet", f"d{i}", {"template": template, "selector": {}}, "apps/v1", namespace="hostile")
        for i in range(size)
    ]
    return [*found, *(pod(f"h{n}", "hostile") for n in range(count))]


def _owned(n: int, size: int) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": f"x{n}"}
    return {"ownerReferences": [{**owner, "controller": i == 0} for i in range(size)]}


def _classes(count: int, size: int) -> list[Json]:
    found = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"p{i}"}, "value": i}
        for i in range(size)
    ]
    named = [pod(f"h{n}", "hostile", spec={"priorityClassName": f"p{n % size}"}) for n in range(count)]
    return [*found, *named]


SHAPES: dict[str, Shape] = {
    "labels": _meta(lambda n, size: {"labels": {f"l{i}": f"v{n}" for i in range(size)}}),
    "annotations": _meta(lambda n, size: {"annotations": {f"l{i}": "v" * 100 for i in range(size)}}),
    "run lengths of all lengths": _meta(lambda n, size: {"annotations": {"htas.io/runtime": f"{n + 1}s"}}),
    "owners": _meta(_owned),
    "finalizers": _meta(lambda n, size: {"finalizers": [f"x.example/{i}" for i in range(size)]}),
    "names of other alphabets": _meta(lambda n, size: {"labels": {"a": "\u202e" * size}}),
    "selector of many labels": _with(lambda n, size: {"nodeSelector": {f"l{i}": f"v{n}" for i in range(size)}}),
    "nodes named by field": _nodes_named(True),
    "nodes named by label": _nodes_named(False),
    "terms of node affinity": _nodes_like(
        lambda n, size: [_expressions(f"k{i}", "In", [f"v{n}"]) for i in range(size)]
    ),
    "terms of node affinity that hold": _nodes_like(
        lambda n, size: [_expressions(HOST, "In", [f"n{i % 50}"]) for i in range(min(size, 200))]
    ),
    "own selectors of namespaces": _own_namespaces,
    "values of node affinity": _nodes_like(
        lambda n, size: [_expressions("k", "NotIn", [f"v{n}-{i}" for i in range(size)])]
    ),
    "preferred node affinity": _with(
        lambda n, size: _affinity(
            "nodeAffinity",
            {MAYBE: [{"weight": 1, "preference": _expressions(f"k{i}", "In", ["v"])} for i in range(size)]},
        )
    ),
    "terms of affinity": _near("podAffinity", lambda n, i: _term({f"k{i}": "v"})),
    "terms of anti-affinity": _near("podAntiAffinity", lambda n, i: _term({f"k{i}": "v"})),
    "one own term of anti-affinity each": _own_terms,
    "anti-affinity to everybody": lambda count, size: _near(
        "podAntiAffinity", lambda n, i: _term({}, namespaceSelector={})
    )(count, 1),
    "terms over own topologies": _near("podAntiAffinity", lambda n, i: _term({"app": f"a{n}"}, f"x.example/{n}-{i}")),
    "values in affinity": lambda count, size: _near(
        "podAntiAffinity",
        lambda n, _: {
            "topologyKey": HOST,
            "labelSelector": _expressions("k", "In", [f"v{n}-{i}" for i in range(size)]),
        },
    )(count, 1),
    "names of namespaces in affinity": _near(
        "podAntiAffinity", lambda n, i: _term({"x": "y"}, namespaces=[f"ns{n}-{i}"])
    ),
    "sixteen namespace selectors": _namespaces,
    "preferred anti-affinity": _with(
        lambda n, size: _affinity(
            "podAntiAffinity",
            {MAYBE: [{"weight": 1, "podAffinityTerm": _term({f"k{i}": "v"})} for i in range(size)]},
        )
    ),
    "running pods with terms": _bound_terms,
    "spread constraints": _with(lambda n, size: {"topologySpreadConstraints": [_spread(n, i) for i in range(size)]}),
    "nineteen spread constraints": _with(
        lambda n, size: {"topologySpreadConstraints": [_spread(n, i) for i in range(19)]}
    ),
    "spread over a billion domains": _with(
        lambda n, size: {"topologySpreadConstraints": [_spread(n, 0, minDomains=10**9, topologyKey=ZONE)]}
    ),
    "spread by keys of its own": _with(
        lambda n, size: {"topologySpreadConstraints": [_spread(n, 0, matchLabelKeys=[f"k{i}" for i in range(size)])]}
    ),
    "host ports": _with(
        lambda n, size: {
            "containers": [{"name": "c", "ports": [{"hostPort": i + 1, "containerPort": i + 1} for i in range(size)]}]
        }
    ),
    "a hundred host ports": _with(
        lambda n, size: {
            "containers": [
                {"name": "c", "ports": [{"hostPort": n + i + 1, "containerPort": 1} for i in range(min(size, 100))]}
            ]
        }
    ),
    "invented resources": _each(
        lambda n, size: pod(f"h{n}", "hostile", **{f"x.example/{n}-{i}": "1" for i in range(size)})
    ),
    "tolerations": _with(
        lambda n, size: {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(size)]}
    ),
    "taints and labels of nodes": _tainted,
    "containers": _tasks("containers"),
    "init containers": _tasks("initContainers"),
    "claims of nobody": _with(
        lambda n, size: {
            "volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{n}-{i}"}} for i in range(size)]
        }
    ),
    "volumes with terms": _volumes,
    "disks on the node": _with(lambda n, size: {"volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(size)]}),
    "resource claims": _with(
        lambda n, size: {"resourceClaims": [{"name": f"r{i}", "resourceClaimName": "x"} for i in range(size)]}
    ),
    "scheduling gates": _with(lambda n, size: {"schedulingGates": [{"name": f"g{i}"} for i in range(size)]}),
    "disruption budgets": _budgets,
    "DaemonSets": _daemon_sets,
    "priority classes": _classes,
    "a storm of priorities": _storm,
    "bound to nowhere": lambda count, size: [_running(n, f"nowhere-{n}") for n in range(count)],
    "nominated to nowhere": _each(
        lambda n, size: pod(f"h{n}", "hostile") | {"status": {"nominatedNodeName": f"nowhere-{n}"}}
    ),
    "conditions": _each(
        lambda n, size: (
            pod(f"h{n}", "hostile")
            | {"status": {"phase": "Pending", "conditions": [{"type": f"c{i}", "status": "True"} for i in range(size)]}}
        )
    ),
    "dying for ever": _meta(
        lambda n, size: {"deletionTimestamp": "9999-12-31T23:59:59Z", "deletionGracePeriodSeconds": 10**9}
    ),
    "quantities beyond all numbers": _each(lambda n, size: pod(f"h{n}", "hostile", "9e99", memory="9" * size)),
    "less than nothing": _each(lambda n, size: pod(f"h{n}", "hostile", f"-{n + 1}", memory="-1Ei")),
    "requests of all sizes": _each(lambda n, size: pod(f"h{n}", "hostile", f"{n + 1}m", memory=f"{n + 1}Mi")),
    "everything is of the wrong type": _each(
        lambda n, size: {"kind": "Pod", "metadata": {"name": n}, "spec": [], "status": size}
    ),
}

TAKES_ALL = frozenset({"anti-affinity to everybody"})
"""Shapes that keep the quiet pods from the nodes by Kubernetes' own rules: who came first has a node for itself.

What that may cost others is bounded by limits of namespaces where nodes are bought; here they are there.
"""
