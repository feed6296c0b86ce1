"""Zones: who asks for some, and which flavours say in which they are sold.

A machine that is bought without a zone may come up in any: a pod that spreads over zones, or keeps apart by them, is
not planned onto it.
"""

from __future__ import annotations

from collections.abc import Iterable

from htas.model.constraints import Constraints, NodeSelectorTerm
from htas.model.nodes import ZONE_LABEL, Node
from htas.model.selectors import Operator


def asks_for_zones(wanted: Constraints) -> bool:
    """Whether a selector, an affinity, an anti-affinity or a hard spread goes by zones."""
    terms = wanted.node_affinity or ()
    return (
        any(key == ZONE_LABEL for key, _ in wanted.node_selector)
        or any(part.key == ZONE_LABEL for term in terms for part in term.expressions)
        or any(spread.topology_key == ZONE_LABEL for spread in wanted.spread)
        or any(term.topology_key == ZONE_LABEL for term in (*wanted.affinity, *wanted.anti_affinity))
    )


def zones_named(wanted: Constraints) -> frozenset[str]:
    """The zones that a selector or an affinity names; empty: it leaves open which."""
    by_selector = frozenset(value for key, value in wanted.node_selector if key == ZONE_LABEL)
    by_term = [_named_by(term) for term in wanted.node_affinity or ()]
    # One term is enough for a pod: one that names none leaves open which.
    by_affinity = frozenset[str]().union(*by_term) if all(by_term) else frozenset[str]()
    return (by_selector & by_affinity or by_selector) if by_selector else by_affinity


def _named_by(term: NodeSelectorTerm) -> frozenset[str]:
    named = [
        frozenset(part.values) for part in term.expressions if part.key == ZONE_LABEL and part.operator is Operator.IN
    ]
    return named[0].intersection(*named[1:]) if named else frozenset()


def zones_of(nodes: Iterable[Node]) -> tuple[str, ...]:
    """The zones that nodes are in, by name."""
    return tuple(sorted({zone for node in nodes if (zone := node.labels.get(ZONE_LABEL)) is not None}))
