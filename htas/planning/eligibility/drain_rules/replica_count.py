"""With a minimum replica count, pods of smaller ReplicaSets and ReplicationControllers stay."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict

COUNTED = frozenset({"ReplicaSet", "ReplicationController"})


def judge(pod: Pod, context: Context) -> Verdict | None:
    owner, least = pod.owner, context.rules.min_replica_count
    if owner is None or owner.kind not in COUNTED or owner.replicas is None or owner.replicas >= least:
        return None
    message = f"{pod.key}: {owner.kind} {owner.name} has {owner.replicas} replicas, fewer than {least}"
    return Verdict(Blocking.MIN_REPLICAS_REACHED, message=message)
