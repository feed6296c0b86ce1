"""What a dump lacks, as far as what it has tells, and what is assumed for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from htas.model.contradictions import out_of_reach, told
from htas.model.snapshot import ClusterView

ALL = "nodes,pods,pdb,pv,pvc,sc,csinodes,priorityclasses,ns,rs,sts,rc,ds,jobs,leases"
"""What a whole dump is asked for with; leases date it."""


class Gap(msgspec.Struct, frozen=True):
    """Something missing: the names kubectl knows it by, what shows that, and what is assumed.

    `is_grave`: it is there for certain, and the answer is likely to be another one with it.
    """

    resources: tuple[str, ...]
    lacks: str
    assumed: str
    is_grave: bool = False
    may_be_none: bool = False
    """Perhaps nothing is missing: the cluster may have none of it."""
    of_waiting: bool = False
    """Only pods that have no node yet are concerned."""
    doubt: str = ""
    """Why no figure is to be believed; empty: what is assumed instead is a fair guess."""


SEVERAL_NODES = 4
"""From so many nodes on, a cluster without any pod that comes with its node is taken for half a dump."""
SYSTEM = "kube-system"


def gaps(view: ClusterView, kinds: Collection[str], *, has_empty_list: bool = False) -> tuple[Gap, ...]:
    """What is missing where the dump holds these kinds, the worst first.

    `has_empty_list`: some kind was asked for and there was none of it; kubectl prints a List then that does not say of
    what. So what the cluster may have none of is not told as missing once more.
    """
    found = tuple(_gaps(view, kinds, has_empty_list=has_empty_list))
    return tuple(gap for gap in found if not gap.may_be_none) if has_empty_list else found


def _gaps(view: ClusterView, kinds: Collection[str], *, has_empty_list: bool) -> Iterator[Gap]:
    if "Node" not in kinds:
        yield Gap(("nodes",), "no nodes", "there is nowhere to run, and nothing to price", is_grave=True)
    if "Pod" not in kinds:
        rest = tuple(name for name in ALL.split(",") if name != "nodes")
        yield Gap(rest, "no pods", "every node counts as empty", is_grave=True)
        return
    if (partial := one_namespace(view)) is not None:
        yield partial
    if "Node" in kinds and (lost := lost_nodes(view)) is not None:
        yield lost
    if contradicted := out_of_reach(view):
        what = told(contradicted)
        yield Gap((), what, "labels of nodes or volumes are not those of the cluster", is_grave=True, doubt=what)
    yield from _of_claims(view, kinds, has_empty_list=has_empty_list)
    yield from _of_volumes(view, kinds)
    if "PodDisruptionBudget" not in kinds:
        lacks = "no disruption budgets, or the cluster has none"
        yield Gap(("pdb",), lacks, "there are none; any that there are may hold more", may_be_none=True)
    yield from _of_controllers(view, kinds)
    terms = [term for pod in view.pods for term in (*pod.constraints.affinity, *pod.constraints.anti_affinity)]
    if "Namespace" not in kinds and any(term.namespace_selector is not None for term in terms):
        yield Gap(("ns",), "no namespaces, though pods select some by their labels", "namespaces have no labels")


def one_namespace(view: ClusterView) -> Gap | None:
    """Pods of one namespace on several nodes, none of which comes with its node: `-A` was forgotten.

    Every cluster runs something in kube-system, or a DaemonSet or a static pod on its nodes, but a small one that
    somebody wrote by hand: of that it is only said, unless the dump itself has kube-system or a control plane.
    """
    spaces = {pod.namespace for pod in view.pods}
    if len(spaces) != 1 or SYSTEM in spaces or any(pod.is_daemon or pod.is_mirror for pod in view.pods):
        return None
    only, count = min(spaces), len(view.nodes)
    is_certain = SYSTEM in view.namespaces or any(_CONTROL_PLANE in node.labels for node in view.nodes)
    if count < 2:
        return None
    if not is_certain and count < SEVERAL_NODES:
        told = "the others have none; any that they have use resources of nodes"
        return Gap(tuple(ALL.split(",")), f"pods of namespace {only} alone", told, may_be_none=True)
    return Gap(
        tuple(ALL.split(",")),
        f"pods of namespace {only} alone, none of {SYSTEM}, no DaemonSet's and no static one on {count} nodes",
        "all other namespaces count as empty, and nodes that are busy look idle. Was -A forgotten?",
        is_grave=True,
        doubt=f"the dump has the pods of one namespace only ({only})",
    )


_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
NAMED = 6
"""Nodes that are named in a line."""
MOST_LOST = 0.02
"""Of all pods, how many on unknown nodes leave an answer what it is."""


def lost_nodes(view: ClusterView) -> Gap | None:
    """Pods run on nodes that the dump does not have. A few may wait for Kubernetes to clear them away after a node."""
    there = {node.name for node in view.nodes}
    work = [pod.node for pod in view.pods if pod.is_work and not pod.is_terminating]  # not what ends with its node
    lost = [node for node in work if node is not None and node not in there]
    if not lost:
        return None
    nodes = sorted(set(lost))
    more = f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else ""
    it = "that node" if len(nodes) == 1 else "these nodes"
    what = f"{_pods(len(lost))} on {'1 node' if len(nodes) == 1 else f'{len(nodes)} nodes'}"
    return Gap(
        ("nodes",),
        f"{what} that it does not have: {', '.join(nodes[:NAMED])}{more}",
        f"neither the pods nor {it} are in any figure",
        is_grave=True,
        doubt=f"{what} that the dump does not have are left out" if len(lost) > MOST_LOST * len(work) else "",
    )


STUCK = "it is unknown where these pods could run: each stays on its node"


def _of_claims(view: ClusterView, kinds: Collection[str], *, has_empty_list: bool) -> Iterator[Gap]:
    """What runs has its claims, whatever the dump says. What waits may do so for want of one: that is told only where
    nobody has asked for claims.
    """
    there = {claim.key for claim in view.volumes.claims}
    lost = [pod for pod in view.pods if any(f"{pod.namespace}/{name}" not in there for name in pod.constraints.claims)]
    running = sum(pod.node is not None for pod in lost)
    is_asked = has_empty_list or "PersistentVolumeClaim" in kinds
    if running and has_empty_list and "PersistentVolumeClaim" not in kinds:
        lacks = f"no volume claims of {_pods(running)} with volumes, and a List without items"
        yield Gap((), lacks, f"{STUCK}. Claims are in namespaces: kubectl get pvc -A", is_grave=True)
    elif running:
        yield Gap(("pvc", "pv", "sc"), f"no volume claims of {_pods(running)} with volumes", STUCK, is_grave=True)
    elif lost and not is_asked:
        lacks = f"no volume claims of {_pods(len(lost))} that {'waits' if len(lost) == 1 else 'wait'}"
        yield Gap(("pvc", "pv", "sc"), lacks, "these pods are placed nowhere", is_grave=True, of_waiting=True)


def _of_volumes(view: ClusterView, kinds: Collection[str]) -> Iterator[Gap]:
    claims = {claim.key: claim for claim in view.volumes.claims}
    used = {pod.key: [f"{pod.namespace}/{name}" for name in pod.constraints.claims] for pod in view.pods}
    there = {volume.name for volume in view.volumes.persistent}
    bound = {key for key, claim in claims.items() if claim.volume is not None and claim.volume not in there}
    lost = sum(not bound.isdisjoint(keys) for keys in used.values())
    if lost:
        lacks = f"no volumes for the claims of {_pods(lost)}"
        yield Gap(("pv",), lacks, STUCK, is_grave=True)
    classes = {storage.name for storage in view.volumes.classes}
    open_ = {
        key for key, claim in claims.items() if claim.volume is None and (claim.storage_class or "") not in classes
    }
    lost = sum(not open_.isdisjoint(keys) for keys in used.values())
    if lost:
        yield Gap(
            ("sc",),
            f"no storage classes for the claims of {_pods(lost)}",
            "these pods are placed nowhere",
            is_grave=True,
            of_waiting=True,
        )
    if "CSINode" not in kinds and any(volume.driver is not None for volume in view.volumes.persistent):
        yield Gap(("csinodes",), "no CSINodes, though volumes are attached", "a machine attaches any number of volumes")


def _of_controllers(view: ClusterView, kinds: Collection[str]) -> Iterator[Gap]:
    """Pods tell their controllers; only those objects tell how many pods are wanted, and by when a Job has to end."""
    owners = {pod.owner.kind for pod in view.pods if pod.owner is not None and not pod.is_mirror}
    short = {"ReplicaSet": "rs", "ReplicationController": "rc", "StatefulSet": "sts"}
    lost = [kind for kind in short if kind in owners and kind not in kinds]
    if lost:
        lacks = " and ".join(f"no {kind}s" for kind in lost)
        yield Gap(
            tuple(short[kind] for kind in lost), lacks, "each has as many pods as it wants (cleaning.minReplicaCount)"
        )
    if "DaemonSet" in owners and "DaemonSet" not in kinds:
        assumed = "a new machine runs of each what its running pods request"
        yield Gap(("ds",), "no DaemonSets", assumed)
    if "Job" in owners and "Job" not in kinds:
        yield Gap(("jobs",), "no Jobs", "none has a deadline that limits how long its pods run")


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
