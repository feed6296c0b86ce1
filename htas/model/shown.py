"""Words that others wrote, as they may be shown: nothing in them is obeyed, and what is read first stands first.

Tenants name owners and images, clouds and servers write messages, as they like: `\\x1b[2J` clears the screen of whoever
looks, and a sign of bidirectional writing (`\\u202e`) makes `a.txt` of `txt.a`.
"""

from __future__ import annotations

_CONTROL = (0x7F, *range(0x80, 0xA0))
"""DEL, and C1: what ESC begins in two characters, in one."""
_DIRECTION = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Marks, embeddings, overrides and isolates of bidirectional writing (UAX 9), and the separators of lines."""
_SHORT = {code: f"\\x{code:02x}" for code in (*range(0x20), *_CONTROL) if code != ord("\n")}
_LONG = {code: f"\\u{code:04x}" for code in _DIRECTION}
_WORDS = {**_SHORT, **_LONG}
_JSON = {code: f"\\u{code:04x}" for code in (*_CONTROL, *_DIRECTION)}


def literal(text: str) -> str:
    """Control characters as Python writes them, `\\x1b`; ends of lines stay."""
    return text if text.isprintable() else text.translate(_WORDS)


def literal_json(document: str) -> str:
    """An encoded document that says the same: encoders leave DEL, C1 and bidirectional writing as they are."""
    return document if document.isprintable() else document.translate(_JSON)
