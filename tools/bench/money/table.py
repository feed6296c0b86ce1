"""The table: each family's bills beside the bound and the best fair baseline, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from rich.table import Table

from tools.bench.money.playing import FAIR, Played
from tools.bench.money.switches import HTAS
from tools.lab.report.statistics import half_width

ENOUGH_S, LONGER = 30.0, 1.25
"""HTAS may wait as long as this on average, or so many times what the best fair baseline does."""
ENOUGH_SEEDS = 5
"""With fewer no verdict is given: the interval of two seeds is 13 times as wide as they lie apart."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of ratios over seeds and the half width of its 95 % interval (None: one seed)."""

    mean: float
    half_width: float | None

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if self.half_width is None else f"{self.mean:.3f} ± {self.half_width:.3f}"


def estimate(values: Sequence[float]) -> Estimate:
    """Student's t over independent seeds; raises ValueError where there are no values."""
    return Estimate(fmean(values), half_width(values))


@dataclass(frozen=True, slots=True)
class Row:
    """A family: HTAS's bill over the bound and over the best fair baseline's, and what was waited."""

    family: str
    seeds: int
    to_bound: Estimate
    best: str
    to_best: Estimate
    by_seed: Sequence[float]
    """The ratios that `to_best` is the mean of."""
    to_each: Mapping[str, Estimate]
    wait_s: float
    p99_wait_s: float
    best_wait_s: float
    best_p99_wait_s: float
    disturbed: str
    best_disturbed: str
    """Pods moved or evicted, and hours of work done twice, on average."""
    unfinished: int

    @property
    def is_cheapest(self) -> bool | None:
        """Whether HTAS is at most as dear as the best fair baseline, within the interval over seeds; None: too few."""
        if self.seeds < ENOUGH_SEEDS:
            return None
        return self.to_best.mean - (self.to_best.half_width or 0.0) <= 1.0

    @property
    def is_quick(self) -> bool:
        return self.wait_s <= max(ENOUGH_S, LONGER * self.best_wait_s)

    @property
    def verdict(self) -> str:
        if self.is_cheapest is None:
            return "too few seeds"
        bill = "as cheap" if self.is_cheapest else "dearer"
        return bill if self.is_quick else f"{bill}, waits longer"


def rows(played: Iterable[Played], families: Iterable[str]) -> list[Row]:
    """One for each family of which HTAS and a baseline have played the same seeds to the end."""
    found: dict[tuple[str, str], dict[int, Played]] = {}
    for each in played:
        found.setdefault((each.family, each.contender), {})[each.seed] = each
    return [row for family in families if (row := _row(family, found)) is not None]


def _row(family: str, found: Mapping[tuple[str, str], Mapping[int, Played]]) -> Row | None:
    ours = _whole(found.get((family, HTAS), {}))
    others = {name: _whole(runs) for (of, name), runs in found.items() if of == family and name != HTAS}
    others = {name: runs for name, runs in others.items() if ours.keys() <= runs.keys()}
    fair = {name: runs for name, runs in others.items() if name in FAIR}
    if not ours or not fair:
        return None
    seeds = sorted(ours)
    ratios = {name: [ours[seed].bill / runs[seed].bill for seed in seeds] for name, runs in others.items()}
    best = min(fair, key=lambda name: (sum(fair[name][seed].bill for seed in seeds), name))
    return Row(
        family=family,
        seeds=len(seeds),
        to_bound=estimate([ours[seed].bill / max(1, ours[seed].bound) for seed in seeds]),
        best=best,
        to_best=estimate(ratios[best]),
        by_seed=ratios[best],
        to_each={name: estimate(values) for name, values in ratios.items()},
        wait_s=fmean(ours[seed].mean_wait_s for seed in seeds),
        p99_wait_s=fmean(ours[seed].p99_wait_s for seed in seeds),
        best_wait_s=fmean(fair[best][seed].mean_wait_s for seed in seeds),
        best_p99_wait_s=fmean(fair[best][seed].p99_wait_s for seed in seeds),
        disturbed=_disturbed([ours[seed] for seed in seeds]),
        best_disturbed=_disturbed([fair[best][seed] for seed in seeds]),
        unfinished=len(found[family, HTAS]) - len(ours),
    )


