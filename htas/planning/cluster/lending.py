"""Lending: batch work goes where services leave room, as long as no new services come that would find it taken.

Of two groups the services' has room over between scalings, and a job that comes alone would wait two minutes for a
machine of its own. What stays for its services costs no more for it (docs/algorithms.md has what that brings).

- It is placed there, and that is all: nobody is moved there or evicted for it, and no node is kept for work to come.
- Where services keep coming, nothing is lent: the next one would have to be bought for, and its machine stays. Nor
  while a service's pod has just come, kube-scheduler's too: a job of higher priority took the room that it fitted in.
- A job's own group comes first; nothing is bought in a group that lends.
- An empty node is not lent: it would stay for a job alone. Nor is one that is to go however well it is used.
- It is lent to jobs alone that may be disrupted, and whose end is known: stated, or learned of three of their like.
  Where they are moved with their progress it need not be: streams beside huge jobs pay 0.9 of the bill for that.
- No node with a GPU or another extended resource is lent, and no room to jobs of more than an hour: dear or large
  machines would outlast their services for one job (1.05 of the bill with notebooks and trainings, on one of two seeds
  1.11).
"""

from __future__ import annotations

from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT
from htas.model.pods import KIND_OF_OWNER, SAFE_TO_EVICT, Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.run_length import run_length_s
from htas.planning.cluster.services import keep_coming, new_services

LONGEST_S = 3600.0

FIRST_TURN_S = 60.0
"""Services' pods have the room before jobs that may borrow; who has not found any in so long waits for its machine."""

RUNS = 3

HOLDING = (DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT)
"""Annotations of pods that keep their nodes."""


def may_borrow(pod: Pod, policy: Policy) -> bool:
    """Whether a pod may be given room that services leave: it is known to end soon, and nobody forbids to move it.

    A job of which nothing was known counted as one of 600 s, and held a node for days after its services had gone.
    """
    if (
        pod.kind is not WorkKind.BATCH
        or pod.scheduler != policy.scheduler_name
        or not _will_leave(pod.run_length, policy)
    ):
        return False
    is_held = pod.disruption.get(SAFE_TO_EVICT) == "false" or any(
        pod.disruption.get(key, "false") != "false" for key in HOLDING
    )
    return not is_held and run_length_s(pod, policy) <= LONGEST_S


def _will_leave(length: RunLength | None, policy: Policy) -> bool:
    """Whether a node can be had back from a job: it ends by then, as stated, forced or learned of so many runs of its
    template or image; or it is moved with its progress, however long it runs.
    """
    if all(group.cleaning.migration.keeps_progress for group in policy.groups if group.lends_room):
        return True
    if length is None or length.source is RunLengthSource.DEFAULT:
        return False
    return length.source is not RunLengthSource.LEARNED or (length.basis != KIND_OF_OWNER and length.runs >= RUNS)


def lent_nodes(snapshot: ClusterSnapshot, policy: Policy, now: float) -> frozenset[str]:
    """The nodes that take batch work at present, though their group is for services."""
    lending = {group.name for group in policy.groups if group.lends_room}
    nodes = [node for node in snapshot.cluster.nodes if node.group in lending] if lending else []
    if not nodes:
        return frozenset()
    pods = snapshot.cluster.pods
    if snapshot.expects_more and keep_coming(new_services(pods, now)):
        return frozenset()
    if any(_waits_for_its_turn(pod, now) for pod in pods):
        return frozenset()
    serving = {pod.node for pod in pods if pod.kind is WorkKind.SERVICE and pod.is_work and not pod.is_terminating}
    return frozenset(
        node.name
        for node in nodes
        if node.name in serving and not any(amount for _, amount in node.allocatable.extended)
    )


def _waits_for_its_turn(pod: Pod, now: float) -> bool:
    is_waiting = pod.node is None and not pod.gates and not pod.is_terminating and not pod.twin_of
    return is_waiting and pod.kind is WorkKind.SERVICE and now - pod.created_at < FIRST_TURN_S
