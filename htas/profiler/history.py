"""History: what was done when, and why, from recorded cycles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from htas.model.money import price_text
from htas.model.outcomes import Action, Outcome
from htas.model.plan import Plan
from htas.model.record import CycleRecord


class Entry(msgspec.Struct, frozen=True):
    """One thing that was done, or tried.

    `nanos_per_hour` is the price of a launch and the saving of a drain, in billionths of the currency an hour;
    None where nothing came of it, or the plan states neither (a bind, a machine asked for again after a crash).
    """

    cycle: int
    at: float
    verb: str
    subject: str
    status: str
    why: str
    nanos_per_hour: int | None = None


def entries(cycles: Iterable[CycleRecord], verb: str | None = None, since: float = 0.0) -> Iterator[Entry]:
    """Outcomes in the order of the cycles, with what the plan said of them; all verbs, or one."""
    launches: dict[tuple[Action, str], tuple[str, int]] = {}  # the cloud answers after the cycle that asked it
    for record in cycles:
        planned = _planned(record.plan)
        launches |= {key: said for key, said in planned.items() if key[0] is Action.LAUNCH}
        if record.at < since:
            continue
        for outcome in record.outcomes:
            key = outcome.action, outcome.subject
            if verb is None or outcome.action == verb:
                yield _entry(record, outcome, planned.get(key) or launches.get(key))


def _entry(record: CycleRecord, outcome: Outcome, planned: tuple[str, int] | None) -> Entry:
    # What failed or was dropped tells why by itself; the plan's reason is that of what was done.
    why, nanos = planned if planned is not None and outcome.status.is_well else (outcome.message, None)
    return Entry(record.id, record.at, outcome.action.value, outcome.subject, outcome.status, why, nanos)


def _planned(plan: Plan) -> dict[tuple[Action, str], tuple[str, int]]:
    """Reason and money by action and subject."""
    currency = plan.cost.currency
    launches = {
        (Action.LAUNCH, item.claim): (
            f"{item.flavour} at {price_text(item.nanos_per_hour)} {currency}/h {item.purpose}",
            item.nanos_per_hour,
        )
        for item in plan.launches
    }
    removals = {
        (Action.DRAIN, item.node): (
            f"{item.why}, saves {price_text(item.savings_nanos_per_hour)} {currency}/h",
            item.savings_nanos_per_hour,
        )
        for item in plan.remove
    }
    return {**launches, **removals}
