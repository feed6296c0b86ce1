"""Instants and lengths of time as people read them."""

from __future__ import annotations

from htas.model.plan_document import instant_text

_UNITS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def length(seconds: float) -> str:
    """Its two greatest units at most: `45s`, `3m20s`, `2h5m`, `12d` (from ten days on hours do not matter)."""
    left = max(0, int(seconds))
    for i, (size, name) in enumerate(_UNITS):
        count, rest = divmod(left, size)
        if not count:
            continue
        if count >= 10 or i == len(_UNITS) - 1:
            return f"{count}{name}"
        less_size, less = _UNITS[i + 1]
        return f"{count}{name}" + (f"{rest // less_size}{less}" if rest // less_size else "")
    return "0s"


def ago(at: float, now: float) -> str:
    """`3m20s ago`; what is not over yet is told by its instant."""
    return f"{length(now - at)} ago" if at <= now else instant_text(at)
