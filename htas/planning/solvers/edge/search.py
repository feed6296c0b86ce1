"""What every search on one state needs: qualities, fragmentation, bounds of the work, and what is still allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from htas.model.edge import EdgePolicy
from htas.planning.cluster.classes import Ints
from htas.planning.solvers.edge.state import CLOUD, EdgeState, Layout, Size, kinds_of, summed

# The quality of service that is maximised, and what a pod's size is measured in (KubeDSM, equations 1-4, 10, 11).

TOLERANCE = 1e-9
"""Shares are floating-point numbers: 3 pods of 10 meet a target of 0.3 though 3 / 10 - 0.3 may come out below 0."""


def worth(above: float, policy: EdgePolicy) -> float:
    """F (equation 3) of Δ: the share of a service's pods on the edge, less its target."""
    return policy.alpha * above if above < -TOLERANCE else policy.beta * above + policy.gamma


def service_quality(near: int, pods: int, target: float, policy: EdgePolicy) -> float:
    """QoS(i, u) (equations 2 and 4) of a service with `near` of its `pods` on the edge; 0 for one without pods."""
    return worth(near / pods - target, policy) if pods else 0.0


class Qualities:
    """QoS(i, u) of every service for every number of its pods on the edge, worked out once for a state."""

    def __init__(self, state: EdgeState, policy: EdgePolicy) -> None:
        self.count = [0] * len(state.services)
        for pod in state.pods:
            self.count[pod.service] += 1
        self.of: list[list[float]] = [
            [service_quality(near, pods, service.target, policy) for near in range(pods + 1)]
            for service, pods in zip(state.services, self.count, strict=True)
        ]

    def total(self, near: Sequence[int]) -> float:
        """QoS(u) (equation 1) with so many pods of each service on the edge."""
        return sum(of[there] for of, there in zip(self.of, near, strict=True))

    def gain(self, service: int, near: int, pods: int) -> float:
        """What so many more pods of a service on the edge (fewer, where negative) add to QoS(u)."""
        of = self.of[service]
        return of[near + pods] - of[near]


def service_qualities(state: EdgeState, policy: EdgePolicy) -> list[float]:
    """QoS(i, u) of each service as it is; 0 for one without pods."""
    near = Layout(state).near
    return [of[there] for of, there in zip(Qualities(state, policy).of, near, strict=True)]


def edge_ratios(state: EdgeState) -> list[float]:
    """The share of each service's pods that are on the edge, 0 to 1; 1 for one without pods."""
    count, near = [0] * len(state.services), [0] * len(state.services)
    for pod in state.pods:
        count[pod.service] += 1
        near[pod.service] += pod.where != CLOUD
    return [there / pods if pods else 1.0 for there, pods in zip(near, count, strict=True)]


def edge_total(state: EdgeState) -> Size:
    """M_CPU and M_MEM: what all edge nodes offer together."""
    width = len(state.nodes[0].total) if state.nodes else 2
    return summed((node.total for node in state.nodes), width)


def share(size: Size, total: Size) -> float:
    """size(pod) (equation 11): the geometric mean of what it takes of the edge's cpu and of its memory.

    A pod that asks for none of one of them would weigh nothing and come before all others, so an amount counts at
    least as a millionth of the edge.
    """
    cpu, memory = (max(asked / max(there, 1), 1e-6) for asked, there in zip(size[:2], total[:2], strict=True))
    return sqrt(cpu * memory)


# Room that is left but that no pod can use.
#
# The document minimises the fragmentation of a node but its formula is missing from the print. By its text it is what
# makes it harder "for future pods to be accommodated". Future pods are like those there are, so here it is the share of
# a node, mean of cpu and memory, that is free and still unused once the node is filled up with pods of one size, the
# mean over the sizes of the services' pods. With pods of 1 and of 2 cores, two nodes with a core free each are more
# fragmented than one with two: the second size can use neither.


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


# What every search on one state needs, worked out once: qualities, fragmentation, kinds and what is still allowed.

FOR_ROOM, FOR_TIDYING = 20, 5
"""Parts of `subset_limit` that reorderings may try: each costs a matching, some 20 times what a subset of pods does."""


@dataclass(slots=True)
class SearchEffort:
    """Pods and nodes that may still be looked at. It is counted and not timed: the same question has the same answer.

    All searches that make one suggestion share one.
    """

    left: int
    spent: int = 0

    def spend(self, looks: int) -> bool:
        """Whether there was some left; then so much of it is used up."""
        if self.left <= 0:
            return False
        self.left -= looks
        self.spent += looks
        return True


