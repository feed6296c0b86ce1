"""What each word that tells why means, and what would change it: for people who read it and want to act on it.

Reasons carry their own (`model/reasons.py`); here are the words that are none.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from htas.model.reasons import Kept, ProposalReason, Reason, Unplaced


class Meaning(msgspec.Struct, frozen=True):
    """What a word says, and what would change it; empty: time alone, or nothing needs to."""

    says: str
    remedy: str = ""


OTHERS: Mapping[str, Meaning] = {
    "Coming": Meaning("It was launched and is not Ready yet."),
    "Leaving": Meaning(
        "HTAS is draining and deleting it.",
        "To keep it: kubectl annotate node NODE htas.io/do-not-disrupt=true; HTAS undoes the drain.",
    ),
    "Unjudged": Meaning("No cleaning cycle has decided on it yet.", "Time, at most cycles.cleaning."),
}

_REASONS: tuple[type[Reason], ...] = (Kept, Unplaced, ProposalReason)
_KNOWN: Mapping[str, Meaning] = {
    str(reason): Meaning(reason.says, reason.remedy) for kind in _REASONS for reason in kind
} | dict(OTHERS)


def meaning(reason: str) -> Meaning:
    """Of any reason that the API tells; an unknown one says nothing."""
    return _KNOWN.get(reason, Meaning(""))
