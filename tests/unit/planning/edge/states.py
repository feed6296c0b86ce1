"""Small edge states, written as tables: nodes and pods in cores and GiB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from htas.planning.solvers.edge.state import CLOUD, EdgeNode, EdgePod, EdgeService, EdgeState, Size, minus

GIB = 2**30


def size(cores: float, gib: float) -> Size:
    return int(cores * 1000), int(gib * GIB)


def state(
    nodes: Sequence[tuple[float, float]],
    services: Mapping[str, tuple[float, float, float]],
    near: Mapping[str, Sequence[int]] | None = None,
    far: Mapping[str, int] | None = None,
    new: Mapping[str, int] | None = None,
    pinned: Sequence[str] = (),
) -> EdgeState:
    """Services are (cores, GiB, target); `near` lists the edge node of each of their pods there.

    Pods of the services that are `pinned` may not be moved. Every edge node takes every pod.
    """
    names = list(services)
    everywhere = frozenset(range(len(nodes)))
    free = [size(*node) for node in nodes]
    pods: list[EdgePod] = []

    def add(name: str, where: int, is_new: bool = False) -> None:
        asked = size(*services[name][:2])
        if where != CLOUD:
            free[where] = minus(free[where], asked)
        key = f"shop/{name}-{len(pods)}"
        pods.append(EdgePod(key, names.index(name), asked, where, is_new, name not in pinned, everywhere))

    for name, places in (near or {}).items():
        for where in places:
            add(name, where)
    for name, many in (far or {}).items():
        for _ in range(many):
            add(name, CLOUD)
    for name, many in (new or {}).items():
        for _ in range(many):
            add(name, CLOUD, is_new=True)
    return EdgeState(
        tuple(EdgeNode(f"edge-{i}", size(*node), left) for i, (node, left) in enumerate(zip(nodes, free, strict=True))),
        tuple(EdgeService(f"shop/{name}", services[name][2]) for name in names),
        tuple(pods),
    )
