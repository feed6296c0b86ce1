"""A budget that allows no disruption now holds the node."""

from __future__ import annotations

from htas.model.pods import Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    refusal = context.budgets.refusal(pod)
    return None if refusal is None else Verdict(Blocking.NOT_ENOUGH_PDB, message=refusal)
