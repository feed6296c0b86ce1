"""Stays: from what cycles see of pods to what is kept of them when they have left a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.record import Run
from htas.model.resources import MILLION, share_millionths
from htas.model.snapshot import ClusterSnapshot


class Stays:
    """Follows pods from cycle to cycle. What it remembers of those that run is found again after a restart, except
    that a moved pod's run then counts from its move.
    """

    def __init__(self) -> None:
        self._open: dict[str, Run] = {}
        self._seen: tuple[Pod, ...] = ()
        self.has_begun = False
        """Whether a stay has begun since the snapshot before the last."""

    def observe(self, snapshot: ClusterSnapshot) -> list[Run]:
        """The stays that ended since the snapshot before, in no particular order."""
        self.has_begun = False
        if snapshot.cluster.pods is self._seen:
            return []
        self._seen = snapshot.cluster.pods
        nodes = {node.name: node for node in snapshot.cluster.nodes}
        running = {pod.uid: pod for pod in self._seen if pod.node in nodes and pod.started_at is not None}
        left = {uid: stay for uid, stay in self._open.items() if uid not in running or running[uid].node != stay.node}
        for uid, pod in running.items():
            if uid not in self._open or uid in left:
                self._open[uid] = self._begun(pod, nodes, snapshot.taken_at)
                self.has_begun = True
        for uid in left.keys() - running.keys():
            del self._open[uid]
        ends = {end.uid: end for end in snapshot.cluster.ended}
        over = []
        for uid, stay in left.items():
            end = ends.get(uid) if uid not in running else None
            at = end.at if end is not None and end.at is not None else snapshot.taken_at
            succeeded = end.succeeded if end is not None else None
            over.append(msgspec.structs.replace(stay, ended_at=max(at, stay.came_at), succeeded=succeeded))
        return over

    def _begun(self, pod: Pod, nodes: Mapping[str, Node], now: float) -> Run:
        before = self._open.get(pod.uid) or self._open.get(pod.twin_of)
        stay = stay_of(pod, nodes[pod.node or ""], now)
        if before is None:
            return stay
        came_at = now if before.uid == pod.uid else stay.came_at
        return msgspec.structs.replace(stay, began_at=before.began_at, came_at=came_at)


def running(snapshot: ClusterSnapshot) -> list[Run]:
    """The stays that are not over, as if they ended now."""
    nodes = {node.name: node for node in snapshot.cluster.nodes}
    return [
        stay_of(pod, nodes[pod.node], snapshot.taken_at)
        for pod in snapshot.cluster.pods
        if pod.node in nodes and pod.started_at is not None
    ]


def without(snapshot: ClusterSnapshot, over: Iterable[Run]) -> ClusterSnapshot:
    """A recorded snapshot but for those pods whose stay is known to be over since."""
    known = {(run.uid, run.node) for run in over}
    pods = tuple(pod for pod in snapshot.cluster.pods if (pod.uid, pod.node) not in known)
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=pods))


def stay_of(pod: Pod, node: Node, now: float) -> Run:
    """A pod's stay on the node it runs on, from its start until now."""
    started_at = pod.started_at if pod.started_at is not None else now
    return Run(
        namespace=pod.namespace,
        pod=pod.name,
        uid=pod.uid,
        node=node.name,
        kind=pod.kind,
        owner=pod.maker,
        image=pod.image,
        cpu_m=pod.requests.cpu_m,
        memory_bytes=pod.requests.memory_bytes,
        share_millionths=min(MILLION, share_millionths(pod.requests, node.allocatable)),
        began_at=started_at,
        came_at=started_at,
        ended_at=max(now, started_at),
        claim=node.claim or "",
    )
