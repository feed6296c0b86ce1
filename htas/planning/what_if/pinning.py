"""Pods that name the nodes they may run on (by hostname, or by a volume that is on one): no machine bought anew is one
of these, and no rule of draining speaks of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from htas.model.constraints import Constraints, NodeSelectorTerm
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.pods import Pod
from htas.model.selectors import Operator, Requirement
from htas.model.volumes import PersistentVolume, VolumeClaim, Volumes

PINNED = "PinnedToNode"
"""How that cause is called beside the rules of draining."""
_NAME = "metadata.name"


@dataclass(frozen=True, slots=True)
class NamedNodes:
    """The nodes a pod names that are there, and by what it names them."""

    nodes: frozenset[str]
    by: str


class Pins:
    """Who is pinned to which nodes of a cluster."""

    def __init__(self, nodes: Iterable[Node], volumes: Volumes) -> None:
        nodes = list(nodes)
        self._names = {node.name for node in nodes}
        self._hosts = {node.labels.get(HOSTNAME_LABEL, node.name): node.name for node in nodes}
        self._claims: Mapping[str, VolumeClaim] = {each.key: each for each in volumes.claims}
        self._volumes: Mapping[str, PersistentVolume] = {each.name: each for each in volumes.persistent}

    def of(self, pod: Pod) -> NamedNodes | None:
        """None: it may run on nodes that it does not name, or belongs to its node."""
        if not pod.is_work:
            return None
        wanted = pod.constraints
        for key, value in wanted.node_selector:
            if key == HOSTNAME_LABEL:
                return NamedNodes(self._there((value,)), "nodeSelector")
        named = self._named(wanted.node_affinity)
        if named is not None:
            return NamedNodes(named, "node affinity")
        for claim in wanted.claims:
            named = self._of_claim(pod.namespace, claim)
            if named is not None:
                return NamedNodes(named, f"its volume {claim}")
        return None

    def unpinned(self, pod: Pod) -> Pod:
        """The pod as it would be if it named no node, and its data were within reach of all."""
        if self.of(pod) is None:
            return pod
        wanted = pod.constraints
        return msgspec.structs.replace(
            pod,
            constraints=msgspec.structs.replace(
                without_names(wanted),
                claims=tuple(claim for claim in wanted.claims if self._of_claim(pod.namespace, claim) is None),
            ),
        )

    def _of_claim(self, namespace: str, name: str) -> frozenset[str] | None:
        claim = self._claims.get(f"{namespace}/{name}")
        volume = self._volumes.get(claim.volume or "") if claim is not None else None
        return self._named(volume.node_affinity) if volume is not None else None

    def _named(self, terms: tuple[NodeSelectorTerm, ...] | None) -> frozenset[str] | None:
        """The nodes that terms name; None: some term, or the lack of terms, leaves others open."""
        if not terms:
            return None
        each = [self._of_term(term) for term in terms]
        return frozenset().union(*(names for names in each if names is not None)) if None not in each else None

    def _of_term(self, term: NodeSelectorTerm) -> frozenset[str] | None:
        named = [self._there(part.values) for part in (*term.expressions, *term.fields) if self._names_nodes(part)]
        return frozenset.intersection(*named) if named else None

    def _names_nodes(self, part: Requirement) -> bool:
        """A hostname, or what a driver of volumes on nodes calls it (topology.topolvm.io/node: worker-1)."""
        if part.operator is not Operator.IN:
            return False
        known = all(value in self._hosts or value in self._names for value in part.values)
        return part.key in (HOSTNAME_LABEL, _NAME) or (known and bool(part.values))

    def _there(self, values: Iterable[str]) -> frozenset[str]:
        found = (self._hosts.get(value, value) for value in values)
        return frozenset(name for name in found if name in self._names)


def without_names(wanted: Constraints) -> Constraints:
    """Constraints without the nodes that their selector and their affinity name."""
    selector = tuple((key, value) for key, value in wanted.node_selector if key != HOSTNAME_LABEL)
    if wanted.node_affinity is None:
        return msgspec.structs.replace(wanted, node_selector=selector)
    terms = tuple(
        NodeSelectorTerm(
            tuple(part for part in term.expressions if part.key != HOSTNAME_LABEL or part.operator is not Operator.IN),
            tuple(part for part in term.fields if part.key != _NAME or part.operator is not Operator.IN),
        )
        for term in wanted.node_affinity
    )
    is_open = any(not (term.expressions or term.fields) for term in terms)  # a term that named a node and no more
    return msgspec.structs.replace(
        wanted, node_selector=selector, node_affinity=None if is_open and wanted.node_affinity else terms
    )


def told(pod: Pod, pin: NamedNodes) -> str:
    """Of a pod that may run on one node alone, or on some that are there, in words."""
    if len(pin.nodes) > 1:
        return f"{pod.key} may run on {len(pin.nodes)} nodes of today alone, which it names ({pin.by})"
    return f"{pod.key} is pinned to its node by hostname ({pin.by})"
