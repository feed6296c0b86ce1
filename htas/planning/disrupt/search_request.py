"""Whether a better placement is searched for on behalf of pods that nothing can be bought for, and what they are told.

A search is asked for anew only where something it depends on has changed (`circumstances`), and only for pods that
some node would hold if those were gone that may be moved (`MovableRoom`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

import msgspec
import numpy as np

from htas.model.plan import UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility import host_ports
from htas.planning.cluster.feasibility.filter_context import accepted
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.outgoing import Grounds, outgoing_nodes
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.disrupt.preemption.candidates import EmptiedNodes
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy
from htas.planning.eligibility.drain_rules import not_disrupted_until

FEW_NODES = 16
"""Of a class that so few nodes could hold it is asked who on them has to stay; of others hope is taken for granted."""
PROVEN = "proven: no placement of the pods that may move would fit it (htas optimize shows which may not)"

Waiting = list[tuple[Pod, UnplacedPod]]
"""Pods to preempt for, and why nothing is bought for each, the most important first."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """For whom a search is asked for, and who is preempted for meanwhile."""

    asked: tuple[str, ...] = ()
    rest: Waiting = field(default_factory=list)
    """Those whom the last search left though nothing was proven of them."""
    told: dict[str, str] = field(default_factory=dict)
    """What is said of a pod beside why nothing is bought for it."""


def search_request(snapshot: ClusterSnapshot, policy: Policy, waiting: Waiting) -> SearchRequest:
    """Ask for a search where one is due: none is under way, the pause is over, and something is not known yet."""
    search, fallback, now = snapshot.search, policy.fallback, snapshot.taken_at
    if search.is_under_way and not has_suggestion(snapshot):
        under_way = _under_way(snapshot, policy)
        return SearchRequest(told={pod.key: under_way for pod, _ in waiting})
    is_same = search.ended_at is not None and search.circumstances == circumstances(snapshot, policy)
    left = search.left if search.ended_at is not None else {}
    ripe = [pod for pod, _ in waiting if now - pod.created_at >= fallback.after_s]
    asked = tuple(pod.key for pod in ripe if not (is_same and pod.uid in left))
    paused_s = 0.0 if search.ended_at is None else search.ended_at + fallback.pause_s - now
    # The plan that comes with an answer asks for no other one: it preempts for what was left, even without a pause.
    if asked and paused_s <= 0 and search.ended_at != now:
        return SearchRequest(asked, told=dict.fromkeys(asked, "a better placement of what runs is searched for"))
    told = {}
    for pod, _ in waiting:
        if is_same and left.get(pod.uid, False):
            told[pod.key] = PROVEN
        elif paused_s > 0:
            told[pod.key] = f"a better placement is searched for again {fallback.pause_s:g} s after the last search"
    return SearchRequest(rest=[(pod, item) for pod, item in waiting if left.get(pod.uid) is False], told=told)


def has_suggestion(snapshot: ClusterSnapshot) -> bool:
    """Whether moves for the edge's sake are under way: they give way to work that waits."""
    return snapshot.rearrangement is not None and snapshot.rearrangement.is_suggestion


def _under_way(snapshot: ClusterSnapshot, policy: Policy) -> str:
    """What is waited for, and the longest that it may take."""
    if snapshot.rearrangement is None:
        return f"a search for a better placement is under way, of {policy.fallback.budget_s:g} s at most"
    left_s = max(0.0, snapshot.rearrangement.started_at + policy.timeouts.drain_s - snapshot.taken_at)
    return f"a rearrangement is under way, for {left_s:.0f} s more at most"


