"""Which running pods may be moved for a suggestion."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.services import services_starting
from htas.planning.cluster.whereabouts import moves_under_way
from htas.planning.eligibility.budgets import ledger_of
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy


class EdgeCandidates:
    """Says of each pod why it may not be moved."""

    def __init__(self, snapshot: ClusterSnapshot, policy: Policy, now: float) -> None:
        self._scheduler = policy.scheduler_name
        self._settle_s = policy.edge.settle_s
        self._now = now
        self._starting = services_starting(snapshot.cluster)
        self._disturbing = DisruptionPolicy(snapshot.cluster, policy, now)
        self._ledger = ledger_of(snapshot)
        self._unsteady = {node.name for node in snapshot.cluster.nodes if not node.is_ready or node.is_draining} | {
            drain.node for drain in snapshot.drains
        }
        self._failed = {failed.pod: failed for failed in snapshot.failed_moves if now < failed.until}
        self._on_their_way = {move.pod for move in moves_under_way(snapshot)}

    def why_not(self, pod: Pod) -> str | None:
        """What keeps a pod where it is; None: nothing."""
        if pod.node is None or pod.started_at is None:
            return f"{pod.key} does not run yet"
        if pod.scheduler != self._scheduler:
            return f"{pod.scheduler} would place its successor"
        if pod.key in self._on_their_way or pod.node in self._unsteady:
            return f"{pod.key} leaves its node already, or its node is not Ready"
        if pod.key in self._failed:
            failed = self._failed[pod.key]
            return f"{failed.why}; tried again in {failed.until - self._now:.0f} s"
        terms = self._disturbing.terms(pod, DisruptionKind.MOVE)
        if terms.allowed_for is not AllowedFor.ANYBODY:
            return terms.why
        return self._unsettled(pod) or self._ledger.refusal(pod)

    def _unsettled(self, pod: Pod) -> str | None:
        starting = self._starting.get(pod.service or "")
        if starting is not None:
            return f"{starting.key} of its service is not Ready on {starting.node}"
        if pod.ready_since is None or self._now - pod.ready_since < self._settle_s:
            return f"{pod.key} has been Ready for less than {self._settle_s:g} s"
        return None
