"""How near the savings that `mode: recommend` tells are to those that HTAS then makes on the same work.

    python -m tools.bench.recommend play --seeds 11-13          # every family below; goes on where it was stopped
    python -m tools.bench.recommend play --families trickle,long --seeds 11
    python -m tools.bench.recommend tell                        # the table of what has been played

Each case is played twice in the sandbox (recommended.py): by kube-scheduler on as many machines of one
flavour as the peak asks for and 30 % more, watched by HTAS, which looks every ten seconds; then with HTAS in charge of
the same work, beginning with the same machines. Each case is appended to a file of JSON lines as it ends.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import track
from rich.table import Table

from htas.sandbox.fixed_nodes import nodes_for
from tools.bench.money.__main__ import seeds
from tools.bench.money.families import families
from tools.bench.money.playing import as_shipped
from tools.bench.recommended import Case, compared
from tools.lab.baselines.default_kubernetes import flavour_of

FAMILIES = (
    "stable",
    "on-off",
    "heavy-tailed",
    "heavy-unstated",
    "trickle",
    "long",
    "anti-affine",
    "day-and-night",
    "hourly",
)
GOAL = 0.05


class Played(msgspec.Struct, frozen=True):
    """One case. Bills are billionths of the currency an hour × seconds; waits are means of all pods that ran."""

    family: str
    seed: int
    nodes: int
    real: int
    told: int
    made: int
    told_wait_s: float
    made_wait_s: float
    overrun_s: float
    took_s: float

    @property
    def saved(self) -> float:
        return (self.real - self.made) / self.real

    @property
    def off(self) -> float:
        """Of the savings made: by how much more was told."""
        return (self.made - self.told) / (self.real - self.made)


def play(family: str, seed: int) -> Played:
    began = time.perf_counter()
    scene = families()[family].draw(seed)
    flavour = scene.catalogue.named(flavour_of(scene.catalogue))
    assert flavour is not None
    nodes = nodes_for(flavour, scene.work.arrivals)
    case = Case(scene.work, nodes, as_shipped(scene.catalogue), scene.startup_s, seed, scene.chances)
    found = compared(case)
    return Played(
        family,
        seed,
        len(nodes),
        found.real,
        found.told.with_htas.nano_seconds,
        found.made,
        found.told.with_htas.waits.mean_s,
        found.made_wait_s,
        found.told.overrun_s,
        time.perf_counter() - began,
    )


def table(found: Sequence[Played]) -> Table:
    view = Table(
        "family", "seeds", "nodes", "saved", "told is off by", "worst", "held against it", "waits told", "made"
    )
    cases: dict[str, list[Played]] = defaultdict(list)
    for each in found:
        cases[each.family].append(each)
    for family, played in cases.items():
        off = [each.off for each in played]
        view.add_row(
            family,
            str(len(played)),
            _span([each.nodes for each in played]),
            f"{sum(each.saved for each in played) / len(played):.0%}",
            f"{sum(map(abs, off)) / len(off):.1%}",
            f"{max(off, key=abs):+.1%}",
            f"{max(each.overrun_s for each in played) / 60:.0f} min",
            f"{sum(each.told_wait_s for each in played) / len(played):.0f} s",
            f"{sum(each.made_wait_s for each in played) / len(played):.0f} s",
        )
    return view


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}-{high}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("play", "tell"), nargs="?", default="tell")
    parser.add_argument("--families", default=",".join(FAMILIES), help="parted by commas")
    parser.add_argument("--seeds", default="11-13", help="such as 11-13, or 101,102")
    parser.add_argument("--out", type=Path, default=Path("out/recommend.jsonl"))
    chosen = parser.parse_args(arguments)
    names = [name for name in chosen.families.split(",") if name]
    unknown = [name for name in names if name not in families()]
    if unknown:
        parser.error(f"there is no family {', '.join(unknown)}")
    found = _read(chosen.out)
    if chosen.what == "play":
        done = {(each.family, each.seed) for each in found}
        cases = [case for case in product(names, seeds(chosen.seeds)) if case not in done]
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        for family, seed in track(cases, "playing"):
            with chosen.out.open("ab") as stream:
                stream.write(msgspec.json.encode(play(family, seed)) + b"\n")
        found = _read(chosen.out)
    console = Console()
    console.print(table([each for each in found if each.family in names]))
    beyond = [each for each in found if abs(each.off) > GOAL]
    console.print(f"{len(found) - len(beyond)} of {len(found)} within {GOAL:.0%}")
    return 1 if beyond else 0


def _read(path: Path) -> list[Played]:
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Played) for line in path.read_bytes().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
