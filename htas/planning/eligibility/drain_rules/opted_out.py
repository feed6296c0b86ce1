"""`htas.io/migrate: "false"` keeps any pod where it is, a service's too."""

from __future__ import annotations

from htas.model.pods import MAY_MIGRATE, Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules.rule import Context, Verdict


def judge(pod: Pod, context: Context) -> Verdict | None:
    if pod.disruption.get(MAY_MIGRATE) != "false":
        return None
    return Verdict(Blocking.DO_NOT_DISRUPT, message=f'{pod.key} opted out with {MAY_MIGRATE}="false"')
