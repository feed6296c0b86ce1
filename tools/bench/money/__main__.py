"""Play families of work under HTAS as shipped and under well-set baselines, and tell who is cheapest.

    python -m tools.bench.money play --seeds 11-20                       # every family; goes on where it was stopped
    python -m tools.bench.money play --families trickle,hourly --seeds 11,12 --contenders htas,karpenter-pinned
    python -m tools.bench.money play --families slice --trace openb_pod_list_default.csv --seeds 11-20
    python -m tools.bench.money tell                                     # the tables of what has been played
    python -m tools.bench.money clairvoyant --seeds 11-13                # HTAS beside an offline near-optimum
    python -m tools.bench.money ablation --families stable,trickle --seeds 11-13      # what each rule brings
    python -m tools.bench.money account --families trickle --seeds 11 --contenders htas,karpenter-pinned

Each run is appended to a file of JSON lines (out/money.jsonl) as it ends. The table's seeds begin at 11: on seed 1
cluster-autoscaler-one chooses its one flavour, which costs up to four more runs in each family and worker.

htas is config/htas.yaml in the sandbox, where moved jobs keep their progress (checkpoints). htas-evicts is how it is
with OpenStack by default: moved jobs begin again. htas-moves-services has cleaning.moveServices: true, and each
htas-without-RULE is htas with one rule off. cluster-autoscaler and karpenter are as they are shipped; the others are as
a good operator sets them, and HTAS is held against the cheapest of these.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path

import msgspec
from rich.console import Console, Group
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)

from htas.cli.tables import show
from tools.bench.money.ablation import ablation_table
from tools.bench.money.accounting import account, accounts_table, machines_text
from tools.bench.money.beside_clairvoyant import GOALS, beside, beside_rows, beside_table
from tools.bench.money.books import books, books_table
from tools.bench.money.families import families
from tools.bench.money.playing import FAIR, SHIPPED, NoFlavourError, Played, play
from tools.bench.money.switches import ABLATED, EVICTS, HTAS, MOVES_SERVICES
from tools.bench.money.table import each_baseline, rows, table

_COLUMNS = (
    TextColumn("{task.description:<44}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)
_BESIDE = Console(stderr=True)
SEEDS = "11-20"
CONTENDERS = (HTAS, MOVES_SERVICES, EVICTS, *FAIR, *SHIPPED, *ABLATED)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("play", "tell", "account", "ablation", "clairvoyant"))
    parser.add_argument("--families", default="", help=f"parted by commas, of {', '.join(families())}; all")
    parser.add_argument("--contenders", default=",".join((HTAS, *FAIR)), help=f"of {', '.join(CONTENDERS)}")
    parser.add_argument("--seeds", default="", help=f"such as {SEEDS}, or 101,102; {SEEDS}, and to tell all there are")
    parser.add_argument("--trace", type=Path, default=None, help="an openb pod list, for the family slice")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("out/money.jsonl"))
    chosen = parser.parse_args(arguments)
    there, numbers = families(chosen.trace), seeds(chosen.seeds or SEEDS)
    if chosen.what == "clairvoyant":
        names = _chosen(parser, "family", chosen.families, tuple(GOALS))
        return _beside_clairvoyant(list(product(names, numbers)), chosen.workers)
    names = _chosen(parser, "family", chosen.families, tuple(there))
    contenders = _chosen(parser, "contender", chosen.contenders, CONTENDERS)
    if chosen.what == "account":
        cases = track(list(product(names, numbers, contenders)), console=_BESIDE)
        runs = [account(*each, chosen.trace) for each in cases]
        show(Group(accounts_table(runs), *map(machines_text, runs)))
        return 0
    if chosen.what == "ablation":
        contenders = (HTAS, *(each for each in contenders if each in ABLATED))
        contenders = contenders if contenders[1:] else (HTAS, *ABLATED)
        _play(list(product(names, numbers, contenders)), chosen.trace, chosen.workers, chosen.out)
        show(ablation_table([each for each in _read(chosen.out) if each.seed in numbers], names))
        return 0
    if chosen.what == "play":
        _play(list(product(names, numbers, contenders)), chosen.trace, chosen.workers, chosen.out)
    played = _read(chosen.out)
    if chosen.seeds or chosen.what == "play":
        played = [each for each in played if each.seed in numbers and each.contender in contenders]
    found, accounts = rows(played, names), books(played, names)
    others, invoices = [each_baseline(found)] if found else [], [books_table(accounts)] if accounts else []
    show(Group(table(found), *others, *invoices))
    return 0 if all(row.is_exact for row in accounts) else 1


def _beside_clairvoyant(cases: list[tuple[str, int]], workers: int) -> int:
    """Nothing is written down: a case takes some ten seconds. 0: every goal is reached."""
    found = []
    with ProcessPoolExecutor(workers) as processes, _progress() as progress:
        shown = progress.add_task("", total=len(cases))
        running = {processes.submit(beside, *case): case for case in cases}
        for done in as_completed(running):
            found.append(done.result())
            progress.update(shown, advance=1, description="{} {}".format(*running[done]))
    order = list(GOALS)
    rows = beside_rows(sorted(found, key=lambda each: (order.index(each.family), each.seed)))
    show(beside_table(rows))
    return 0 if all(row.is_reached for row in rows) else 1


def _progress() -> Progress:
    return Progress(*_COLUMNS, console=_BESIDE)


def seeds(text: str) -> list[int]:
    """`11-13,20` → 11, 12, 13, 20."""
    found = list[int]()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _chosen(parser: argparse.ArgumentParser, what: str, text: str, there: Sequence[str]) -> tuple[str, ...]:
    wanted = tuple(name for name in text.split(",") if name) or tuple(there)
    unknown = [name for name in wanted if name not in there]
    if unknown:
        parser.error(f"no {what} {', '.join(unknown)}; there are {', '.join(there)}")
    return wanted


def _read(path: Path) -> list[Played]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Played) for line in lines]


def _play(runs: list[tuple[str, int, str]], trace: Path | None, workers: int, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    known = {(each.family, each.seed, each.contender) for each in _read(out)}
    left = [each for each in runs if each not in known]
    with (
        ProcessPoolExecutor(workers) as processes,
        out.open("ab") as file,
        _progress() as progress,
    ):
        shown = progress.add_task("", total=len(left))
        running = {processes.submit(play, *each, trace): each for each in left}
        for done in as_completed(running):
            family, seed, contender = running[done]
            try:
                played = done.result()
            except NoFlavourError as problem:
                progress.console.print(f"{contender} does not play: {problem}")
            else:
                file.write(msgspec.json.encode(played) + b"\n")
                file.flush()
            progress.update(shown, advance=1, description=f"{family} {seed} {contender}")


if __name__ == "__main__":
    sys.exit(main())
