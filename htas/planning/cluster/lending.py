"""Lending: batch work goes where services leave room, as long as no new services come that would find it taken.

Of two groups the services' has room over between scalings, and a job that comes alone would wait two minutes for a
machine of its own. What stays for its services costs no more for it (docs/algorithms.md has what that brings).

- It is placed there, and that is all: nobody is moved or evicted for it, and no node is kept for work to come.
- Where services keep coming, nothing is lent: the next one would have to be bought for, and its machine stays.
- A job's own group comes first; nothing is bought in a group that lends.
- An empty node is not lent: it would stay for a job alone. Nor is one that is to go however well it is used.
- No node with a GPU or another extended resource is lent, and no room to jobs of more than an hour: dear or large
  machines would outlast their services for one job (1.05 of the bill with notebooks and trainings, on one of two seeds
  1.11).
"""

from __future__ import annotations

from htas.model.pods import WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.services import keep_coming, new_services

LONGEST_S = 3600.0


def may_borrow(cls: PodClass) -> bool:
    return cls.is_ours and cls.kind is WorkKind.BATCH and cls.run_length_s <= LONGEST_S


def lent_nodes(snapshot: ClusterSnapshot, policy: Policy, now: float) -> frozenset[str]:
    """The nodes that take batch work at present, though their group is for services."""
    lending = {group.name for group in policy.groups if group.lends_room}
    nodes = [node for node in snapshot.cluster.nodes if node.group in lending] if lending else []
    if not nodes:
        return frozenset()
    pods = snapshot.cluster.pods
    if snapshot.expects_more and keep_coming(new_services(pods, now)):
        return frozenset()
    serving = {pod.node for pod in pods if pod.kind is WorkKind.SERVICE and pod.is_work and not pod.is_terminating}
    return frozenset(
        node.name
        for node in nodes
        if node.name in serving and not any(amount for _, amount in node.allocatable.extended)
    )
