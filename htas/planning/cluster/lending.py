"""Lending: batch work goes where services leave room, as long as no new services come that would find it taken.

Of two groups the services' has room over between scalings, and a job that comes alone would wait two minutes for a
machine of its own. What stays for its services costs no more for it (docs/algorithms.md has what that brings).

- It is placed there, or moved there with its progress, and that is all: nobody begins again or is evicted for it, and
  no node is kept for work to come.
- Where services keep coming, nothing is lent: the next one would have to be bought for, and its machine stays. Nor
  while a service's pod has just come, kube-scheduler's too: a job of higher priority took the room that it fitted in.
- A job's own group comes first; nothing is bought in a group that lends.
- An empty node is not lent: it would stay for a job alone. Nor is one that is to go however well it is used.
- It is lent to jobs alone that may be disrupted, and whose end is known: stated, or learned of three of their like.
  Others are lent what costs at most twice a machine of their own, unless they are moved with their progress: nothing
  stated counts as 600 s, and such a job ran for a day on a machine of eight cores, for 19.9 times the bill.
- No node with a GPU or another extended resource is lent, and no room to jobs of more than an hour: dear or large
  machines would outlast their services for one job (1.05 of the bill with notebooks and trainings, on one of two seeds
  1.11).
"""

from __future__ import annotations

from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT, Node
from htas.model.pods import KIND_OF_OWNER, SAFE_TO_EVICT, Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.run_length import run_length_s
from htas.planning.cluster.services import keep_coming, new_services

LONGEST_S = 3600.0

FIRST_TURN_S = 60.0
"""Services' pods have the room before jobs that may borrow; who has not found any in so long waits for its machine."""

RUNS = 3

TIMES_ITS_OWN = 2
ANY_PRICE = 2**62

HOLDING = (DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT)
"""Annotations of pods that keep their nodes."""


class Borrowing:
    """Who may be given room that services leave, and of how dear a node."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        lending = [group for group in policy.groups if group.lends_room]
        self._is_lending = bool(lending)
        self._keeps_progress = all(group.cleaning.migration.keeps_progress for group in lending)
        taking = [group for group in policy.groups if group.is_elastic and group.workload.takes(WorkKind.BATCH)]
        flavours = {each.name: each for group in taking for each in policy.flavours_of(group)} if lending else {}
        self._flavours = sorted(flavours.values(), key=lambda flavour: flavour.nanos_per_hour)

    def up_to(self, pod: Pod) -> int:
        """Billionths an hour that a node lent to a pod may cost; 0: none is lent to it.

        A job of unknown length may hold the node after its services have gone: at twice what one of its own costs.
        """
        is_ours = self._is_lending and pod.kind is WorkKind.BATCH and pod.scheduler == self._policy.scheduler_name
        if not is_ours or _is_held(pod) or run_length_s(pod, self._policy) > LONGEST_S:
            return 0
        if self._keeps_progress or _ends_by_then(pod.run_length):
            return ANY_PRICE
        fitting = (each for each in self._flavours if pod.requests.fits_in(each.capacity))
        own = next(fitting, None)
        return TIMES_ITS_OWN * own.nanos_per_hour if own is not None else 0


def _is_held(pod: Pod) -> bool:
    says = pod.disruption
    return says.get(SAFE_TO_EVICT) == "false" or any(says.get(key, "false") != "false" for key in HOLDING)


def _ends_by_then(length: RunLength | None) -> bool:
    """Whether a job surely ends by then: as stated, forced, or learned of so many runs of its template or image."""
    if length is None or length.source is RunLengthSource.DEFAULT:
        return False
    return length.source is not RunLengthSource.LEARNED or (length.basis != KIND_OF_OWNER and length.runs >= RUNS)


def lent_nodes(snapshot: ClusterSnapshot, policy: Policy, now: float) -> dict[str, int]:
    """The nodes that take batch work at present, though their group is for services, with their prices an hour."""
    lending = {group.name for group in policy.groups if group.lends_room}
    nodes = [node for node in snapshot.cluster.nodes if node.group in lending] if lending else []
    if not nodes:
        return {}
    pods = snapshot.cluster.pods
    if snapshot.expects_more and keep_coming(new_services(pods, now)):
        return {}
    if any(_waits_for_its_turn(pod, now) for pod in pods):
        return {}
    serving = {pod.node for pod in pods if pod.kind is WorkKind.SERVICE and pod.is_work and not pod.is_terminating}
    has_extended = (any(amount for _, amount in node.allocatable.extended) for node in nodes)
    return {
        node.name: _price(node, policy)
        for node, is_special in zip(nodes, has_extended, strict=True)
        if node.name in serving and not is_special
    }


def _price(node: Node, policy: Policy) -> int:
    price = policy.catalogue.price(node.flavour, node.zone)
    return price.nanos_per_hour if price is not None else ANY_PRICE


def _waits_for_its_turn(pod: Pod, now: float) -> bool:
    is_waiting = pod.node is None and not pod.gates and not pod.is_terminating and not pod.twin_of
    return is_waiting and pod.kind is WorkKind.SERVICE and now - pod.created_at < FIRST_TURN_S
