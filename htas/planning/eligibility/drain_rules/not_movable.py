"""A pod that would lose what it holds, or could not run beside its twin, stays."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict
from htas.planning.eligibility.movability import method_for, refusal


def judge(pod: Pod, context: Context) -> Verdict | None:
    method = method_for(pod, context.rules.migration)
    if not method.makes_twin:
        return None
    refused = refusal(pod, method, context.settings, context.volumes)
    if refused is None:
        return None
    reason, words = refused
    return Verdict(Blocking.NOT_MOVABLE, message=f"{reason}: {pod.key}: {words}")
