"""From the simulation to the state that the edge's algorithms decide on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from htas.model.edge import Tier
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.planning.cluster.feasibility import PLACEMENT_FILTERS
from htas.planning.cluster.feasibility.filter_context import accepted
from htas.planning.cluster.services import served
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.cluster.whereabouts import node_of
from htas.planning.place.context import PlanContext
from htas.planning.place.edge_present import services_of
from htas.planning.solvers.edge.state import CLOUD, EdgeNode, EdgePod, EdgeState, Size


@dataclass(frozen=True, slots=True)
class EdgeView:
    """A state, and what its indexes stand for: rows of the simulation, and pods."""

    state: EdgeState
    rows: tuple[int, ...]
    pods: tuple[Pod, ...]


def edge_rows(simulated: SimulatedCluster, policy: Policy) -> tuple[int, ...]:
    """Rows of edge nodes that are there: no pod is told to wait for a machine on its way while a cloud node has room.

    Those that take no pods now are among them: what runs there is near all the same.
    """
    return tuple(
        row
        for row, node in enumerate(simulated.sim.table.nodes)
        if policy.tier_of(node) is Tier.EDGE and node.name not in simulated.coming
    )


def whereabouts(context: PlanContext) -> dict[str, str]:
    """The node of each pod (uid): where it runs, is being bound, has a slot or is nominated to."""
    snapshot, simulated = context.snapshot, context.simulated
    where: dict[str, str] = {}
    for pod in snapshot.cluster.pods:
        node = node_of(pod, snapshot) or pod.nominated_node
        if node is not None:
            where[pod.uid] = node
    for each in simulated.reservations:
        if each.pod is not None:
            where[each.pod.uid] = each.slot.node
    return where


def edge_view(
    context: PlanContext,
    rows: Sequence[int],
    where: Mapping[str, str],
    *,
    new: Collection[str] = (),
    movable: Collection[str] = (),
    closed: Collection[str] = (),
) -> EdgeView:
    """The state of the simulation as it is. By uid: `new` pods are to be placed now, `movable` ones may be moved.

    To `closed` nodes (names) none is moved; who runs there may stay.
    """
    simulated, table = context.simulated, context.simulated.sim.table
    index = {table.nodes[row].name: i for i, row in enumerate(rows)}
    pods = tuple(served(context.snapshot.cluster))
    services = services_of(pods)
    number = {service.name: i for i, service in enumerate(services)}
    allowed = _Allowed(simulated, rows)
    shut = frozenset(index[name] for name in closed if name in index)
    found = []
    for pod in pods:
        is_new = pod.uid in new
        moves = pod.uid in movable
        here = allowed.of(pod, where.get(pod.uid)) if is_new or moves else frozenset[int]()
        if moves:
            here -= shut - {index.get(where.get(pod.uid, ""), CLOUD)}
        cls = simulated.book.class_of(pod)
        found.append(
            EdgePod(
                pod.key,
                number[pod.service or ""],
                _size(cls.requests.tolist()),
                index.get(where.get(pod.uid, ""), CLOUD),
                is_new,
                moves,
                here,
            )
        )
    nodes = tuple(
        EdgeNode(table.nodes[row].name, _size(table.allocatable[:, row].tolist()), _size(table.free[:, row].tolist()))
        for row in rows
    )
    return EdgeView(EdgeState(nodes, services, tuple(found)), tuple(rows), pods)


def _size(amounts: Sequence[int]) -> Size:
    """The whole axis of resources: cpu and memory stand first."""
    return tuple(amounts)


class _Allowed:
    """Which edge nodes pass every filter but room, asked once for pods that are alike."""

    def __init__(self, simulated: SimulatedCluster, rows: Sequence[int]) -> None:
        self._opening = simulated
        self._rows = np.array(rows, dtype=np.int64)
        self._known: dict[tuple[int, str | None], frozenset[int]] = {}

    def of(self, pod: Pod, node: str | None) -> frozenset[int]:
        """Where spread and affinity count, as if the pod had left the node that it is on."""
        sim, cls = self._opening.sim, self._opening.book.class_of(pod)
        key = id(cls), node if cls.is_dynamic else None
        if key not in self._known:
            row = sim.table.row_of.get(node or "")
            with sim.fork():
                if cls.is_dynamic and row is not None:
                    sim.unplace(cls, row)
                ok = sim.allowed(cls)[sim.all_rows] & sim.table.is_open[sim.all_rows]
                if cls.is_dynamic:
                    ok = ok & accepted(sim.filter_context, PLACEMENT_FILTERS, cls, sim.all_rows)
            self._known[key] = frozenset(np.flatnonzero(ok[self._rows]).tolist())
        return self._known[key]
