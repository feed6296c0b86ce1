"""Services stay unless they opt in with `htas.io/migrate: "true"`, or their group moves all that do not opt out.

Batch work moves unless it says "false". What is neither is a typing error, and protects.
"""

from __future__ import annotations

from htas.model.pods import MAY_MIGRATE, Pod, WorkKind
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules import opted_out
from htas.planning.eligibility.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    wish = pod.disruption.get(MAY_MIGRATE)
    may_move = wish == "true" or (wish is None and context.rules.moves_services)
    if pod.kind is WorkKind.SERVICE and not may_move:
        return Verdict(Blocking.SERVICE_NOT_OPTED_IN, message=f'{pod.key} is a service without {MAY_MIGRATE}="true"')
    return opted_out.judge(pod, context)
