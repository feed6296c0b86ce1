"""What HTAS recommends: what it would do, and both courses of events side by side, the real one and that with HTAS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from htas.documents.words import age, counted, of_lacking_requests
from htas.model.money import bill_amount, price_text
from htas.model.outcomes import Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.plan_document import instant_text
from htas.model.savings import Course, Savings

NEGLIGIBLE_S = 60.0


class CourseLine(msgspec.Struct, frozen=True):
    """One course: what it has cost, a decimal, and what it costs an hour; machines that run, and how pods waited."""

    spent: str
    price_per_hour: str
    machines: int
    started: int
    mean_wait_s: float


class Advice(msgspec.Struct, frozen=True):
    """One thing that would be done now, were HTAS in charge of the cluster as it is. Of a pod that would leave `source`
    is its node, and `target` the one that it would go to; empty: none, it would wait.
    """

    verb: str
    subject: str
    why: str
    source: str = ""
    target: str = ""


class CoursePoint(msgspec.Struct, frozen=True):
    """What machines cost an hour at an instant, really and with HTAS."""

    at: float
    real: float
    with_htas: float


class RecommendationReport(msgspec.Struct, frozen=True):
    """`saved` is a decimal, negative where HTAS would have cost more; `month` is what would be saved in thirty days as
    in the time so far. `told` is all of it in words, a line each; empty: this daemon acts, and recommends nothing.
    """

    currency: str
    since: float
    at: float
    real: CourseLine
    with_htas: CourseLine
    saved: str
    saved_share: float
    month: str
    evicted: int
    moved: int
    overrun_s: float
    advice: Sequence[Advice]
    told: Sequence[str]
    points: Sequence[CoursePoint]
    lacking: str = ""
    """How many pods state no requests, and what counts for them; empty: all state them."""


MONTH_S = 30 * 86_400.0


def recommendation_report(
    savings: Savings | None, plan: Plan, outcomes: Iterable[Outcome], points: Sequence[CoursePoint] = ()
) -> RecommendationReport:
    """Both courses, and what the newest plan would do to the cluster as it is."""
    found, currency = savings or Savings(plan.taken_at, plan.taken_at), plan.cost.currency
    passed_s = found.at - found.since
    month = round(found.saved_nano_seconds * MONTH_S / passed_s) if passed_s > 0 else 0
    return RecommendationReport(
        currency=currency,
        since=found.since,
        at=found.at,
        real=_line(found.real),
        with_htas=_line(found.with_htas),
        saved=str(bill_amount(found.saved_nano_seconds)),
        saved_share=round(found.share, 4),
        month=str(bill_amount(month)),
        evicted=found.evicted,
        moved=found.moved,
        overrun_s=round(found.overrun_s, 1),
        advice=_advice(plan, outcomes),
        told=told(savings, currency) if savings is not None else (),
        points=points,
        lacking=of_lacking_requests(found.lacking),
    )


def _advice(plan: Plan, outcomes: Iterable[Outcome]) -> list[Advice]:
    moves = {move.pod: move for move in (*plan.migrate, *plan.preempt)}
    found = []
    for each in outcomes:
        if each.status is OutcomeStatus.RECOMMENDED:
            move = moves.get(each.subject)
            places = (move.source, move.target or "") if move is not None else ()
            found.append(Advice(each.action.value, each.subject, each.message, *places))
    return found


def _line(course: Course) -> CourseLine:
    return CourseLine(
        str(bill_amount(course.nano_seconds)),
        price_text(course.nanos_per_hour),
        course.machines,
        course.waits.pods,
        round(course.waits.mean_s, 1),
    )


def told(savings: Savings, currency: str) -> tuple[str, ...]:
    """Both courses in words: what was spent and would have been, and what would have been the price of it."""
    real, ours = savings.real, savings.with_htas
    saved, share = savings.saved_nano_seconds, abs(savings.share)
    verdict = f"{bill_amount(abs(saved))} {currency} {'saved' if saved >= 0 else 'more'} ({share:.0%})"
    lines = [
        f"recommended only, for {age(savings.at - savings.since)}: HTAS changes nothing",
        f"spent {bill_amount(real.nano_seconds)} {currency}; with HTAS {bill_amount(ours.nano_seconds)}: {verdict}",
        f"now {counted(real.machines, 'machine')} at {price_text(real.nanos_per_hour)} {currency}/h; with HTAS "
        f"{ours.machines} at {price_text(ours.nanos_per_hour)}",
        f"pods were pending {real.waits.mean_s:.0f} s on average; with HTAS {ours.waits.mean_s:.0f} s, and "
        f"{counted(savings.evicted, 'pod')} evicted, {savings.moved} moved with their progress",
    ]
    if savings.overrun_s >= NEGLIGIBLE_S:
        lines.append(
            f"charged to HTAS: {age(savings.overrun_s)} of pods that were pending, whose run length was known late"
        )
    if lacking := of_lacking_requests(savings.lacking):
        lines.append(lacking)
    return tuple(lines)


def told_in_status(savings: Savings, currency: str) -> dict[str, Any]:
    """The part of the status document that `htas top` shows as well."""
    return {
        "since": instant_text(savings.since),
        "currency": currency,
        "spent": str(bill_amount(savings.real.nano_seconds)),
        "withHTAS": str(bill_amount(savings.with_htas.nano_seconds)),
        "saved": str(bill_amount(savings.saved_nano_seconds)),
        "told": list(told(savings, currency)),
    }
