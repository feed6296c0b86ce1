"""Lending: batch work goes where services leave room, as long as no new services come that would find it taken.

Of two groups the services' has room over between scalings, and a job that comes alone would wait two minutes for a
machine of its own. What stays for its services costs no more for it (docs/algorithms.md has what that brings).

- Where services keep coming, nothing is lent: the next one would have to be bought for, and its machine stays.
- A job's own group comes first; nothing is bought in a group that lends.
- No node with a GPU or such is lent: it is dear, and would outlast its services for one job (1.05 of the bill with
  notebooks and trainings, on one of two seeds 1.11).
"""

from __future__ import annotations

from htas.model.nodes import Node
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.services import keep_coming, new_services


def lending_groups(snapshot: ClusterSnapshot, policy: Policy, now: float) -> frozenset[str]:
    """The groups whose nodes take batch work at present, though they are for services."""
    lending = frozenset(group.name for group in policy.groups if group.lends_room)
    pods = (pod for pod in snapshot.cluster.pods if not pod.is_daemon) if snapshot.expects_more else ()
    return lending if lending and not keep_coming(new_services(pods, now)) else frozenset()


def is_lent(node: Node, lending: frozenset[str]) -> bool:
    """Whether a node takes batch work at present, though its group is for services."""
    return node.group in lending and not any(amount for _, amount in node.allocatable.extended)