def circumstances(snapshot: ClusterSnapshot, policy: Policy) -> str:
    """What a search for a better placement depends on, as a short text: while it is the same, so is what is found.

    It changes with every pod that comes, goes, is bound, resized, selected otherwise or given tolerations, or lets
    itself be moved (by annotations, or as the time of its `do-not-disrupt` is over), with every node, what it offers
    and whether it is ill, with what budgets select and allow, and with the rules of groups and of moves. Else a proof
    that is none any more is told for ever.
    """
    cluster, now = snapshot.cluster, snapshot.taken_at
    rules = policy.groups, policy.fallback, policy.scheduler_name, policy.migration, policy.run_lengths
    digest = blake2b(repr(rules).encode(), digest_size=16)
    encode = msgspec.msgpack.Encoder(order="deterministic").encode
    for pod in sorted(encode((pod.uid, pod.node, len(pod.gates), *_asks(pod, now))) for pod in cluster.pods):
        digest.update(pod)
    going = outgoing_nodes(cluster.nodes, snapshot.claims, Grounds.of(snapshot, policy, now))
    for node in sorted(cluster.nodes, key=lambda node: node.name):
        is_shunned = node.name in going and going[node.name].is_urgent
        there = node.is_ready, node.is_unschedulable, node.taints, node.allocatable, node.runtime, is_shunned
        digest.update(repr((node.name, there, sorted(node.labels.items()))).encode())
    for budget in sorted((b.namespace, b.name, b.disruptions_allowed, repr(b.selector)) for b in cluster.budgets):
        digest.update(repr(budget).encode())
    return digest.hexdigest()


def _asks(pod: Pod, now: float) -> tuple[object, ...]:
    """What a pod asks for, is selected by, and wants at a time by its annotations (most: nothing)."""
    wants = (pod.disruption, not_disrupted_until(pod) > now) if pod.disruption else ()
    return pod.is_terminating, pod.priority, pod.requests, pod.labels, pod.constraints.tolerations, wants


class MovableRoom:
    """Nodes as they were if those were gone that may be moved, or are less important than who waits.

    A search for a better placement was announced, cycle after cycle, for pods that no placement could take in.
    """

    def __init__(
        self, simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy, nodes: EmptiedNodes
    ) -> None:
        self._opening = simulated
        self._snapshot = snapshot
        self._policy = policy
        self._nodes = nodes

    def holds(self, pod: Pod) -> bool:
        """Whether some node would hold a pod then."""
        cls = self._opening.book.class_of(pod)
        among = np.flatnonzero(self._nodes.rows(cls)).tolist()
        return len(among) > FEW_NODES or any(self._has_room_beside_those_that_stay(cls, row) for row in among)

    def _has_room_beside_those_that_stay(self, cls: PodClass, row: int) -> bool:
        sim, book = self._opening.sim, self._opening.book
        with sim.fork():
            for pod in self._leavers(cls, row):
                sim.unplace(book.class_of(pod), row)
            at = slice(row, row + 1)
            has_room = bool(fits(sim.table.free[:, at], cls)[0])
            return has_room and bool(accepted(sim.filter_context, (host_ports.refuse,), cls, at)[0])

    def _leavers(self, cls: PodClass, row: int) -> Iterable[Pod]:
        """Pods on a row that end, may be moved by the optimiser, or give way to more important work."""
        for pod in self._opening.running.get(row, ()):
            if pod.is_work and (
                pod.is_terminating or self._may_move(pod) or (pod.priority < cls.priority and self._gives_way(pod))
            ):
                yield pod

    def _gives_way(self, pod: Pod) -> bool:
        terms = self._disturbing.terms_of_victim(pod), self._disturbing.terms(pod, DisruptionKind.MOVE)
        return any(each.allowed_for is not AllowedFor.NOBODY for each in terms)

    def _may_move(self, pod: Pod) -> bool:
        """Whether a search for a better placement may move it: what depends on its neighbours stays in each."""
        is_known = pod.scheduler == self._policy.scheduler_name and not self._opening.book.class_of(pod).is_dynamic
        return is_known and self._disturbing.terms(pod, DisruptionKind.MOVE).allowed_for is AllowedFor.ANYBODY

    @cached_property
    def _disturbing(self) -> DisruptionPolicy:
        return DisruptionPolicy(self._snapshot.cluster, self._policy, self._snapshot.taken_at)
