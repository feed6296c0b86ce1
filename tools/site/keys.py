"""Writes the table of docs/prices.md anew after a change of the settings: `python -m tools.site.keys`."""

from __future__ import annotations

from pathlib import Path

from tools.site.configuration import price_keys

PAGE = Path(__file__).resolve().parents[2] / "docs/prices.md"
BEGIN, END = "<!-- made: begin -->\n", "<!-- made: end -->"


def with_keys(page: str) -> str:
    """The page with the keys as the settings have them now."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + price_keys() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(with_keys(PAGE.read_text()))
