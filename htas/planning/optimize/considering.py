"""The document's "all pods of the cluster", as a what-if: whom a search would have if everybody let it."""

from __future__ import annotations

import msgspec

from htas.model.pods import MAY_MIGRATE, SAFE_TO_EVICT, Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot

_CONSENT = {MAY_MIGRATE: "true", SAFE_TO_EVICT: "true"}


def as_if_all_may_move(snapshot: ClusterSnapshot, policy: Policy) -> ClusterSnapshot:
    """The snapshot in which every pod is HTAS's, and those that a controller makes anew have opted in to moves.

    What they promise otherwise (do-not-disrupt, data on the node) is passed over; disruption budgets hold, and so do
    constraints among pods, which the optimiser has no model of. Not to be carried out: nobody has consented.
    """

    def considered(pod: Pod) -> Pod:
        if not pod.is_work:
            return pod
        consent = pod.disruption if pod.owner is None else _CONSENT
        return msgspec.structs.replace(pod, scheduler=policy.scheduler_name, disruption=consent)

    pods = tuple(considered(pod) for pod in snapshot.cluster.pods)
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=pods))
