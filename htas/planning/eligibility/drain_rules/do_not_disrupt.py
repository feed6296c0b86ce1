"""`do-not-disrupt` (HTAS's and Karpenter's): "true" for ever, a duration such as "30m" from the pod's start."""

from __future__ import annotations

import re

from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT
from htas.model.pods import Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def judge(pod: Pod, context: Context) -> Verdict | None:
    for key in (DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT):
        value = pod.disruption.get(key)
        if value is None or value == "false":
            continue
        length = duration_s(value)
        if length is None:
            # "true" and what cannot be understood protect alike: a promise is not dropped for a typing error.
            return Verdict(Blocking.DO_NOT_DISRUPT, message=f"{pod.key}: {key}={value}")
        start = pod.started_at if pod.started_at is not None else pod.created_at
        if context.now < start + length:
            message = f"{pod.key}: {key}={value}, {start + length - context.now:.0f} s left"
            return Verdict(Blocking.DO_NOT_DISRUPT, message=message)
    return None


def duration_s(text: str) -> float | None:
    """Seconds of a duration as Go writes it ("90s", "1h30m"); None for anything else."""
    if not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
