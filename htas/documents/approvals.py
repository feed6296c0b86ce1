"""What waits for a word, and what was said of late, as commands, API and pages tell it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

import msgspec

from htas.model.approvals import ApprovalState, Asked, Leaving
from htas.model.modes import Approval, Otherwise
from htas.model.money import price_text

PROPOSED_S = 120.0
"""What no plan has had for so long is not proposed any more; what is about nodes, once they were judged without it."""


class ApprovalItem(msgspec.Struct, frozen=True):
    """One question. `until`: when silence counts as `otherwise`; `who` said what it is, and when. `proposed_last` is
    when a plan last had it, and `is_proposed` whether that is so still: a yes to what no plan has any more counts if it
    is proposed again for the same pods.
    """

    id: str
    kind: str
    subject: str
    told: str
    why: str
    pods: Sequence[str]
    saves_per_hour: str
    state: ApprovalState
    since: float
    until: float | None
    said_at: float | None
    who: str
    proposed_last: float
    is_proposed: bool = True
    is_begun: bool = False
    """A yes that has been acted on."""
    moves: Sequence[Leaving] = ()
    """How each of the pods would leave its node."""
    lapsed: str = ""
    """Of a yes that came to nothing: why."""


class ApprovalsReport(msgspec.Struct, frozen=True):
    """`is_asked` False: this daemon carries out what it plans by itself, or only recommends it. `now` is by its clock,
    which of a sandbox is not the wall's.
    """

    is_asked: bool
    currency: str
    otherwise: Otherwise
    items: Sequence[ApprovalItem]
    now: float = 0.0


class Verdict(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"


class Word(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said: of which questions, by their ids, or of all that wait."""

    verdict: Verdict
    ids: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=64)], ...], msgspec.Meta(max_length=500)] = ()
    all: bool = False


def approvals_report(
    asked: Iterable[Asked], approval: Approval | None, currency: str, now: float, judged_at: float = 0.0
) -> ApprovalsReport:
    """`judged_at`: when nodes were judged last."""
    rules = approval or Approval()
    known = list(asked) if approval is not None else []
    now = max([now, *(each.proposed_last for each in known)])  # a cycle may have ended since somebody looked
    items = [_item(each, rules, currency, _is_proposed(each, now, judged_at)) for each in known]
    return ApprovalsReport(approval is not None, currency, rules.otherwise, items, now)


def _is_proposed(each: Asked, now: float, judged_at: float) -> bool:
    is_judged_since = bool(each.question.nodes) and each.proposed_last < judged_at
    return now - each.proposed_last <= PROPOSED_S and not is_judged_since


def _item(each: Asked, approval: Approval, currency: str, is_proposed: bool) -> ApprovalItem:
    what, is_waiting = each.question, each.state is ApprovalState.WAITING
    return ApprovalItem(
        id=what.id,
        kind=what.kind.value,
        subject=what.subject,
        told=what.told(currency),
        why=what.why,
        pods=what.pods,
        saves_per_hour=price_text(what.nanos_per_hour) if what.nanos_per_hour > 0 else "",
        state=each.state,
        since=each.proposed_at,
        until=each.proposed_at + approval.within_s if is_waiting else None,
        said_at=each.said_at,
        who=each.who,
        proposed_last=each.proposed_last,
        is_proposed=is_proposed,
        is_begun=each.is_used,
        moves=what.moves,
        lapsed=each.lapsed,
    )
