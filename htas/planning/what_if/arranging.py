"""Two ways to hold the same work for less: on fewer of the nodes that are there, and on machines bought anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from htas.model.claims import Headroom
from htas.model.nodes import DRAINING_TAINT, Node
from htas.model.plan import KeptNode, Plan
from htas.model.pods import Pod
from htas.model.proposals import Launch
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import Stage
from htas.planning.planner import plan
from htas.planning.what_if.adopting import AdoptedCluster

Shelves = tuple[frozenset[str] | None, ...]
"""Choices of flavours to buy from; None: all of them."""


class Arrangement(msgspec.Struct, frozen=True):
    """Machines that hold the work: how many of each priced flavour, their price an hour, and which pods moved.

    `nanos_per_hour` is the mean of a month. `hourly_nanos` is without monthly caps, as the daemon compares prices.
    `kept` are nodes of today that stay, with the reason where there is one. `bought` are machines besides.
    """

    flavours: Mapping[str, int]
    nanos_per_hour: int
    hourly_nanos: int
    moved: frozenset[str] = frozenset()
    kept: Mapping[str, str] = {}
    bought: int = 0
    launches: tuple[Launch, ...] = ()
    """What is bought, with the pods it is bought for."""
    seats: Mapping[str, str] = {}
    """Pods that go onto nodes that stay, with the node."""

    @property
    def nodes(self) -> int:
        return sum(self.flavours.values())

    @property
    def moves(self) -> int:
        return len(self.moved)


def cheapest(first: Arrangement, *others: Arrangement) -> Arrangement:
    """The cheapest as the daemon compares; of equal ones the first.

    What is found with fewer freedoms holds with more of them, too.
    """
    return min((first, *others), key=lambda each: each.hourly_nanos)


def as_it_is(present: AdoptedCluster) -> Arrangement:
    return _arranged(present, present.snapshot.cluster.nodes, frozenset(), {})


def packed(present: AdoptedCluster) -> Arrangement:
    """The work on fewer of the present nodes: cleaning cycles, one after another, until none finds a node to empty.

    Between two cycles the pods that moved are taken to be Ready again, so that disruption budgets recover.
    """
    snapshot, moved = present.snapshot, set[str]()
    while True:
        made = plan(snapshot, present.policy, present.now, frozenset({Stage.CLEANING}))
        if not made.remove:
            break
        moved |= {move.pod for move in made.migrate}
        snapshot = _carried_out(snapshot, made)
    kept = {item.node: _why(item) for item in made.kept}
    kept |= {name: stays.message for name, stays in present.fixed.items()}
    return _arranged(present, snapshot.cluster.nodes, moved, kept)


def _why(kept: KeptNode) -> str:
    return f"{kept.reason}: {kept.message}" if kept.message else str(kept.reason)


def _carried_out(snapshot: ClusterSnapshot, made: Plan) -> ClusterSnapshot:
    """The snapshot once a cleaning plan has been carried out: pods moved, nodes gone with what ends with them."""
    gone = {item.node for item in made.remove}
    target = {move.pod: move.target for move in made.migrate}
    pods = [
        msgspec.structs.replace(pod, node=target[pod.key]) if pod.key in target else pod
        for pod in snapshot.cluster.pods
        if pod.key in target or pod.node not in gone
    ]
    nodes = tuple(node for node in snapshot.cluster.nodes if node.name not in gone)
    return msgspec.structs.replace(
        snapshot,
        cluster=msgspec.structs.replace(snapshot.cluster, nodes=nodes, pods=tuple(pods)),
        claims=tuple(claim for claim in snapshot.claims if claim.node not in gone),
    )


def bought_anew(
    present: AdoptedCluster,
    pinned: Collection[str],
    sold: Collection[str] | None = None,
    too_large: Collection[str] = (),
) -> Arrangement:
    """The work on the cheapest machines the planner finds, beside the nodes that stay.

    `pinned` are nodes that stay with all they hold, `too_large` those with pods too large for what is sold; `sold`
    names the flavours that can be had (None: all). A pod that no machine bought anew would take stays where it is, and
    so does its node: asked again until all have a place.
    """
    kept: dict[str, str] = dict.fromkeys(sorted({*pinned, *too_large}), "")
    while True:
        snapshot = _emptied(present, kept, sold)
        made = plan(snapshot, present.policy, present.now, frozenset({Stage.AUTOSCALING}))
        on = {pod.key: pod.node for pod in present.snapshot.cluster.pods}
        stuck = {on[item.pod] or "": f"{item.pod}: {item.message}" for item in reversed(made.unplaced)}
        if not stuck:
            break
        kept |= stuck
    placed = {item.pod: item.node for item in made.bind} | {item.pod: item.node for item in made.nominate}
    moved = {pod for pod, node in placed.items() if node != on[pod]}
    moved.update(pod for item in made.launches for pod in item.pods)
    nodes = [node for node in present.snapshot.cluster.nodes if node.name in kept]
    mix = _arranged(present, nodes, moved, kept, made.launches)
    return msgspec.structs.replace(mix, seats=placed)


def cheapest_anew(present: AdoptedCluster, pinned: Collection[str], shelves: Shelves) -> Arrangement:
    """The cheapest that is found with each of some choices of flavours: the purchase is a heuristic, and with few of
    them it happens to do better.
    """
    return cheapest(*(bought_anew(present, pinned, shelf) for shelf in shelves))


def _emptied(present: AdoptedCluster, kept: Mapping[str, str], sold: Collection[str] | None) -> ClusterSnapshot:
    """Only what stays, and the pods of all else waiting for a place. DaemonSet pods are left as patterns."""
    snapshot = present.snapshot
    pods = [pod if pod.node in kept or pod.is_daemon else _waiting(pod) for pod in snapshot.cluster.pods]
    view = msgspec.structs.replace(
        snapshot.cluster,
        nodes=(*(node for node in snapshot.cluster.nodes if node.name in kept), *_going(present, kept)),
        pods=tuple(pod for pod in pods if not pod.is_mirror or pod.node in kept),
    )
    return msgspec.structs.replace(
        snapshot,
        cluster=view,
        claims=tuple(claim for claim in snapshot.claims if claim.node in kept),
        headroom=Headroom(sold=tuple(sorted(sold)) if sold is not None else None),
    )


def _going(present: AdoptedCluster, kept: Collection[str]) -> Iterable[Node]:
    """Nodes that go, as they are while their work moves away: whoever spreads over zones or hosts spreads over theirs.

    None where no work spreads.
    """
    snapshot = present.snapshot.cluster
    if not any(pod.constraints.spread for pod in snapshot.pods if pod.is_work):
        return ()
    gone = (node for node in snapshot.nodes if node.name not in kept)
    return (msgspec.structs.replace(node, taints=(*node.taints, DRAINING_TAINT)) for node in gone)


def _waiting(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, node=None, nominated_node=None, started_at=None)


def _arranged(
    present: AdoptedCluster,
    nodes: Iterable[Node],
    moved: Collection[str],
    kept: Mapping[str, str],
    launches: tuple[Launch, ...] = (),
) -> Arrangement:
    priced = [node for node in nodes if present.is_priced(node)]
    counts = Counter([*(node.flavour or "" for node in priced), *(item.flavour for item in launches)])
    sold = {flavour.name: flavour for flavour in present.monthly.flavours}
    return Arrangement(
        dict(sorted(counts.items())),
        sum(map(present.price, priced)) + sum(sold[item.flavour].nanos_in(item.zone) for item in launches),
        sum(map(present.hourly_price, priced)) + sum(item.nanos_per_hour for item in launches),
        frozenset(moved),
        dict(sorted(kept.items())),
        len(launches),
        launches,
    )
