"""A pod whose deletion is overdue (grace period and 30 s more) is waited for no longer."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.planning.cleaning.drain_rules.rule import GOES_WITH_NODE, Context, Verdict

OVERDUE_S = 30.0


def judge(pod: Pod, context: Context) -> Verdict | None:
    if pod.deleted_at is None:
        return None
    return GOES_WITH_NODE if context.now > pod.deleted_at + pod.grace_s + OVERDUE_S else None
