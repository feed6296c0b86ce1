"""Room that is left but that no pod can use.

The document minimises the fragmentation of a node but its formula is missing from the print. By its text it is what
makes it harder "for future pods to be accommodated". Future pods are like those there are, so here it is the share of
a node, mean of cpu and memory, that is free and still unused once the node is filled up with pods of one size, the
mean over the sizes of the services' pods. With pods of 1 and of 2 cores, two nodes with a core free each are more
fragmented than one with two: the second size can use neither.
"""

from __future__ import annotations

from collections import Counter

from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.state import CLOUD, EdgeState, Size


class Fragmentation:
    """Fragmentation of a state's nodes for any room they might have left; what was worked out once is remembered."""

    def __init__(self, state: EdgeState) -> None:
        sizes = Counter(pod.size for pod in state.pods if pod.where != CLOUD or pod.allowed)
        pods = sum(sizes.values())
        self._sizes = [(size, number / pods) for size, number in sorted(sizes.items())]
        self._totals = [node.total for node in state.nodes]
        self._known: dict[tuple[Size, Size], float] = {}

    def of(self, node: int, free: Size) -> float:
        """The fragmentation of an edge node with so much left, 0 to 1."""
        key = (self._totals[node], free)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = sum(share * _unused(size, free, key[0]) for size, share in self._sizes)
        return known

    def total(self, layout: Layout) -> float:
        return sum(self.of(node, free) for node, free in enumerate(layout.free))


def _unused(size: Size, free: Size, total: Size) -> float:
    """The share of a node that pods of one size leave free, the mean of cpu and memory."""
    many = max(0, min((there // asked for asked, there in zip(size, free, strict=True) if asked), default=0))
    rest = (max(0, there - many * asked) for asked, there in zip(size[:2], free[:2], strict=True))
    return sum(left / all_of_it for left, all_of_it in zip(rest, total[:2], strict=True) if all_of_it) / 2


def node_fragmentation(state: EdgeState) -> list[float]:
    """Of each edge node, the share of it, 0 to 1, that is free and yet of no use to the services' pods."""
    fragmentation = Fragmentation(state)
    return [fragmentation.of(number, node.free) for number, node in enumerate(state.nodes)]
