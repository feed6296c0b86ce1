"""Lists of whole numbers on a command line."""

from __future__ import annotations


def numbers(text: str) -> list[int]:
    """The numbers of `1,2,5` or `2-6` or both: `1,4-6` is 1, 4, 5, 6.

    Raises:
        ValueError: something between the commas is neither a number nor two with a hyphen between them.
    """
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
