"""What an answer counts as: the document's categories (its Figure 3), and one for a search that only found no gain."""

from __future__ import annotations

Line = dict[str, object]
BETTER_OPTIMAL, BETTER, DEFAULT_OPTIMAL = "Better & Optimal", "Better", "Default was optimal"
NO_CALL, NO_GAIN, FAILURE = "No call", "No gain", "Failure"
CATEGORIES = BETTER_OPTIMAL, BETTER, DEFAULT_OPTIMAL, NO_CALL, NO_GAIN, FAILURE


def category(line: Line) -> str:
    """By pods placed of each priority; optimal: proven that no more can be placed. No call: the default placed all.

    The document counts an answer that is neither better nor proven as a failure; here it is No gain, and a failure is
    no answer in time or one that is worse than the default placement.
    """
    before, after = line["before"], line["after"]
    if not line.get("is_called", True):
        return NO_CALL
    if after is None or list(after) < list(before):  # type: ignore[call-overload]  # counts, from the highest tier
        return FAILURE
    if list(after) == list(before):  # type: ignore[call-overload]  # counts, from the highest tier
        return DEFAULT_OPTIMAL if line["is_placing_proven"] else NO_GAIN
    return BETTER_OPTIMAL if line["is_placing_proven"] else BETTER
