"""The table of what each rule brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import geometric_mean

from rich.table import Table

from tools.bench.money.playing import Played
from tools.bench.money.switches import ABLATED, CHANGES, HTAS


def ablation_table(played: Iterable[Played], families: Iterable[str]) -> Table:
    """Bills without a rule ÷ with it, geometric means over the seeds of both: above 1 the rule saves."""
    found: dict[tuple[str, str], dict[int, Played]] = {}
    for each in played:
        if not each.note:
            found.setdefault((each.family, each.contender), {})[each.seed] = each
    drawn = Table(title="HTAS's bill without a rule ÷ with it; in brackets its mean wait, s, without and with")
    drawn.add_column("family", no_wrap=True)
    for name in CHANGES:
        drawn.add_column(name, justify="right")
    for family in families:
        ours = found.get((family, HTAS), {})
        cells = [_cell(ours, found.get((family, contender), {})) for contender in ABLATED]
        if any(cells):
            drawn.add_row(family, *cells)
    return drawn


def _cell(ours: Mapping[int, Played], theirs: Mapping[int, Played]) -> str:
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        return ""
    ratio = geometric_mean(theirs[seed].bill / ours[seed].bill for seed in both)
    return f"{ratio:.3f} ({_mean_wait(theirs, both):.0f}, {_mean_wait(ours, both):.0f})"


def _mean_wait(runs: Mapping[int, Played], seeds: Sequence[int]) -> float:
    return sum(runs[seed].mean_wait_s for seed in seeds) / len(seeds)
