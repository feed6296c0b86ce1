"""What is sent of a notice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from htas.model.notices import Form, Notice, Occasion

LONGEST = 2_000
"""Of each text; Slack cuts a message at 4,000 characters."""
_MARKS = {
    Occasion.LIMIT_REACHED: ":no_entry:",
    Occasion.PURCHASE_FAILED: ":warning:",
    Occasion.DRAIN_UNDONE: ":leftwards_arrow_with_hook:",
    Occasion.BUDGET: ":moneybag:",
    Occasion.TEST: ":white_check_mark:",
}


def body_of(notice: Notice, form: Form) -> dict[str, Any]:
    """The document that is posted."""
    return _slack(notice) if form is Form.SLACK else _json(notice)


def _json(notice: Notice) -> dict[str, Any]:
    """`id` is the same where a notice is sent again: who counts them may count each once."""
    return {
        "version": 1,
        "id": f"{notice.cluster}/{notice.occasion}/{notice.key}/{int(notice.at)}",
        "cluster": notice.cluster,
        "occasion": notice.occasion.value,
        "key": notice.key,
        "title": notice.title[:LONGEST],
        "text": notice.text[:LONGEST],
        "at": datetime.fromtimestamp(notice.at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "times": notice.times,
    }


def _slack(notice: Notice) -> dict[str, Any]:
    """Bold title and text. What others wrote (a pod's name, the cloud's words) is text: no link, no call."""
    often = f" ({notice.times} times since it was told last)" if notice.times > 1 else ""
    lines = [
        f"{_MARKS[notice.occasion]} *{_plain(notice.title)}* · {_plain(notice.cluster)}{often}",
        _plain(notice.text),
    ]
    return {"text": "\n".join(filter(None, lines)), "unfurl_links": False, "unfurl_media": False}


def _plain(text: str) -> str:
    """Without Slack's three signs of control, and without what would end the title's bold letters."""
    cut = text[:LONGEST].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return cut.translate({ord(sign): None for sign in "*`"} | {10: " ", 13: " "})
