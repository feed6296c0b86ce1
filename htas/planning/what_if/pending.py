"""Pending pods count as work where today's nodes have room for them: those nodes are needed."""

from __future__ import annotations

import msgspec

from htas.model.claims import Headroom
from htas.model.pods import Phase, Pod, RunLength, RunLengthSource
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory
from htas.planning.cluster.run_length import LONGEST_S
from htas.planning.planner import plan
from htas.planning.what_if.lifting import FREE


def with_pending(view: ClusterView, policy: Policy, now: float) -> tuple[ClusterView, int]:
    """The view with its pending pods on the nodes that have room for them, whoever schedules them, and their number.

    A pod that does not run yet may start anywhere, so no rule holds it there. Nothing is launched for the others.
    """
    waiting = {pod.key for pod in view.pods if pod.node is None and pod.is_work and not pod.is_terminating}
    if not waiting:
        return view, 0
    placing = msgspec.structs.replace(policy, max_rental_lengthening=None)
    pods = tuple(
        msgspec.structs.replace(pod, scheduler=policy.scheduler_name) if pod.key in waiting else pod
        for pod in view.pods
    )
    snapshot = ClusterSnapshot(
        now,
        msgspec.structs.replace(view, pods=pods),
        memory=Memory.of_long_ago(view.nodes, now),
        headroom=Headroom(sold=()),
        expects_more=False,
    )
    made = plan(snapshot, placing, now, frozenset())
    place = {item.pod: item.node for item in made.bind} | {item.pod: item.node for item in made.nominate}
    place = {pod: node for pod, node in place.items() if pod in waiting}
    pods = tuple(_runs(pod, place[pod.key], now) if pod.key in place else pod for pod in view.pods)
    return msgspec.structs.replace(view, pods=pods), len(place)


def _runs(pod: Pod, node: str, now: float) -> Pod:
    length = pod.run_length or RunLength(LONGEST_S, RunLengthSource.ANNOTATION)
    return msgspec.structs.replace(
        pod, node=node, started_at=now, phase=Phase.RUNNING, disruption=FREE, run_length=length
    )
