"""Pods with data on the node (hostPath, emptyDir on disk) stay."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    if not pod.has_local_storage or not context.rules.skip_local_storage:
        return None
    return Verdict(Blocking.LOCAL_STORAGE_REQUESTED, message=f"{pod.key} keeps data on its node (hostPath or emptyDir)")
