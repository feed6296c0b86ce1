"""The state that the edge's algorithms decide on, and the sizes in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from htas.planning.cluster.classes import Bools, Ints

CLOUD: Final = -1
"""Where a pod is that is on no edge node."""
Size = tuple[int, ...]
"""cpu in millicores, memory in bytes, then anything else that can run out; of one length throughout a state."""


@dataclass(frozen=True, slots=True)
class EdgeNode:
    """`free` is what is left of `total` beside everything that runs there, pods of the state and others. It may be
    negative: then the node holds more than it offers, and no pod that asks for it joins."""

    name: str
    total: Size
    free: Size


@dataclass(frozen=True, slots=True)
class EdgeService:
    """A controller, `namespace/kind/name`; `target` is the share of its pods that should be on the edge."""

    name: str
    target: float = 1.0


@dataclass(frozen=True, slots=True)
class EdgePod:
    """A pod of a service. Pods that cannot be placed or moved are part of the state too: targets count them.

    `service` and `where` are indexes into the state's services and edge nodes, or CLOUD. A new pod waits: it has no
    node yet, `where` is CLOUD, and binding it is no move. `allowed` are the edge nodes that pass every filter but room.
    """

    key: str
    service: int
    size: Size
    where: int = CLOUD
    is_new: bool = False
    may_move: bool = True
    allowed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class EdgeState:
    nodes: tuple[EdgeNode, ...]
    services: tuple[EdgeService, ...]
    pods: tuple[EdgePod, ...]


def plus(one: Size, other: Size) -> Size:
    return tuple(map(int.__add__, one, other))


def minus(one: Size, other: Size) -> Size:
    return tuple(map(int.__sub__, one, other))


def fits(size: Size, free: Size) -> bool:
    """Whether there is as much as is asked for of everything that is asked for."""
    # Asked most of all: a third of what all() of a generator takes.
    for asked, there in zip(size, free, strict=True):  # noqa: SIM110 # see above
        if asked > there and asked:
            return False
    return True


def fit_each(sizes: Ints, free: Ints) -> Bools:
    """The same of each row of a table of sizes, or of one of free room."""
    fitting: Bools = ((sizes <= free) | (sizes == 0)).all(axis=1)
    return fitting


def summed(sizes: Iterable[Size], width: int) -> Size:
    total = (0,) * width
    for size in sizes:
        total = plus(total, size)
    return total


def joinable(state: EdgeState) -> EdgeState:
    """The same state with no pod allowed to join a node that holds more of what the pod asks for than it offers, and
    nothing free on a node that no pod still to be decided on may join.

    The first could take a pod once others have left, but until then it is the first to be in trouble. The second, such
    as ten cordoned or tainted nodes, would make the edge look roomy that is full.
    """
    state = _without_overfull(state)
    undecided = {pod.allowed for pod in state.pods if pod.is_new or pod.may_move}
    joined = frozenset[int]().union(*undecided)
    if len(joined) == len(state.nodes):
        return state
    nodes = (
        node if number in joined else replace(node, free=tuple(min(left, 0) for left in node.free))
        for number, node in enumerate(state.nodes)
    )
    return replace(state, nodes=tuple(nodes))


def _without_overfull(state: EdgeState) -> EdgeState:
    overfull = {number: node.free for number, node in enumerate(state.nodes) if min(node.free) < 0}
    if not overfull:
        return state

    def kept(pod: EdgePod) -> frozenset[int]:
        barred = {
            n for n, free in overfull.items() if any(a and left < 0 for a, left in zip(pod.size, free, strict=True))
        }
        return pod.allowed - barred

    return replace(state, pods=tuple(replace(pod, allowed=kept(pod)) for pod in state.pods))


def kinds_of(state: EdgeState, pods: Iterable[int]) -> list[list[int]]:
    """Pods by what tells them apart here: those of one kind may change places, so subsets are counts of kinds."""
    found: dict[tuple[object, ...], list[int]] = {}
    for number in pods:
        pod = state.pods[number]
        found.setdefault((pod.service, pod.size, pod.where, pod.is_new, pod.allowed), []).append(number)
    return list(found.values())


def part_of(size: Size, total: Size) -> float:
    """How much of a node something is: the sum of its shares, of cpu, of memory and of whatever else there is."""
    return sum(amount / max(there, 1) for amount, there in zip(size, total, strict=True))


# A working copy of a state, to try decisions on.


class Layout:
    """A working copy of a state: where each pod is, what each edge node has left, and who of each service is near."""

    __slots__ = ("free", "near", "state", "where")

    def __init__(self, state: EdgeState) -> None:
        self.state = state
        self.where = [pod.where for pod in state.pods]
        self.free = [node.free for node in state.nodes]
        self.near = [0] * len(state.services)
        for pod in state.pods:
            self.near[pod.service] += pod.where != CLOUD

    def copy(self) -> Layout:
        other = object.__new__(Layout)
        other.state = self.state
        other.where, other.free, other.near = self.where.copy(), self.free.copy(), self.near.copy()
        return other

    def put(self, pod: int, node: int) -> None:
        """Have a pod on an edge node or in the cloud, whether it fits or not."""
        it, source = self.state.pods[pod], self.where[pod]
        if source != CLOUD:
            self.free[source] = plus(self.free[source], it.size)
            self.near[it.service] -= 1
        if node != CLOUD:
            self.free[node] = minus(self.free[node], it.size)
            self.near[it.service] += 1
        self.where[pod] = node

    def takes(self, node: int, pod: int) -> bool:
        """Whether an edge node passes a pod's filters and has room for it."""
        it = self.state.pods[pod]
        return node in it.allowed and fits(it.size, self.free[node])


