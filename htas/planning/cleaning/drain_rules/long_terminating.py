"""A pod whose deletion is overdue (grace period and 30 s more) is waited for no longer."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.planning.cleaning.drain_rules.rule import GOES_WITH_NODE, Context, Verdict

OVERDUE_S = 30.0


def is_overdue(pod: Pod, now: float) -> bool:
    """Cluster Autoscaler's IsPodLongTerminating: grace period and 30 s counted from the deletion timestamp."""
    return pod.deleted_at is not None and now > pod.deleted_at + pod.grace_s + OVERDUE_S


def judge(pod: Pod, context: Context) -> Verdict | None:
    return GOES_WITH_NODE if is_overdue(pod, context.now) else None
