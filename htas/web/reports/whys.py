"""Why each node stays or goes, in a word and a sentence: the plan's reasons, and what stands between plan and deed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from htas.documents.remedies import Meaning, meaning
from htas.model.approvals import ApprovalState, Asked
from htas.web.seat import Picture

Why = tuple[str, str]
UNJUDGED: Why = ("Unjudged", "")
LEAVING, WOULD_LEAVE = "Leaving", "WouldLeave"
WAITS, APPROVED, REJECTED = "PendingApproval", "Approved", "Rejected"
_OF_ANSWERS = {ApprovalState.WAITING: WAITS, ApprovalState.APPROVED: APPROVED, ApprovalState.REJECTED: REJECTED}
OF_PROPOSALS = {
    WOULD_LEAVE: Meaning("HTAS would drain and delete it; in this mode it changes nothing."),
    WAITS: Meaning("HTAS proposes to drain it, and waits for approval.", "Approve or reject it under To approve."),
    APPROVED: Meaning("Its drain is approved: it starts in the next cycles, if it is still proposed."),
    REJECTED: Meaning("Its drain was rejected, for a while.", "Time: HTAS proposes it again."),
}
"""What these words mean, and what would change it; the plan's own reasons have theirs in `documents/remedies.py`."""


def meaning_of(why: str) -> Meaning:
    """A reason of a node in a sentence, and what would change it, whichever node it is."""
    return OF_PROPOSALS.get(why) or meaning(why)


def whys(picture: Picture) -> Mapping[str, Why]:
    """By node; what no cycle has judged is not among them. Of what is said of a node the last holds."""
    leaving = LEAVING if picture.acts else WOULD_LEAVE
    why = dict(_answered(picture, picture.asked))
    # Reasons are words: `.value` of an enum takes 1 µs, and there are 5,000.
    why |= {item.node: (item.reason, item.message) for item in picture.plan.kept}
    why |= _answered(picture, [each for each in picture.asked if each.proposed_last >= picture.judged_at])
    why |= {item.node: (leaving, item.message or item.reason) for item in picture.allowed.remove}
    return why | {drain.node: (LEAVING, drain.reason) for drain in picture.snapshot.drains}


def _answered(picture: Picture, among: Iterable[Asked]) -> Iterator[tuple[str, Why]]:
    """What is asked about a node, after what was answered: that is over."""
    asked = [each for each in among if each.state in _OF_ANSWERS and not each.is_used]
    for each in sorted(asked, key=lambda each: each.state is ApprovalState.WAITING):
        for node in each.question.nodes:
            yield node, (_OF_ANSWERS[each.state], _told(each, picture.plan.cost.currency))


def _told(each: Asked, currency: str) -> str:
    by = f", {each.state.value} by {each.who}" if each.who else ""
    return f"{each.question.told(currency)}{by}"
