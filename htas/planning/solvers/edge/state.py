"""The state that the edge's algorithms decide on, and the sizes in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

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
