"""Agents of operators: one pod on each node, made for that node by a custom controller, such as Longhorn's instance
managers. They come with a node and end with it, as a DaemonSet's pods do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from htas.model.constraints import untolerated
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.pods import Owner, Phase, Pod, WorkKind
from htas.planning.cluster.daemon_sets import COUNTED, FEWEST_NODES
from htas.planning.what_if.pinning import without_names

PER_NODE = "per-node/"
"""How the DaemonSets are named that stand for agents; a slash is in no real name."""


class Agents(msgspec.Struct, frozen=True):
    """Agents of one kind: the kind of their controllers, a namespace, and how many there are."""

    kind: str
    namespace: str
    pods: int


def as_daemons(pods: Iterable[Pod], workers: Sequence[Node]) -> tuple[list[Pod], tuple[Agents, ...]]:
    """The pods, agents among them made those of a DaemonSet, and which kinds of agents there are.

    The proof is that of custom DaemonSets: one on each of FEWEST_NODES nodes or more, half of those whose taints they
    tolerate. Besides each is the only pod of its controller, runs on, and names its node in its labels or selector: a
    virtual machine or a replica with an object of its own does not.
    """
    pods = list(pods)
    nodes = {node.name: node for node in workers}
    owned: dict[tuple[str, str, str, str], int] = defaultdict(int)
    for pod in pods:
        if pod.owner is not None:
            owned[pod.namespace, pod.owner.kind, pod.owner.name, pod.owner.uid] += 1
    alike: dict[tuple[str, str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.owner is None or pod.node not in nodes or not _may_be_one(pod, nodes[pod.node]):
            continue
        if owned[pod.namespace, pod.owner.kind, pod.owner.name, pod.owner.uid] == 1:
            alike[pod.namespace, pod.owner.kind, pod.image].append(pod)
    found = {key: mine for key, mine in alike.items() if _is_everywhere(mine, workers)}
    owners = {
        pod.key: Owner("DaemonSet", f"{PER_NODE}{kind}-{number}")
        for number, ((_, kind, _), mine) in enumerate(sorted(found.items()))
        for pod in mine
    }
    return [_of_daemon_set(pod, owners[pod.key]) if pod.key in owners else pod for pod in pods], tuple(
        Agents(kind, namespace, len(mine)) for (namespace, kind, _), mine in sorted(found.items())
    )


def _may_be_one(pod: Pod, node: Node) -> bool:
    assert pod.owner is not None
    is_custom = pod.owner.kind not in COUNTED and pod.is_work
    runs_on = pod.kind is WorkKind.SERVICE and pod.phase is Phase.RUNNING
    names = {node.name, node.labels.get(HOSTNAME_LABEL, node.name)}
    selected = (value for key, value in pod.constraints.node_selector if key == HOSTNAME_LABEL)
    return is_custom and runs_on and not names.isdisjoint((*pod.labels.values(), *selected))


def _is_everywhere(pods: Sequence[Pod], workers: Iterable[Node]) -> bool:
    on = {pod.node for pod in pods}
    if len(on) < max(FEWEST_NODES, len(pods)):  # two on a node: they are work
        return False
    tolerations = pods[0].constraints.tolerations
    takers = sum(node.name in on or untolerated(node.taints, tolerations) is None for node in workers)
    return 2 * len(on) >= takers


def _of_daemon_set(pod: Pod, owner: Owner) -> Pod:
    return msgspec.structs.replace(pod, owner=owner, constraints=without_names(pod.constraints))
