"""A pod whose deletion is overdue (grace period and 30 s more) is waited for no longer."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.planning.cluster.ending import is_overdue
from htas.planning.eligibility.drain_rules.rule import GOES_WITH_NODE, Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    return GOES_WITH_NODE if is_overdue(pod, context.now) else None
