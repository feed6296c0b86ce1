"""Pods of kube-system stay unless a disruption budget covers them."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    if pod.namespace != "kube-system" or not context.rules.skip_system_pods or context.budgets.has_budget(pod):
        return None
    return Verdict(
        Blocking.UNMOVABLE_KUBE_SYSTEM_POD, message=f"{pod.key} is in kube-system and no disruption budget covers it"
    )
