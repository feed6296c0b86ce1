"""The filters once more, plainly: one pod, one node at a time, as the Kubernetes documentation defines them.

Slow on purpose and written without the columns, so that the two can be held against each other.
Sources: kubernetes.io, Concepts, Scheduling: "Assigning Pods to Nodes", "Taints and Tolerations", "Pod Topology Spread
Constraints".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from htas.model.constraints import NodeSelectorTerm, PodAffinityTerm, SpreadConstraint, Taint, Toleration
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.selectors import LabelSelector, Operator, Requirement

Placed = Sequence[tuple[Pod, Node]]


def is_tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    for t in tolerations:
        keys_match = t.key == "" or t.key == taint.key
        effects_match = t.effect is None or t.effect == taint.effect
        values_match = t.operator == "Exists" or (t.operator == "Equal" and t.value == taint.value)
        if keys_match and effects_match and values_match:
            return True
    return False


def tolerates_node(pod: Pod, node: Node) -> bool:
    hard = [taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(is_tolerated(taint, pod.constraints.tolerations) for taint in hard)


def requirement_holds(requirement: Requirement, values: Mapping[str, str]) -> bool:
    key, wanted = requirement.key, requirement.values
    if requirement.operator is Operator.EXISTS:
        return key in values
    if requirement.operator is Operator.DOES_NOT_EXIST:
        return key not in values
    if requirement.operator is Operator.IN:
        return key in values and values[key] in wanted
    if requirement.operator is Operator.NOT_IN:
        return key not in values or values[key] not in wanted
    try:
        there, bound = int(values[key]), int(wanted[0])
    except (KeyError, ValueError):
        return False
    return there > bound if requirement.operator is Operator.GT else there < bound


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.expressions and not term.fields:
        return False
    by_label = all(requirement_holds(r, node.labels) for r in term.expressions)
    return by_label and all(requirement_holds(r, {"metadata.name": node.name}) for r in term.fields)


def affinity_admits(pod: Pod, node: Node) -> bool:
    selected = all(node.labels.get(key) == value for key, value in pod.constraints.node_selector)
    terms = pod.constraints.node_affinity
    return selected and (terms is None or any(term_matches(term, node) for term in terms))


def selects(selector: LabelSelector | None, pod: Pod) -> bool:
    return selector is not None and all(requirement_holds(r, pod.labels) for r in selector.requirements)


def counts_node(pod: Pod, constraint: SpreadConstraint, node: Node) -> bool:
    """Whether a node's domain and pods count for a constraint."""
    has_keys = all(other.topology_key in node.labels for other in pod.constraints.spread)
    by_affinity = not constraint.honors_node_affinity or affinity_admits(pod, node)
    by_taints = not constraint.honors_node_taints or tolerates_node(pod, node)
    return has_keys and by_affinity and by_taints


def spread_verdict(pod: Pod, node: Node, nodes: Sequence[Node], placed: Placed) -> str | None:
    """None, "missing" or "skewed"."""
    for constraint in pod.constraints.spread:
        key = constraint.topology_key
        if key not in node.labels:
            return "missing"
        matching = {n.labels[key]: 0 for n in nodes if counts_node(pod, constraint, n)}
        for other, where in placed:
            is_counted = other.namespace == pod.namespace and not other.is_terminating
            if is_counted and selects(constraint.selector, other) and counts_node(pod, constraint, where):
                matching[where.labels[key]] += 1
        global_minimum = min(matching.values()) if len(matching) >= (constraint.min_domains or 1) else 0
        own = 1 if selects(constraint.selector, pod) else 0
        if matching.get(node.labels[key], 0) + own - global_minimum > constraint.max_skew:
            return "skewed"
    return None


def term_takes(term: PodAffinityTerm, owner: Pod, other: Pod, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a pod is one that an affinity term of another pod speaks of."""
    by_name = other.namespace in term.namespaces
    chosen = term.namespace_selector
    by_label = chosen is not None and all(
        requirement_holds(r, namespaces[other.namespace]) for r in chosen.requirements
    )
    is_own = not term.namespaces and chosen is None and other.namespace == owner.namespace
    return (by_name or by_label or is_own) and selects(term.selector, other)


def share(one: Node, other: Node, key: str) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def inter_pod_verdict(pod: Pod, node: Node, placed: Placed, namespaces: Mapping[str, Mapping[str, str]]) -> str | None:
    """None, "far", "near" or "unwilling"."""
    wants = pod.constraints.affinity

    def is_friend(other: Pod) -> bool:
        return all(term_takes(term, pod, other, namespaces) for term in wants)

    friends = [where for other, where in placed if wants and is_friend(other)]
    keys = {term.topology_key for term in wants}
    alone = not any(key in where.labels for where in friends for key in keys)
    if not all(key in node.labels for key in keys):
        return "far"
    beside = all(any(share(where, node, key) for where in friends) for key in keys)
    if wants and not beside and not (alone and is_friend(pod)):
        return "far"
    for other, where in placed:
        for term in pod.constraints.anti_affinity:
            if term_takes(term, pod, other, namespaces) and share(where, node, term.topology_key):
                return "near"
    for other, where in placed:
        for term in other.constraints.anti_affinity:
            if term_takes(term, other, pod, namespaces) and share(where, node, term.topology_key):
                return "unwilling"
    return None
