"""A pod that no controller would start again stays, unless a twin takes its place: then nobody has to."""

from __future__ import annotations

from htas.model.pods import Pod, with_article
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict
from htas.planning.eligibility.movability import method_for

KNOWN = frozenset({"Job", "ReplicaSet", "ReplicationController", "StatefulSet"})


def judge(pod: Pod, context: Context) -> Verdict | None:
    if pod.owner is None and method_for(pod, context.rules.migration).makes_twin:
        return None
    if pod.owner is None:
        return Verdict(Blocking.NOT_REPLICATED, message=f"{pod.key} has no controller")
    if pod.owner.kind in KNOWN or not context.rules.skip_custom_controller_pods:
        return None
    message = f"{pod.key} is controlled by {with_article(pod.owner.kind)}, which HTAS does not know to start it again"
    if pod.gang:
        message += f"; it is of group {pod.gang}, and evicting one of a group commonly restarts all"
    return Verdict(Blocking.UNKNOWN_CONTROLLER, message=message)
