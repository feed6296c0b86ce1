"""`safe-to-evict: true` overrides what follows, disruption budgets excepted."""

from __future__ import annotations

from htas.model.pods import SAFE_TO_EVICT, Pod
from htas.planning.eligibility.drain_rules import disruption_budget
from htas.planning.eligibility.drain_rules.rule import MOVES, Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    if pod.disruption.get(SAFE_TO_EVICT) != "true":
        return None
    return disruption_budget.judge(pod, context) or MOVES
