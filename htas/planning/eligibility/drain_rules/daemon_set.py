"""DaemonSet pods belong to their node and end with it."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.planning.eligibility.drain_rules.rule import GOES_WITH_NODE, Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    return GOES_WITH_NODE if pod.is_daemon else None
