"""HTAS's bill beside what a clairvoyant would have paid, on the first pods of families of work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec
from rich.table import Table

from htas.model.resources import PODS
from tools.bench.money.clairvoyant import Stay, near_optimum, problem
from tools.bench.money.families import families
from tools.bench.money.playing import HTAS, contender_of, trial_of
from tools.bench.money.scenes import Scene
from tools.bench.money.table import Estimate, estimate
from tools.lab.trials.bill import run_with_starts

STEADY = ("stable", "growing", "cycle", "on-off", "memory-bound", "long")
GOALS = {**dict.fromkeys(STEADY, 1.08), "heavy-tailed": 1.20, "heavy-unstated": 1.35}
"""Bill ÷ clairvoyant's: of steady families, of heavy tails that are stated, and that are not."""
FIRST = 80
"""So many arrivals make a small case: a quarter of an hour of the paper's patterns."""


class Beside(msgspec.Struct, frozen=True):
    """One run; bills are billionths of the currency an hour × seconds."""

    family: str
    seed: int
    bill: int
    clairvoyant: int
    pods: int
    note: str = ""


def beside(family: str, seed: int, first: int = FIRST) -> Beside:
    """Play HTAS as shipped on a small case, and look for what that work could have cost at its own times."""
    scene = _small(families()[family].draw(seed), first)
    result, _, starts = run_with_starts(
        trial_of(contender_of(HTAS, family, scene.catalogue, None), family, scene, seed)
    )
    stays, names = _stays(scene, starts, result.ended_at_s)
    least = near_optimum(problem(stays, scene.catalogue, names, scene.startup_s), seed)
    return Beside(family, seed, result.bill_nano_seconds, round(least), len(stays), result.note)


def _small(scene: Scene, first: int) -> Scene:
    work = msgspec.structs.replace(scene.work, arrivals=scene.work.arrivals[:first])
    return replace(scene, work=work)


def _stays(scene: Scene, starts: Iterable[tuple[str, float]], ended_at_s: float) -> tuple[list[Stay], tuple[str, ...]]:
    """Each pod from when it first began; a service runs until the last job has ended."""
    tasks = {f"{each.task.namespace}/{each.task.name}": each.task for each in scene.work.arrivals}
    asked = {name: task.requests.amounts() for name, task in tasks.items()}
    names = tuple(sorted({name for amounts in asked.values() for name, amount in amounts.items() if amount} | {PODS}))
    stays = []
    for key, begin in starts:
        runs_s = tasks[key].runs_s
        end = ended_at_s if runs_s is None else begin + runs_s
        if end > begin:
            stays.append(Stay(begin, end, tuple(asked[key].get(name, 0) for name in names)))
    return stays, names


@dataclass(frozen=True, slots=True)
class BesideRow:
    family: str
    seeds: int
    ratio: Estimate
    goal: float

    @property
    def is_reached(self) -> bool:
        return self.ratio.mean <= self.goal


def beside_rows(found: Iterable[Beside]) -> list[BesideRow]:
    """A row for each family, and one for the steady ones together."""
    by_family: dict[str, list[float]] = {}
    for each in found:
        if not each.note:
            by_family.setdefault(each.family, []).append(each.bill / each.clairvoyant)
    rows = [
        BesideRow(family, len(by_family[family]), estimate(by_family[family]), GOALS[family]) for family in by_family
    ]
    steady = [ratio for family in STEADY for ratio in by_family.get(family, ())]
    return rows + ([BesideRow("all steady", len(steady), estimate(steady), GOALS["stable"])] if steady else [])


def beside_table(rows: Sequence[BesideRow]) -> Table:
    drawn = Table(title="HTAS's bill ÷ a clairvoyant's (same starts, no moves)")
    drawn.add_column("family")
    for name in ("runs", "bill ÷ clairvoyant's", "goal"):
        drawn.add_column(name, justify="right")
    for row in rows:
        ratio = str(row.ratio)
        drawn.add_row(
            row.family, str(row.seeds), ratio if row.is_reached else f"[red]{ratio}[/red]", f"≤ {row.goal:.2f}"
        )
    return drawn