class EdgeSearch:
    """A state, the policy, and `tries`: how many subsets of pods to reorder may still be looked at."""

    def __init__(self, state: EdgeState, policy: EdgePolicy, work: SearchEffort | None = None) -> None:
        self.state, self.policy = state, policy
        self.work = work or SearchEffort(policy.work_limit)
        self.qualities = Qualities(state, policy)
        self.fragmentation = Fragmentation(state)
        self.tries = policy.subset_limit // FOR_ROOM
        joined = frozenset[int]().union(*{pod.allowed for pod in state.pods if pod.may_move})
        self.on_edge: dict[int, list[int]] = {}
        """Running pods that may be moved, by service; what leaves a node that nobody may join helps none."""
        for number, pod in enumerate(state.pods):
            if pod.may_move and pod.where in joined:
                self.on_edge.setdefault(pod.service, []).append(number)
        total = edge_total(state)
        self._shares = {size: share(size, total) for size in {pod.size for pod in state.pods}}
        self._losses: dict[tuple[int, int, int], float] = {}

    def share(self, pod: int) -> float:
        """size(pod), equation 11."""
        return self._shares[self.state.pods[pod].size]

    def quality(self, layout: Layout) -> float:
        return self.qualities.total(layout.near)

    def loss(self, service: int, near: int, most: int) -> float:
        """What a pod of a service loses that leaves, on the mean over it and the next ones, up to `most` of them.

        A service whose target will be missed anyway loses little more by each further pod: equation 12 alone sees the γ
        of the first and not what follows.
        """
        key = service, near, most
        if key not in self._losses:
            gain = self.qualities.gain
            self._losses[key] = min(-gain(service, near, -many) / many for many in range(1, most + 1))
        return self._losses[key]

    def service(self, kind: Sequence[int]) -> int:
        return self.state.pods[kind[0]].service

    def qualities_with(self, near: Sequence[int], kinds: Sequence[Sequence[int]], counts: Ints) -> NDArray[np.float64]:
        """QoS(u) with so many pods more of each kind on the edge, for every row of `counts`."""
        added: Ints = np.zeros((len(counts), len(near)), dtype=np.int64)
        for number, kind in enumerate(kinds):
            added[:, self.service(kind)] += counts[:, number]
        total: NDArray[np.float64] = np.full(len(counts), self.qualities.total(near))
        for service in {self.service(kind) for kind in kinds}:
            of = np.array(self.qualities.of[service])
            total += of[near[service] + added[:, service]] - of[near[service]]
        return total

    def movable_on_edge(self, layout: Layout) -> list[int]:
        """Running pods that a layout has where the state has them, on the edge, and that may be moved."""
        pods = self.state.pods
        return sorted(n for some in self.on_edge.values() for n in some if layout.where[n] == pods[n].where)

    def movable_in_cloud(self, layout: Layout) -> list[int]:
        """Running pods that a layout leaves in the cloud, that may be moved and have an edge node to go to."""
        pods, where = enumerate(self.state.pods), layout.where
        return [
            n for n, pod in pods if pod.may_move and not pod.is_new and pod.where == CLOUD == where[n] and pod.allowed
        ]


def moves(layout: Layout) -> int:
    """How many pods that are not new are elsewhere than in the layout's state: θ, equation 6."""
    places = zip(layout.where, layout.state.pods, strict=True)
    return sum(where != pod.where and not pod.is_new for where, pod in places)


# The layout that is built upon: who may still leave it, and how many more may move.


class Start:
    """What many decisions from one layout have in common. Moves that led to it count towards the policy's limits."""

    def __init__(self, search: EdgeSearch, layout: Layout) -> None:
        pods, where = search.state.pods, layout.where
        self.search, self.layout = search, layout
        self.quality = search.quality(layout)
        home = {
            service: sorted((pod for pod in some if where[pod] == pods[pod].where), key=search.share)
            for service, some in search.on_edge.items()
        }
        self.at_home = {service: some for service, some in home.items() if some}
        """Pods that may leave their edge nodes, by service, the smallest first."""
        left_home = [n for some in search.on_edge.values() for n in some if where[n] != pods[n].where]
        gone = sum(where[pod] == CLOUD for pod in left_home)
        self.reorderings = search.policy.reorder_moves - (len(left_home) - gone)
        """Pods that may still change their edge nodes."""
        self.offloads = search.policy.edge_to_cloud_moves - gone
        """Pods that may still leave the edge."""
        search.work.spend(len(pods) // 10)

    @cached_property
    def kinds(self) -> list[list[int]]:
        """Pods that may change their edge nodes."""
        self.search.work.spend(len(self.search.state.pods))
        return kinds_of(self.search.state, sorted(pod for some in self.at_home.values() for pod in some))
