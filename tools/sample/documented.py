"""The example of docs/simulate.md, as the commands print it: `python -m tools.sample.documented` writes it anew."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tools.sample.cluster import sample

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/simulate.md"
BEGIN, END = "<!-- printed: begin -->", "<!-- printed: end -->"
PARTS = 4
"""What the page shows of the output: the answer, the costs, the machines and the rules, each after an empty line."""


def printed() -> str:
    """What `htas simulate` prints of the sample, as a block of the page."""
    text = json.dumps({"kind": "List", "items": sample()}).encode()
    words = [sys.executable, "-m", "htas", "simulate", "--from", "-", "--flavours", "config/flavours/nectar.yaml"]
    ended = subprocess.run(words, input=text, capture_output=True, check=True, cwd=ROOT)
    return block(ended.stdout.decode())


def block(output: str) -> str:
    """The first parts of an output, as a block of code."""
    lines = [line.rstrip() for line in output.splitlines()]
    shown = "\n".join(lines).split("\n\n")[:PARTS]
    return "\n".join(f"    {line}".rstrip() for line in "\n\n".join(shown).splitlines())


def documented() -> str:
    return PAGE.read_text().partition(f"{BEGIN}\n")[2].partition(f"\n{END}")[0]


def main() -> None:
    before, _, rest = PAGE.read_text().partition(f"{BEGIN}\n")
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{printed()}\n{END}{after}")


if __name__ == "__main__":
    main()
