"""What work costs on a choice of flavours, as if it filled them: tells which choices are worth a purchase."""

from __future__ import annotations

import numpy as np

from htas.planning.cluster.classes import Bools, ResourceAxis
from htas.planning.provision.bound import lower_bound_nanos
from htas.planning.what_if.adopting import AdoptedCluster
from htas.planning.what_if.bounding import beside, free_rooms

LARGE = 500
"""So many pods fill the machines of any choice of flavours about as well."""


class Estimates:
    """Estimates for sets of flavours. A purchase for a set whose estimate is above another purchase is not cheaper."""

    def __init__(self, present: AdoptedCluster) -> None:
        self.present = present
        snapshot, self._flavours = present.snapshot, present.policy.catalogue.flavours
        running = [pod for pod in snapshot.cluster.pods if pod.node is not None]
        pods = [pod for pod in running if pod.is_work and pod.node not in present.fixed]
        learned = snapshot.learned
        offered = [learned.get(flavour.name, flavour.allocatable) for flavour in self._flavours]
        sold = {name for each in offered for name, _ in each.extended}
        sold |= {name for node in snapshot.cluster.nodes for name, _ in node.allocatable.extended}
        axis = ResourceAxis(sold, {name for pod in running for name, _ in pod.requests.extended})
        self._requests = np.array([axis.vector(pod.requests) for pod in pods], dtype=np.int64).reshape(-1, len(axis))
        self._capacities = [axis.room(each).tolist() for each in offered]
        self._fits: Bools = np.array(
            [(self._requests <= np.array(room, dtype=np.int64)).all(axis=1) for room in self._capacities]
        ).reshape(len(offered), len(pods))
        self._names = names = sorted({pod.node or "" for pod in pods})
        place = {name: number for number, name in enumerate(names)}
        self._node_of = np.array([place[pod.node or ""] for pod in pods], dtype=np.int64)
        nodes = {node.name: node for node in snapshot.cluster.nodes}
        self._prices = np.array([present.hourly_price(nodes[name]) for name in names], dtype=np.int64)
        self._rooms = free_rooms(nodes.values(), running, nodes.keys(), axis)
        self._known: dict[frozenset[str], int] = {}

    def least(self, names: frozenset[str]) -> int:
        """The nodes with pods that fit none of the flavours, and the least that these cost for the others beside the
        free room of nodes that stay.
        """
        if names not in self._known:
            sold = [number for number, flavour in enumerate(self._flavours) if flavour.name in names]
            self._known[names] = self._least(sold) if sold and len(self._requests) else 0
        return self._known[names]

    def too_large_for(self, names: frozenset[str]) -> list[str]:
        """Nodes with a pod that none of the flavours is large enough for."""
        stays = self._stay([number for number, flavour in enumerate(self._flavours) if flavour.name in names])
        return [name for name, stay in zip(self._names, stays.tolist(), strict=True) if stay]

    @property
    def is_large(self) -> bool:
        """Whether there is so much work that all choices of flavours are filled about as well."""
        return len(self._requests) >= LARGE

    def _stay(self, sold: list[int]) -> Bools:
        stays: Bools = np.zeros(len(self._prices), dtype=np.bool_)
        if len(self._requests):
            stays[self._node_of[~self._fits[sold].any(axis=0)]] = True
        return stays

    def _least(self, sold: list[int]) -> int:
        stays = self._stay(sold)
        staying = {*self.present.fixed, *(name for name, stay in zip(self._names, stays.tolist(), strict=True) if stay)}
        rooms = (room for name, room in self._rooms.items() if name in staying)
        demand = beside(self._requests[~stays[self._node_of]].sum(axis=0), rooms)
        prices = [self._flavours[number].nanos_per_hour for number in sold]
        return int(self._prices[stays].sum()) + lower_bound_nanos(
            demand.tolist(), [self._capacities[number] for number in sold], prices
        )
