"""History: what was done when, and why, from recorded cycles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from htas.model.money import price_text
from htas.model.record import CycleRecord, Outcome


class Entry(msgspec.Struct, frozen=True):
    """One thing that was done, or tried."""

    cycle: int
    at: float
    verb: str
    subject: str
    status: str
    why: str


def entries(cycles: Iterable[CycleRecord], verb: str | None = None) -> Iterator[Entry]:
    """Outcomes in order of time, with what the plan said of them."""
    for record in cycles:
        reasons = _reasons(record)
        for outcome in record.outcomes:
            if verb is None or outcome.verb == verb:
                yield Entry(record.id, record.at, outcome.verb, outcome.subject, outcome.status, _why(outcome, reasons))


def _reasons(record: CycleRecord) -> dict[tuple[str, str], str]:
    currency = record.plan.cost.currency
    launches = {
        ("launch", item.claim): f"{item.flavour} at {price_text(item.nanos_per_hour)} {currency}/h for "
        + (f"{len(item.pods)} pods" if item.pods else item.why)
        for item in record.plan.launch
    }
    removals = {
        ("drain", item.node): f"{item.message}, saves {price_text(item.savings_nanos_per_hour)} {currency}/h"
        for item in record.plan.remove
    }
    return {**launches, **removals}


def _why(outcome: Outcome, reasons: dict[tuple[str, str], str]) -> str:
    planned = reasons.get((outcome.verb, outcome.subject))
    if planned is None or outcome.status != "done":
        return outcome.message
    return planned
