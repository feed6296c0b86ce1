"""Lending: batch work goes where services leave room, as long as no new services come that would find it taken.

Of two groups the services' has room over between scalings, and a job that comes alone would wait two minutes for a
machine of its own. What stays for its services costs no more for it (docs/algorithms.md has what that brings).

- Where services keep coming, nothing is lent: the next one would have to be bought for, and its machine stays.
- A job's own group comes first; nothing is bought in a group that lends.
- An empty node is not lent: it would stay for a job alone.
- No node with a GPU or such is lent: it is dear, and would outlast its services for one job (1.05 of the bill with
  notebooks and trainings, on one of two seeds 1.11).
"""

from __future__ import annotations

from htas.model.pods import WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.services import keep_coming, new_services


def lent_nodes(snapshot: ClusterSnapshot, policy: Policy, now: float) -> frozenset[str]:
    """The nodes that take batch work at present, though their group is for services."""
    lending = {group.name for group in policy.groups if group.lends_room}
    nodes = [node for node in snapshot.cluster.nodes if node.group in lending] if lending else []
    if not nodes:
        return frozenset()
    work = [pod for pod in snapshot.cluster.pods if not pod.is_daemon]
    if snapshot.expects_more and keep_coming(new_services(work, now)):
        return frozenset()
    serving = {pod.node for pod in work if pod.kind is WorkKind.SERVICE and not pod.is_terminating}
    return frozenset(
        node.name
        for node in nodes
        if node.name in serving and not any(amount for _, amount in node.allocatable.extended)
    )
