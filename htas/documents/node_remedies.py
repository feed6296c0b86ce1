"""What would change that a node is kept, of one node: with its name, and those of the pods that hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from htas.documents.remedies import Meaning, meaning
from htas.documents.words import counted
from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT, Node
from htas.model.pods import MAY_MIGRATE, SAFE_TO_EVICT, Pod
from htas.model.policy import Policy
from htas.model.reasons import Blocking, Kept
from htas.model.snapshot import ClusterSnapshot
from htas.planning.disrupt.cleaning.obstacles import of_pods

MOST_RULES = 3
"""So many rules are told apart; who lifted them is told the others."""
OF_CONTROL_PLANE = Meaning("It is in the control plane, which HTAS does not touch.")
OF_RULES: Mapping[str, str] = {
    Blocking.SERVICE_NOT_OPTED_IN: f"kubectl annotate pod {{pod}} {MAY_MIGRATE}=true --overwrite, and likewise in its"
    " controller's template; or cleaning.moveServices: true",
    Blocking.DO_NOT_DISRUPT: "kubectl annotate pod {pod} {keys}, or wait until it completes",
    Blocking.NOT_SAFE_TO_EVICT: "kubectl annotate pod {pod} {keys}, and likewise in its controller's template",
    Blocking.LOCAL_STORAGE_REQUESTED: f"where its data may be lost, kubectl annotate pod {{pod}} {SAFE_TO_EVICT}=true"
    " --overwrite; or cleaning.skipLocalStorage: false",
    Blocking.UNMOVABLE_KUBE_SYSTEM_POD: "a disruption budget for it, or cleaning.skipSystemPods: false",
    Blocking.MIN_REPLICAS_REACHED: "more replicas of it, or a lower cleaning.minReplicaCount",
    Blocking.NOT_ENOUGH_PDB: "a disruption budget that allows more, which often takes one replica more",
    Blocking.NOT_MOVABLE: "let it be evicted instead (cleaning.migration: evict)",
    Blocking.NOT_REPLICATED: "run it under a controller, such as a Deployment or a Job, or delete it",
    Blocking.UNKNOWN_CONTROLLER: "where its controller recreates it, cleaning.skipCustomControllerPods: false",
    Kept.BLOCKED_BY_POD: "time: it is terminating",
    Kept.BLOCKED_BY_ON_COMPLETION_POD: "time: it runs to completion first",
}
_FREE = {DO_NOT_DISRUPT: "false", KARPENTER_DO_NOT_DISRUPT: "false", MAY_MIGRATE: "true", SAFE_TO_EVICT: "true"}
"""What a pod's annotations say that hold it not."""
_SAYS: Mapping[str, tuple[str, ...]] = {
    Blocking.DO_NOT_DISRUPT: (DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT, MAY_MIGRATE),
    Blocking.NOT_SAFE_TO_EVICT: (SAFE_TO_EVICT,),
}
"""By rule the annotations that it goes by."""


def meaning_of_node(
    why: str, message: str, node: Node, pods: Sequence[Pod], snapshot: ClusterSnapshot, policy: Policy
) -> Meaning:
    """Of the reason why a node is kept, or goes; of one that pods hold what to do about each of these."""
    if why == Kept.NOT_AUTOSCALED and node.is_control_plane:
        return OF_CONTROL_PLANE
    said = meaning(why)
    if why in (Kept.DO_NOT_DISRUPT, Kept.SCALE_DOWN_DISABLED) and node.held_by is not None:
        remedy = f"kubectl annotate node {node.name} {node.held_by}-"
    elif why == Kept.BLOCKED_BY_POD:
        remedy = _of_pods(message, node, pods, snapshot, policy) or said.remedy
    else:
        remedy = said.remedy.replace(" NODE", f" {node.name}")
    return msgspec.structs.replace(said, remedy=remedy)


def _of_pods(message: str, node: Node, pods: Sequence[Pod], snapshot: ClusterSnapshot, policy: Policy) -> str:
    """By rule, that of the message first: the pod that is named there, else its first, and how many others it holds."""
    holding: dict[str, list[Pod]] = {}
    for pod, rule, _ in of_pods(pods, node, snapshot, policy):
        holding.setdefault(rule, []).append(pod)
    rules = sorted(holding, key=lambda rule: not message.startswith(f"{rule}:"))
    told, named = [], set(message.replace(":", " ").split())
    if message.startswith(f"{Blocking.NOT_ENOUGH_PDB}:") and Blocking.NOT_ENOUGH_PDB not in holding:
        told.append(f"{OF_RULES[Blocking.NOT_ENOUGH_PDB].replace('more', 'so many at once', 1)}.")
    for rule in rules[:MOST_RULES]:
        held = sorted({pod.key: pod for pod in holding[rule]}.values(), key=lambda pod: pod.key not in named)
        others = f" and {counted(len(held) - 1, 'other')}" if len(held) > 1 else ""
        first = held[0]
        what = _remedy(rule, first)
        told.append(f"{first.key}{others} ({rule}): {what}.")
    return " ".join(told)


def _remedy(rule: str, pod: Pod) -> str:
    if rule == Blocking.NOT_SAFE_TO_EVICT and pod.constraints.unsupported:
        return f"nothing while it requests {', '.join(pod.constraints.unsupported)}, which HTAS does not support"
    keys = [key for key in _SAYS[rule] if pod.disruption.get(key, _FREE[key]) != _FREE[key]] if rule in _SAYS else []
    told = " ".join(f"{key}-" for key in keys)
    return OF_RULES.get(rule, "see what is explained").format(pod=f"{pod.name} -n {pod.namespace}", keys=told)
