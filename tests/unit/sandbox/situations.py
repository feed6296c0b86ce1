"""Small worlds for the sandbox's own tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from htas.model.claims import ClaimState, Instance, NodeClaim
from htas.model.flavours import Flavour
from htas.model.nodes import CLUSTER_LABEL, Node
from htas.model.pods import Pod, WorkKind
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, ControllerKind, Task, Workload
from htas.sandbox.world import World
from tests.builders import NECTAR, make_node

GIB = 2**30
SMALL = NECTAR[2]
"""m3.small: 2 cores, 4 GiB, 0.0686 an hour."""


def task(name: str, **fields: Any) -> Task:
    return Task(name, **{"requests": Resources(500, GIB, 0, 1), "labels": {"app": name}, **fields})


def job(name: str, runs_s: float = 100.0, **fields: Any) -> Arrival:
    return Arrival(0.0, task(name, kind=WorkKind.BATCH, runs_s=runs_s, **fields))


def web(replicas: int = 2, kind: ControllerKind = ControllerKind.REPLICA_SET, **fields: Any) -> Arrival:
    return Arrival(0.0, task("web", **fields), kind, replicas)


def world_of(*arrivals: Arrival, nodes: Iterable[Node] = (), budgets: Any = (), **options: Any) -> World:
    """A world in which the arrivals have just come; two nodes of 2 cores unless told otherwise."""
    world = World(**options)
    world.add_nodes(nodes or (make_node("a", "2", "4Gi"), make_node("b", "2", "4Gi")))
    world.load(Workload("test", arrivals, budgets=tuple(budgets)))
    return wait(world, 0)


def wait(world: World, seconds: float) -> World:
    world.advance_to(world.clock.now() + seconds)
    return world


def pods(world: World) -> dict[str, Pod]:
    return {pod.name: pod for pod in world.cluster.observe().pods}


def node(world: World, name: str) -> Node:
    return next(node for node in world.cluster.observe().nodes if node.name == name)


def bind_all(world: World, to: str = "a") -> World:
    """Bind everything that waits and let it start."""
    for pod in pods(world).values():
        if pod.node is None:
            world.cluster.bind(pod, to)
    return wait(world, 1)


def rent(world: World, name: str = "c1", flavour: Flavour = SMALL, cluster: str = "test") -> Instance:
    claim = NodeClaim(name, "any", flavour.name, ClaimState.WANTED, world.clock.now(), world.clock.now())
    return world.cloud.create(claim, flavour, make_node(name, labels={CLUSTER_LABEL: cluster}, taints=flavour.taints))
