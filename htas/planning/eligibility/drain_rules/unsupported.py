"""A pod that asks for what HTAS does not understand (a DRA claim) cannot be judged elsewhere: it stays."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    features = pod.constraints.unsupported
    if not features:
        return None
    return Verdict(
        Blocking.NOT_SAFE_TO_EVICT,
        message=f"{pod.key} asks for {', '.join(features)}, which HTAS cannot place elsewhere",
    )
