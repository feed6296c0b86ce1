"""Draws docs/pictures/bill.svg, the README's picture, from docs/paper/savings.csv: `python -m tools.site.bill`.

The bills of four patterns of work, as a share of Cluster Autoscaler's. `python -m tools.lab run paper` plays them, and
`python -m tools.lab report` writes the savings: ten seeds, paired seed by seed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAVINGS, PICTURE = ROOT / "docs/paper/savings.csv", ROOT / "docs/pictures/bill.svg"
PATTERNS = {"stable": "Stable", "growing": "Growing", "cycle": "Cycle", "on-off": "On and off"}
NAMES = ("Cluster Autoscaler", "Karpenter-like", "HTAS")
WIDTH, HEIGHT, BASE, TALL = 720, 300, 238, 150
BAR, GROUP, LEFT = 44, 178, 24

HEAD = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" \
aria-label="The bill of the same work under Cluster Autoscaler, a Karpenter-like autoscaler and HTAS">
<!-- made by tools/site/bill.py from docs/paper/savings.csv -->
<style>
  text {{ font: 13px system-ui, sans-serif; fill: #1f2933; }}
  .title {{ font-size: 16px; font-weight: 600; }}
  .note {{ font-size: 12px; fill: #52606d; }}
  .value {{ text-anchor: middle; }}
  .best {{ font-weight: 700; }}
  .b0 {{ fill: #9aa5b1; }} .b1 {{ fill: #6b8fa8; }} .b2 {{ fill: #12836b; }}
  .line {{ stroke: #9aa5b1; }}
  .card {{ fill: #ffffff; }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e4e7eb; }}
    .note {{ fill: #a8b3be; }}
    .b0 {{ fill: #616e7c; }} .b1 {{ fill: #7fa8c4; }} .b2 {{ fill: #5fd3a0; }}
    .line {{ stroke: #616e7c; }}
    .card {{ fill: #0e1218; }}
  }}
</style>
<rect class="card" width="{WIDTH}" height="{HEIGHT}" rx="8"/>"""


def bills(rows: list[dict[str, str]]) -> dict[str, tuple[float, float, float]]:
    """For each pattern the bills of NAMES, in per cent of Cluster Autoscaler's."""
    saved = {(row["pattern"], row["against"]): float(row["saving_percent"]) / 100 for row in rows}
    found = {}
    for pattern in PATTERNS:
        htas = 1 - saved[pattern, "cluster-autoscaler"]
        found[pattern] = (100.0, 100 * htas / (1 - saved[pattern, "karpenter"]), 100 * htas)
    return found


def picture(shares: Mapping[str, tuple[float, float, float]]) -> str:
    """The bar chart: light and dark as its reader prefers."""
    return "\n".join([HEAD, *_legend(), *_groups(shares), *_foot(), "</svg>\n"])


def _legend() -> Iterator[str]:
    yield f'<text class="title" x="{LEFT}" y="26">The bill of the same work, in % of Cluster Autoscaler\'s</text>'
    for i, name in enumerate(NAMES):
        x = LEFT + 170 * i
        yield f'<rect class="b{i}" x="{x}" y="40" width="12" height="12" rx="2"/>'
        yield f'<text x="{x + 18}" y="51">{name}</text>'


def _groups(shares: Mapping[str, tuple[float, float, float]]) -> Iterator[str]:
    for number, (pattern, name) in enumerate(PATTERNS.items()):
        left = LEFT + GROUP * number
        for i, share in enumerate(shares[pattern]):
            x, tall = left + (BAR + 4) * i, TALL * share / 100
            yield f'<rect class="b{i}" x="{x}" y="{BASE - tall:.1f}" width="{BAR}" height="{tall:.1f}" rx="3"/>'
            kind = "value best" if i == len(NAMES) - 1 else "value"
            yield f'<text class="{kind}" x="{x + BAR // 2}" y="{BASE - tall - 5:.1f}">{share:.0f}</text>'
        middle = left + (3 * BAR + 8) // 2
        yield f'<text class="value" x="{middle}" y="{BASE + 19}">{name}</text>'


def _foot() -> Iterator[str]:
    yield f'<line class="line" x1="{LEFT}" y1="{BASE}" x2="{WIDTH - 22}" y2="{BASE}"/>'
    yield f'<text class="note" x="{LEFT}" y="{HEIGHT - 14}">'
    yield "Simulated: same arrivals, prices and billing; default settings; means of ten seeds for each pattern.</text>"


def main() -> None:
    """Write the picture."""
    with SAVINGS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["policy"] == "htas-default"]
    PICTURE.write_text(picture(bills(rows)))


if __name__ == "__main__":
    main()
