"""Services stay unless they opt in with `htas.io/migrate: "true"`; batch work moves unless it says "false"."""

from __future__ import annotations

from htas.model.pods import MAY_MIGRATE, Pod, WorkKind
from htas.model.reasons import Blocking
from htas.planning.cleaning.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    wish = pod.disruption.get(MAY_MIGRATE)
    if pod.kind is WorkKind.SERVICE and wish != "true":
        return Verdict(Blocking.SERVICE_NOT_OPTED_IN, message=f'{pod.key} is a service without {MAY_MIGRATE}="true"')
    if wish == "false":
        return Verdict(Blocking.DO_NOT_DISRUPT, message=f'{pod.key} opted out with {MAY_MIGRATE}="false"')
    return None
