"""`safe-to-evict: on-completion`: the node waits for the pod to end by itself."""

from __future__ import annotations

from htas.model.pods import SAFE_TO_EVICT, Pod
from htas.planning.eligibility.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    if pod.disruption.get(SAFE_TO_EVICT) != "on-completion":
        return None
    return Verdict(waits=True, message=f"{pod.key} may be evicted on completion only")
