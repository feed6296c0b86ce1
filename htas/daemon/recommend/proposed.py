"""A plan that is not carried out, as outcomes: each of its actions is recommended."""

from __future__ import annotations

from collections.abc import Iterator

from htas.documents.words import counted
from htas.model.money import price_text
from htas.model.outcomes import CLUSTER, Action, Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.proposals import Launch


def proposed(plan: Plan) -> tuple[Outcome, ...]:
    """What the plan would buy, empty, move and preempt. Binds are left out: another scheduler makes its own."""
    return tuple(Outcome(*told, OutcomeStatus.RECOMMENDED, message) for told, message in _told(plan))


def _price(nanos: int, plan: Plan) -> str:
    return f"{price_text(nanos)} {plan.cost.currency}/h"


def _bought(launch: Launch, plan: Plan) -> str:
    what = f"for {counted(len(launch.pods), 'pod')}" if launch.pods else launch.why
    return f"{launch.flavour} at {_price(launch.nanos_per_hour, plan)} {what}"


def _told(plan: Plan) -> Iterator[tuple[tuple[Action, str], str]]:
    for launch in plan.launches:
        yield (Action.LAUNCH, launch.claim), _bought(launch, plan)
    for move in plan.preempt:
        yield (Action.PREEMPT, move.pod), f"on {move.source}"
    for removing in plan.remove:
        yield (
            (Action.DRAIN, removing.node),
            f"{removing.why}, saves {_price(removing.savings_nanos_per_hour, plan)}",
        )
    for move in plan.migrate:
        yield (Action.MIGRATE if move.target else Action.EVICT, move.pod), f"from {move.source}"
    if plan.optimize:
        pods = "1 pod is pending" if len(plan.optimize) == 1 else f"{len(plan.optimize)} pods are pending"
        yield (Action.SEARCH, CLUSTER), f"{pods} and nothing can be launched"
