"""Bars made of characters."""

from __future__ import annotations

EIGHTHS = " ▁▂▃▄▅▆▇█"


def bar(share: float, width: int) -> str:
    """A horizontal bar, full at 1."""
    filled = round(max(0.0, min(1.0, share)) * width)
    return "█" * filled + "░" * (width - filled)


def column(share: float) -> str:
    """One character as high as a share of 1."""
    return EIGHTHS[max(0, min(8, round(share * 8)))]
