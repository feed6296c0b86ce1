"""Nodes of today that do for machines bought anew: they stay, and so do the pods that are there and belong there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import Node
from htas.model.proposals import Launch
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulated import open_simulation
from htas.planning.cluster.simulation import Simulation
from htas.planning.provision.levelling import may_stay
from htas.planning.what_if.adopting import AdoptedCluster
from htas.planning.what_if.arranging import Arrangement

TRIED = 8
"""So many nodes at most are tried for each machine: those on which most of its pods would stay."""


def reusing(present: AdoptedCluster, mix: Arrangement) -> Arrangement:
    """A mix bought anew less the machines for which a node of today of their flavour does, at the same price.

    Pods that are alike take each other's place, so that those stay which are there already.
    """
    if not mix.launches:
        return mix
    matching = _Matching(present, mix)
    found = {launch.claim: node for launch in matching.in_order() if (node := matching.node_for(launch)) is not None}
    return msgspec.structs.replace(
        mix,
        moved=mix.moved - matching.stay,
        kept=dict(sorted({**mix.kept, **dict.fromkeys(found.values(), "")}.items())),
        bought=mix.bought - len(found),
        launches=tuple(launch for launch in mix.launches if launch.claim not in found),
    )


class _Matching:
    """The mix as a simulation, with all nodes of today beside it: empty, but for those that stay and what comes with
    each. A node does for a machine if all pods of that find their place on it, and nobody else loses theirs.
    """

    def __init__(self, present: AdoptedCluster, mix: Arrangement) -> None:
        opening = open_simulation(_once_carried_out(present, mix), present.policy, present.now)
        self._sim, self._launches = opening.sim, mix.launches
        going = [n for n in present.snapshot.cluster.nodes if n.name not in mix.kept and n.name not in present.fixed]
        self._going = {node.name: node for node in going}
        self._price = present.hourly_price
        launched = {pod for launch in mix.launches for pod in launch.pods}
        pods = [pod for pod in present.snapshot.cluster.pods if pod.key in launched]
        self._class_of = {pod.key: opening.book.class_of(pod) for pod in pods}
        self._there: dict[int, dict[str, list[str]]] = {}
        """Pods that are bought for, by their class and the node they are on today."""
        for pod in pods:
            there = self._there.setdefault(id(self._class_of[pod.key]), {})
            there.setdefault(pod.node or "", []).append(pod.key)
        placed = ((opening.book.class_of(pod), row) for row, pods in opening.running.items() for pod in pods)
        self._choosy = {
            (id(cls), row): (cls, row) for cls, row in placed if cls.constraints.spread or cls.constraints.affinity
        }
        """Pods that spread or seek others, by class and where they are."""
        self.stay: set[str] = set()
        """Pods that need not be moved."""

    def in_order(self) -> list[Launch]:
        """Those machines first for which most pods would stay."""
        most = {
            each.claim: max((len(pods) for pods in self._staying(each).values()), default=0) for each in self._launches
        }
        return sorted(self._launches, key=lambda launch: -most[launch.claim])

    def node_for(self, launch: Launch) -> str | None:
        """A node of today that is used for a machine from now on; None: none does for it."""
        staying = self._staying(launch)
        alike = [
            node
            for node in self._going.values()
            if node.flavour == launch.flavour and self._price(node) == launch.nanos_per_hour
        ]
        alike.sort(key=lambda node: (-len(staying.get(node.name, ())), node.zone != launch.zone, node.name))
        for node in alike[:TRIED]:
            if self._is_taken_over(launch, node):
                del self._going[node.name]
                self.stay.update(staying.get(node.name, ()))
                return node.name
        return None

    def _staying(self, launch: Launch) -> dict[str, list[str]]:
        """By node that is still to go the pods that are like some of a machine's, and could stay."""
        found: dict[str, list[str]] = {}
        for number, count in Counter(id(self._class_of[pod]) for pod in launch.pods).items():
            for node, pods in self._there[number].items():
                if node in self._going:
                    found.setdefault(node, []).extend(pods[:count])
        return found

    def _is_taken_over(self, launch: Launch, node: Node) -> bool:
        """Move a machine's pods to a node, if all fit there; to another zone only if all others may still stay."""
        sim, is_elsewhere = self._sim, node.zone != launch.zone
        machine, row = sim.table.row_of[launch.claim], sim.table.row_of[node.name]
        contents = [self._class_of[pod] for pod in launch.pods]
        with sim.fork() as branch:
            for cls in contents:
                sim.unplace(cls, machine)
            sim.give_up(machine)
            if _all_placed(sim, contents, row) and not (is_elsewhere and self._is_any_disturbed(contents, machine)):
                branch.commit()
        if branch.is_committed:
            moved = ((cls, row if at == machine else at) for cls, at in self._choosy.values())
            self._choosy = {(id(cls), at): (cls, at) for cls, at in moved}
        return branch.is_committed

    def _is_any_disturbed(self, contents: Iterable[PodClass], machine: int) -> bool:
        """Whether pods elsewhere that spread or seek others may not stay where they are, once these have moved."""
        watched = {watch for cls in contents for watch in cls.watches}
        return bool(watched) and any(
            not may_stay(self._sim, cls, row)
            for cls, row in self._choosy.values()
            if row != machine and (cls.constraints.affinity or not watched.isdisjoint(cls.watches))
        )


def _all_placed(sim: Simulation, contents: Sequence[PodClass], row: int) -> bool:
    """Place pods on a row: one may let another in, that seeks it."""
    left, before = list(contents), 0
    while left and len(left) != before:
        before = len(left)
        for cls in tuple(left):
            if sim.fits(cls, row):
                sim.place(cls, row)
                left.remove(cls)
    return not left


def _once_carried_out(present: AdoptedCluster, mix: Arrangement) -> ClusterSnapshot:
    """All nodes of today and the machines that are bought, and the work where the mix has it."""
    snapshot = present.snapshot
    target = {pod: launch.claim for launch in mix.launches for pod in launch.pods} | dict(mix.seats)
    pods = tuple(
        msgspec.structs.replace(pod, node=target[pod.key]) if pod.key in target else pod
        for pod in snapshot.cluster.pods
    )
    now = present.now
    machines = (
        NodeClaim(each.claim, each.group, each.flavour, ClaimState.REQUESTED, now, now, each.zone)
        for each in mix.launches
    )
    view = msgspec.structs.replace(snapshot.cluster, pods=pods)
    return msgspec.structs.replace(snapshot, cluster=view, claims=(*snapshot.claims, *machines))
