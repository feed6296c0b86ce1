"""A pod that would lose what it holds, were it moved with its progress, stays."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.model.reasons import Blocking
from htas.planning.cleaning.drain_rules.rule import Context, Verdict
from htas.planning.cleaning.movability import refusal


def judge(pod: Pod, context: Context) -> Verdict | None:
    method = context.rules.migration
    if not method.keeps_progress:
        return None
    refused = refusal(pod, method, context.settings, context.volumes)
    if refused is None:
        return None
    reason, words = refused
    return Verdict(Blocking.NOT_MOVABLE, message=f"{reason}: {pod.key}: {words}")
