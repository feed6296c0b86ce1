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
    "Coming": Meaning("Its machine was launched and the node is not Ready yet."),
    "Leaving": Meaning(
        "HTAS drains it and then deletes its machine.",
        "To keep it: kubectl annotate node NODE htas.io/do-not-disrupt=true; HTAS then undoes the drain.",
    ),
    "Unjudged": Meaning("No consolidation cycle has evaluated it yet.", "Time, at most cycles.cleaning."),
}

_REASONS: tuple[type[Reason], ...] = (Kept, Unplaced, ProposalReason)
_KNOWN: Mapping[str, Meaning] = {
    str(reason): Meaning(reason.says, reason.remedy) for kind in _REASONS for reason in kind
} | dict(OTHERS)


def meaning(reason: str) -> Meaning:
    """Of any reason that the API tells; an unknown one says nothing."""
    return _KNOWN.get(reason, Meaning(""))