def _disturbed(runs: Sequence[Played]) -> str:
    return f"{fmean(run.moved for run in runs):.0f} / {fmean(run.work_lost_s for run in runs) / 3600:.1f}"


def _whole(runs: Mapping[int, Played]) -> dict[int, Played]:
    """Without those that were given up: they are cheaper for what they left undone."""
    return {seed: each for seed, each in runs.items() if not each.note}


def table(found: Sequence[Row]) -> Table:
    """HTAS's bill ÷ others'; below 1 it is cheaper. Red where it misses, and by what."""
    title = (
        "HTAS's bill ÷ the bound and ÷ the best fair baseline's; waits: mean / 99th of 100, s; "
        "pods moved / hours of work done twice"
    )
    drawn = Table(title=title, caption=_caption(found))
    texts = ("family", "best fair baseline", "verdict")
    for name in (
        "family",
        "seeds",
        "bound",
        "best fair baseline",
        "HTAS's bill ÷ its",
        "by seed",
        "verdict",
        "HTAS waits",
        "it waits",
        "HTAS moves",
        "it moves",
    ):
        drawn.add_column(name, justify="left" if name in texts else "right")
    for row in found:
        drawn.add_row(
            row.family + (f" ({row.unfinished} given up)" if row.unfinished else ""),
            str(row.seeds),
            _told(row.to_bound, row.seeds),
            row.best,
            _red(_told(row.to_best, row.seeds), row.is_cheapest is False),
            _by_seed(row.by_seed),
            row.verdict,
            _red(_waits(row.wait_s, row.p99_wait_s), not row.is_quick),
            _waits(row.best_wait_s, row.best_p99_wait_s),
            row.disturbed,
            row.best_disturbed,
        )
    if found:
        mean = geometric_mean(row.to_best.mean for row in found)
        drawn.add_section()
        drawn.add_row("geometric mean", "", "", "", f"{mean:.3f}")
    return drawn


def each_baseline(found: Sequence[Row]) -> Table:
    """The same against every other contender by itself."""
    names = sorted({name for row in found for name in row.to_each})
    drawn = Table(title="HTAS's bill ÷ each other's")
    drawn.add_column("family")
    drawn.add_column("seeds", justify="right")
    for name in names:
        drawn.add_column(name, justify="right")
    for row in found:
        ratios = (_told(row.to_each[name], row.seeds) if name in row.to_each else "–" for name in names)
        drawn.add_row(row.family, str(row.seeds), *ratios)
    return drawn


def _caption(found: Sequence[Row]) -> str | None:
    if not found:
        return "no family of which HTAS and a fair baseline have played the same seeds to the end"
    if any(row.seeds < ENOUGH_SEEDS for row in found):
        return f"fewer than {ENOUGH_SEEDS} seeds tell nothing: a mean without interval, and no verdict"
    return None


def _told(ratio: Estimate, seeds: int) -> str:
    return str(ratio) if seeds >= ENOUGH_SEEDS else f"{ratio.mean:.3f}"


def _by_seed(ratios: Sequence[float]) -> str:
    """Each, or of many the least and the most."""
    if len(ratios) < ENOUGH_SEEDS:
        return ", ".join(f"{each:.3f}" for each in ratios)
    return f"{min(ratios):.3f} to {max(ratios):.3f}"


def _red(text: str, is_red: bool) -> str:
    return f"[red]{text}[/red]" if is_red else text


def _waits(mean_s: float, p99_s: float) -> str:
    return f"{mean_s:.0f} / {p99_s:.0f}"
