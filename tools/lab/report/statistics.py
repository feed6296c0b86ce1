"""Figures over seeds: means with their spread, and savings with confidence intervals. Money stays exact."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, mean, variance
from typing import TypeVar

from tools.lab.results import RunResult

Number = TypeVar("Number", float, Fraction)

T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t at 97.5 % for 1 to 30 degrees of freedom; with more the last holds, which only widens an interval."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over seeds, with the least and the most: the error bars of the HTAS paper's figures (6.3)."""

    mean: float
    least: float
    most: float


def spread(values: Iterable[float]) -> Spread:
    """Raises ValueError where there are none."""
    found = list(values)
    if not found:
        raise ValueError("no values to take a mean of")
    return Spread(fmean(found), min(found), max(found))


def half_width(values: Sequence[Number]) -> float | None:
    """Half of a mean's 95 % interval, by Student's t over independent values; None: fewer than two."""
    if len(values) < 2:
        return None
    t = T_975[min(len(values) - 1, len(T_975)) - 1]
    return t * math.sqrt(variance(values) / len(values))


@dataclass(frozen=True, slots=True)
class Saving:
    """A share saved, such as 0.27, with the half width of its 95 % confidence interval (None: fewer than two seeds)."""

    share: Fraction
    half_width: float | None
    seeds: int

    @property
    def is_certain(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.half_width is not None and abs(self.share) > self.half_width


def paired_saving(ours: Mapping[int, int], theirs: Mapping[int, int]) -> Saving | None:
    """What we pay less than they, as a share of their bill: seed by seed on the same arrivals, then the mean of shares.

    Pairing takes out what the seeds differ by; the interval is Student's t over the n shares, mean ± t(0.975, n - 1) ·
    s ÷ √n. Two seeds with 20 % and 30 %: 25 % ± 12.706 · 7.07 % ÷ √2 = 63.5 %. None: no seed in common.
    """
    shares = [1 - Fraction(ours[seed], theirs[seed]) for seed in sorted(ours) if theirs.get(seed)]
    if not shares:
        return None
    return Saving(mean(shares), half_width(shares), len(shares))


def bills(runs: Iterable[RunResult]) -> dict[int, int]:
    """The bill of each run by its seed. Runs that were given up are left out: they are cheaper for what they left."""
    return {run.seed: run.bill_nano_seconds for run in runs if is_whole(run)}


def is_whole(run: RunResult) -> bool:
    """Whether nothing went wrong. (A run's services never end: fewer tasks finish than there are.)"""
    return not run.note


def over_time(runs: Sequence[RunResult], what: str, step_s: float = 30.0) -> tuple[list[float], list[float]]:
    """(minutes, the mean of a sample's field over seeds); it ends once most runs have.

    Samples are taken at the same instants in all runs; a run that is over counts no more.
    """
    at: dict[int, list[float]] = {}
    for run in runs:
        for sample in run.samples:
            at.setdefault(round(sample.at_s / step_s), []).append(float(getattr(sample, what)))
    lasting = [step for step in sorted(at) if 2 * len(at[step]) > len(runs)]
    return [step * step_s / 60 for step in lasting], [fmean(at[step]) for step in lasting]


def smoothed(values: Sequence[float], width: int = 5) -> list[float]:
    """The mean of each value and its neighbours, `width` together; fewer at the ends."""
    half = width // 2
    return [fmean(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]


def so_far(runs: Sequence[RunResult], what: str) -> tuple[list[float], list[float]]:
    """(minutes, how often it had happened by then, a mean over seeds), as the corners of steps."""
    minutes, counts = [0.0], [0.0]
    for instant in sorted(instant for run in runs for instant in getattr(run, what)):
        minutes += [instant / 60, instant / 60]
        counts += [counts[-1], counts[-1] + 1]
    minutes.append(max([minutes[-1], *(run.ended_at_s / 60 for run in runs)]))
    counts.append(counts[-1])
    return minutes, [count / max(1, len(runs)) for count in counts]
