"""Services stay unless they opt in with `htas.io/migrate: "true"`; batch work moves unless it says "false"."""

from __future__ import annotations

from htas.model.pods import MAY_MIGRATE, Pod, WorkKind
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules import opted_out
from htas.planning.eligibility.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    wish = pod.disruption.get(MAY_MIGRATE)
    if pod.kind is WorkKind.SERVICE and wish != "true":
        return Verdict(Blocking.SERVICE_NOT_OPTED_IN, message=f'{pod.key} is a service without {MAY_MIGRATE}="true"')
    return opted_out.judge(pod, context)
