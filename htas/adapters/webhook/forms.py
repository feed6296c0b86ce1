"""What is sent of a notice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from htas.model.notices import Form, Notice, Occasion
from htas.model.shown import literal

LONGEST = 2_000
"""Of each text; Slack cuts a message at 4,000 characters."""
_MARKS = {
    Occasion.LIMIT_REACHED: ":no_entry:",
    Occasion.LAUNCH_FAILED: ":warning:",
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
    """Title and text as code: in it neither Slack nor Mattermost looks for names to call (`@channel`) or for links, and
    what others wrote (a pod's name, the cloud's words) has both.
    """
    often = f" ({notice.times} times since the last notice)" if notice.times > 1 else ""
    first = f"{_MARKS[notice.occasion]} {_code(notice.title)} · {_code(notice.cluster)}{often}"
    lines = [first, _code(notice.text) if notice.text else ""]
    return {"text": "\n".join(filter(None, lines)), "unfurl_links": False, "unfurl_media": False}


def _code(text: str) -> str:
    """Without Slack's three signs of control, which it obeys in code, too, and without what would end the code."""
    cut = literal(text.replace("\r", "").replace("\n", " ").replace("`", "'"))[:LONGEST]
    return "`" + cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") + "`"
