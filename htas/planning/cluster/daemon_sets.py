"""What a new node will run beside its work: one pod of each DaemonSet, and of custom controllers that are as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

import msgspec
import numpy as np

from htas.model.nodes import Node
from htas.model.pods import Phase, Pod
from htas.model.resources import Resources
from htas.model.selectors import Operator
from htas.model.snapshot import ClusterView
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulation import Simulation

FEWEST_NODES = 3
"""A custom controller is as a DaemonSet once it has a pod on so many nodes, and on half of those it could be on.

Anybody may write the annotation. So what it adds to new machines, it takes of half of the present ones already: a pod
of 3 cores on one node of a hundred would else have every new machine bought 3 cores larger.
"""
COUNTED = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "Job"})
"""Controllers that make as many pods as they are told to, however many nodes there are."""


def are_on_each_node(sim: Simulation, book: ClassBook, view: ClusterView) -> list[PodClass]:
    """One class for each DaemonSet, the most important first: what a new node will run of it."""
    found = [(pod, book.class_of(pod)) for pod in examples(view)]
    for pods in _annotated(view):
        newest = _unpinned(max(pods, key=_age))
        cls = book.class_of(newest)
        if _covers(sim, cls, pods):
            found.append((newest, cls))
    found.sort(key=lambda each: (-each[0].priority, each[0].namespace, each[0].owner.name if each[0].owner else ""))
    return [cls for _, cls in found]


def examples(view: ClusterView) -> list[Pod]:
    """What a node runs of each DaemonSet: as its template says, but as much as its newest pod that runs asks.

    Admission may have added to the template (a LimitRange's defaults, a sidecar): a machine that is too small by that
    would be bought again and again. A pod that only waits says nothing: anybody may have made it, and asked for what
    they like. Where nobody has said which DaemonSets there are (a dump without them) those pods speak alone.
    """
    newest: dict[tuple[str, str, str], Pod] = {}
    for pod in view.pods:
        if pod.owner is not None and is_of_daemon_set(pod) and pod.phase is Phase.RUNNING:
            key = pod.namespace, pod.owner.name, pod.owner.uid
            if key not in newest or _age(pod) > _age(newest[key]):
                newest[key] = pod
    if view.daemons is None:
        return [_unpinned(pod) for pod in newest.values()]
    found = []
    for meant in view.daemons:
        owner = meant.owner
        runs = newest.get((meant.namespace, owner.name, owner.uid)) if owner is not None else None
        requests = meant.requests if runs is None else meant.requests.at_least(runs.requests)
        found.append(msgspec.structs.replace(meant, requests=requests))
    return found


def is_of_daemon_set(pod: Pod) -> bool:
    """Whether its controller says where it will run; an annotation that says as much (`is_daemon`) keeps no room."""
    return pod.owner is not None and pod.owner.kind == "DaemonSet"


def asks_what_its_template_asks(pod: Pod, templates: Mapping[str, Resources]) -> bool:
    """Whether a pod that waits for a node may be counted there: one that asks for more is not of its DaemonSet."""
    meant = templates.get(pod.owner.uid) if pod.owner is not None else None
    return meant is None or pod.requests.fits_in(meant)


def pinned_to(pod: Pod) -> str | None:
    """The node a DaemonSet's controller made a pod for: it will run there and nowhere else."""
    for term in pod.constraints.node_affinity or ():
        for requirement in term.fields:
            if requirement.key == "metadata.name" and len(requirement.values) == 1:
                return requirement.values[0]
    return None


def count_to_come(
    sim: Simulation, nodes: Sequence[Node], coming: Set[str], running: Mapping[int, Sequence[Pod]]
) -> None:
    """DaemonSet pods that will start on machines on their way; a node that has registered runs some of them already."""
    rows = [row for row, node in enumerate(nodes) if node.name in coming]
    for cls in sim.daemons:
        owner = cls.example.owner
        bare = [row for row in rows if all(pod.owner != owner for pod in running.get(row, ()))]
        if bare:
            sim.add_daemons(np.array(bare, dtype=np.int64), (cls,))


def _annotated(view: ClusterView) -> list[list[Pod]]:
    """Running pods that are annotated as a DaemonSet's, by their controller."""
    found: dict[tuple[str, str, str, str], list[Pod]] = defaultdict(list)
    for pod in view.pods:
        if pod.node is None or pod.owner is None or pod.phase is not Phase.RUNNING or not pod.is_daemon:
            continue
        if _is_custom(pod.owner.kind):
            found[pod.namespace, pod.owner.kind, pod.owner.name, pod.owner.uid].append(pod)
    return list(found.values())


def _is_custom(kind: str) -> bool:
    """`AdvancedDaemonSet`, `DaemonSet.apps.kruise.io`; not `DaemonSet`, nor one that is said to be and is not there."""
    return kind.startswith("DaemonSet.") or not (kind.startswith("DaemonSet") or kind in COUNTED)


def _covers(sim: Simulation, cls: PodClass, pods: Sequence[Pod]) -> bool:
    """Whether a controller has one pod on each of at least FEWEST_NODES nodes, half of those that would take it."""
    nodes = {pod.node for pod in pods}
    if len(nodes) < max(FEWEST_NODES, len(pods)):  # two on a node: it makes as many as it likes
        return False
    return 2 * len(nodes) >= int(sim.allowed(cls).sum())


def _age(pod: Pod) -> tuple[float, str]:
    return pod.created_at, pod.name


def _unpinned(pod: Pod) -> Pod:
    """A DaemonSet's pod without the node name its controller wrote into its affinity."""
    terms = pod.constraints.node_affinity
    if terms is None:
        return pod
    free = tuple(
        msgspec.structs.replace(
            term,
            fields=tuple(f for f in term.fields if not (f.key == "metadata.name" and f.operator is Operator.IN)),
        )
        for term in terms
    )
    kept = tuple(term for term in free if term.expressions or term.fields)
    affinity = kept if len(kept) == len(terms) else None
    return msgspec.structs.replace(
        pod, constraints=msgspec.structs.replace(pod.constraints, node_affinity=affinity), node=None
    )
