"""Pods on their way out: which end soon, and which are so late that nobody waits for them any more."""

from __future__ import annotations

from htas.model.pods import Pod

OVERDUE_S = 30.0


def is_overdue(pod: Pod, now: float) -> bool:
    """Cluster Autoscaler's IsPodLongTerminating: grace period and 30 s counted from the deletion timestamp."""
    return pod.deleted_at is not None and now > pod.deleted_at + pod.grace_s + OVERDUE_S


def must_leave(pod: Pod, now: float) -> bool:
    """Whether a pod has to be gone from its node before its machine goes."""
    return pod.is_work and not is_overdue(pod, now)


SOON_S = 600.0
"""Pods that have longer to end are not waited for (maxGracePeriod's default): a tenant may ask for centuries."""


def ends_soon(pod: Pod, now: float) -> bool:
    """Whether a pod on a node is on its way out, for some minutes at most, and its kubelet not silent about it."""
    if pod.node is None or pod.deleted_at is None or is_overdue(pod, now):
        return False
    return pod.grace_s <= SOON_S and pod.deleted_at - now <= SOON_S
