"""What the tables of this folder have in common: small clusters in a few words, and one filter asked about them.

Situations and verdicts follow kube-scheduler's own tables of the plugins named in each module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from htas.model.constraints import Constraints, NodeSelectorTerm, PodAffinityTerm, SpreadConstraint
from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from htas.model.pods import Pod
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.planning.cluster.feasibility.world import Filter
from tests.builders import labels_are, make_node, make_pod, opened, running

ZONE, HOST, REGION = ZONE_LABEL, HOSTNAME_LABEL, "topology.kubernetes.io/region"
FOO, BAR = labels_are(foo="yes"), labels_are(bar="yes")


def refusals(refuse: Filter, nodes: Iterable[Node], incoming: Pod, placed: Iterable[Pod] = (), **world: Any) -> Any:
    """{node: reason} of the nodes one filter refuses; a node named twice would be counted twice, so it is an error."""
    opening = opened(nodes, [*placed, incoming], **world)
    cls = opening.book.class_of(incoming)
    found: dict[str, str] = {}
    for refusal in refuse(opening.sim.world, cls, opening.sim.all_rows):
        for row in refusal.where.nonzero()[0]:
            name = opening.sim.table.nodes[row].name
            assert name not in found, f"{name} is refused for {found[name]!r} and {refusal.reason!r}"
            found[name] = refusal.reason
    return found


def pod(*labels: str, **fields: Any) -> Pod:
    """A pod with the labels named set to "yes"; fields of Constraints may be given beside those of Pod."""
    constraints = {key: fields.pop(key) for key in Constraints.__struct_fields__ if key in fields}
    labelled = {**dict.fromkeys(labels, "yes"), **fields.pop("labels", {})}
    return make_pod(fields.pop("name", "incoming"), labels=labelled, constraints=Constraints(**constraints), **fields)


def on(node: str, *labels: str, **fields: Any) -> Pod:
    """A pod that runs on a node."""
    return running(pod(*labels, **{"name": f"on-{node}-{'-'.join(labels)}", **fields}), node)


def crowd(nodes: str, *labels: str) -> list[Pod]:
    """One running pod per letter: "aab" is two pods on node a and one on b."""
    return [on(node, *labels, name=f"{'-'.join(labels)}-{i}") for i, node in enumerate(nodes)]


def zoned(**zones: str) -> list[Node]:
    """Nodes by name with their zone ("": without the label)."""
    return [make_node(name, labels={ZONE: zone} if zone else {}) for name, zone in zones.items()]


def two_zones() -> list[Node]:
    """Nodes a and b in zone 1, x and y in zone 2."""
    return zoned(a="1", b="1", x="2", y="2")


def spread(key: str = ZONE, max_skew: int = 1, selector: LabelSelector | None = FOO, **fields: Any) -> SpreadConstraint:
    return SpreadConstraint(key, max_skew, selector, **fields)


def term(selector: LabelSelector | None = FOO, key: str = ZONE, **fields: Any) -> PodAffinityTerm:
    return PodAffinityTerm(key, selector, **fields)


def has(key: str) -> LabelSelector:
    return LabelSelector((Requirement(key, Operator.EXISTS),))


def requires(key: str, operator: Operator, *values: str) -> Requirement:
    return Requirement(key, operator, values)


def expressions(*items: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(expressions=items)


def named(*names: str, operator: Operator = Operator.IN) -> NodeSelectorTerm:
    return NodeSelectorTerm(fields=(Requirement("metadata.name", operator, names),))


def all_of(names: str, reason: str) -> dict[str, str]:
    """Every node of a string of one-letter names, refused for one reason."""
    return dict.fromkeys(names, reason)