# What is decided about a state: who is seated, and who moves in which order.


@dataclass(frozen=True, slots=True)
class EdgeShift:
    """A pod goes from `source` to `target`; indexes of edge nodes, or CLOUD, where a new pod comes from."""

    pod: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class EdgeDecision:
    """What becomes of the state's pods; who is not named stays where it is.

    `moves` stand in an order in which each finds room once those before it are done. Pods that change places with one
    another have no such order: there a pod may need one named after it to leave first. Seats come after all moves.
    """

    seats: tuple[EdgeShift, ...] = ()
    """New pods and the edge nodes they get."""
    moves: tuple[EdgeShift, ...] = ()
    to_cloud: tuple[int, ...] = ()
    """New pods that the edge has no room for."""

    @property
    def lifts(self) -> int:
        """Moves from the cloud to the edge: at most M_C2E."""
        return sum(move.source == CLOUD for move in self.moves)

    @property
    def reorderings(self) -> int:
        """Moves within the edge: at most M_ER."""
        return sum(move.source != CLOUD != move.target for move in self.moves)

    @property
    def offloads(self) -> int:
        """Moves from the edge to the cloud: at most M_E2C."""
        return sum(move.target == CLOUD for move in self.moves)


def decision(layout: Layout) -> EdgeDecision:
    """What leads from a layout's state to the layout."""
    state = layout.state
    seats, to_cloud, moves = [], [], []
    for number, (pod, target) in enumerate(zip(state.pods, layout.where, strict=True)):
        if pod.is_new and target == CLOUD:
            to_cloud.append(number)
        elif pod.is_new:
            seats.append(EdgeShift(number, CLOUD, target))
        elif target != pod.where:
            moves.append(EdgeShift(number, pod.where, target))
    return EdgeDecision(tuple(seats), tuple(_in_order(state, moves)), tuple(to_cloud))


def _in_order(state: EdgeState, moves: list[EdgeShift]) -> list[EdgeShift]:
    """Those to the cloud, which always has room, then each once it fits; those that never do come last."""
    trial = Layout(state)
    order = [move for move in moves if move.target == CLOUD]
    for move in order:
        trial.put(move.pod, CLOUD)
    waiting = sorted((move for move in moves if move.target != CLOUD), key=lambda move: move.source == CLOUD)
    while waiting:
        fitting = (move for move in waiting if fits(state.pods[move.pod].size, trial.free[move.target]))
        move = next(fitting, waiting[0])
        trial.put(move.pod, move.target)
        waiting.remove(move)
        order.append(move)
    return order
