"""`safe-to-evict: false` holds the node."""

from __future__ import annotations

from htas.model.pods import SAFE_TO_EVICT, Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    if pod.disruption.get(SAFE_TO_EVICT) != "false":
        return None
    return Verdict(Blocking.NOT_SAFE_TO_EVICT, message=f'{pod.key}: {SAFE_TO_EVICT}="false"')
