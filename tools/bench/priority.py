"""The document's evaluation of its optimiser, by its formulation and our engines in the same run, and cases of scale.

The grid: 4, 8, 16, 32 identical nodes × 4, 8 pods a node × 1, 2, 4 priorities × 90, 95, 100, 105 % usage; instances
in which the default scheduler leaves pods unplaced; 1, 10 and 20 s of wall clock, building included, two workers. An
answer proven (in placing and staying) at one timeout holds at longer ones and is not searched again. Each answer is
appended to a file of JSON lines as it comes: run again, the bench goes on where it was stopped.

    python -m tools.bench.priority place --instances 10             # the default placements, by a real kube-scheduler
    python -m tools.bench.priority agree                            # … and our re-implementation of it beside them
    python -m tools.bench.priority picked                           # how often that fails, and with points for names
    python -m tools.bench.priority run --instances 5 --timeouts 1,10 --nodes 4,8,16,32 --out priority.jsonl
    python -m tools.bench.priority report --out priority.jsonl      # CSV, figure and table beside it
    python -m tools.bench.priority clusters                         # 4 to 32 nodes through the API server, as a log
    python -m tools.bench.priority scale                            # 200, 500, 1,000 nodes
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.progress import track

from htas.model.policy import Engine
from tools.bench.priority_clusters import clusters
from tools.bench.priority_instances import GRID, Cell, Instance, generate, instances, seeded
from tools.bench.priority_placements import AS_IS, IN_ORDER, RECORDED, alike, placed_as, record, recorded
from tools.bench.priority_report import report
from tools.bench.priority_scale import scale
from tools.bench.priority_solving import FORMULATIONS, WORKERS, solve


def run(arguments: Namespace) -> None:
    """What is not in the file yet, the shortest timeout first, and of each cell one instance before the second."""
    done = {_key(line): line for line in read(arguments.out)}
    rounds = list(zip_longest(*(list(_to_solve(cell, arguments)) for cell in _cells(arguments))))
    tasks = [
        (timeout, instance, formulation)
        for timeout in arguments.timeouts
        for of_round in rounds
        for instance in of_round
        if instance is not None
        for formulation in arguments.formulations
        if (*_cell(instance.cell), instance.seed, formulation, timeout) not in done
    ]
    deadline = monotonic() + 60 * arguments.minutes
    pace = Pace(arguments.clock)
    with arguments.out.open("a") as file:
        for timeout, instance, formulation in track(tasks, "searches", disable=not sys.stderr.isatty()):
            if monotonic() > deadline:
                break
            key = (*_cell(instance.cell), instance.seed, formulation, timeout)
            shorter = [done.get((*key[:-1], other)) for other in sorted(arguments.timeouts) if other < timeout]
            proven = next((line for line in shorter if line and _is_proven(line, arguments.until)), None)
            line = proven or _solved(formulation, instance, timeout, arguments, pace)
            line = {**line, "timeout": timeout}
            done[key] = line
            file.write(json.dumps(line) + "\n")
            file.flush()


def _cells(arguments: Namespace) -> list[Cell]:
    return [
        cell
        for cell in GRID
        if cell.nodes in arguments.nodes and cell.priorities in arguments.priorities and cell.usage in arguments.usages
    ]


def _to_solve(cell: Cell, arguments: Namespace) -> Iterator[Instance]:
    """The cell's instances with the default placement that was asked for: as recorded, or worked out."""
    known = recorded(arguments.placements) if arguments.default == AS_IS else {}
    for instance in instances(cell, arguments.instances):
        if arguments.default == IN_ORDER:
            yield instance
        elif (placement := known.get((cell, instance.seed, AS_IS))) is not None:
            yield placed_as(instance, placement)


def _solved(
    formulation: str, instance: Instance, timeout: float, arguments: Namespace, pace: Pace
) -> dict[str, object]:
    line = solve(formulation, instance, timeout, arguments.clock, arguments.workers, pace.now)
    pace.see(line)
    told = {"default": arguments.default, "clock": arguments.clock, "workers": arguments.workers}
    return {**line, **told, "load": round(os.getloadavg()[0], 1)}


def place(arguments: Namespace) -> None:
    """Record the default placements that are not in the file yet, instance by instance, the large clusters first."""
    known = recorded(arguments.placements)
    cells = sorted((cell for cell in GRID if cell.nodes in arguments.nodes), key=lambda cell: -cell.nodes)
    picked = [list(instances(cell, arguments.instances)) for cell in cells]
    tasks = [
        (instance, profile)
        for of_round in zip(*picked, strict=True)
        for instance in of_round
        for profile in arguments.profiles
        if (instance.cell, instance.seed, profile) not in known
    ]
    began = monotonic()
    done = record(tasks, arguments.placements, arguments.benches, began + 60 * arguments.minutes)
    print(f"{done} of {len(tasks)} placements recorded in {monotonic() - began:.0f} s", flush=True)


def agree(arguments: Namespace) -> None:
    """In how many instances the real kube-scheduler, taking equal nodes by name, does as our re-implementation."""
    counts: dict[int, list[bool]] = {}
    for (cell, seed, profile), placement in recorded(arguments.placements).items():
        if profile == IN_ORDER:
            instance = generate(cell, seed)
            counts.setdefault(cell.nodes, []).append(alike(instance, placement, instance.node_of))
    for nodes, agreed in sorted(counts.items()):
        print(f"{nodes} nodes: {sum(agreed)} of {len(agreed)} alike")


def picked(count: int = 40) -> None:
    """How many of so many seeds are picked: by name among equals, and with the 100 points of the authors' plugin."""
    for cell in GRID:
        if cell.priorities == 1 and cell.usage < 1.0:
            random = seeded(1, "picked", cell.nodes, cell.pods_per_node, f"{cell.usage:.2f}")
            seeds = [random.getrandbits(63) for _ in range(count)]
            alone, pointed = (sum(not generate(cell, seed, points).is_full for seed in seeds) for points in (0, 100))
            kind = f"{cell.nodes} nodes, {cell.pods_per_node} pods a node, {cell.usage:.0%}"
            print(f"{kind}: {alone} of {count} by name among equals, {pointed} with points for names", flush=True)


class Pace:
    """How many seconds of wall clock one of the processor takes on a machine busy with else: as the last answers tell.

    Solvers that stop by a wall clock of their own would have a third of their time where two other jobs run.
    """

    def __init__(self, clock: str) -> None:
        self._is_wall = clock == "wall"
        self.now = 1.0

    def see(self, line: dict[str, object]) -> None:
        wall, cpu = float(str(line["seconds"])), float(str(line["cpu_seconds"]))
        if not self._is_wall and cpu > 0.05:
            self.now = 0.7 * self.now + 0.3 * max(1.0, wall / cpu)


def _is_proven(line: dict[str, object], until: str) -> bool:
    return bool(line["is_placing_proven"] and (until == "placing" or line["is_staying_proven"]))


def _cell(cell: Cell) -> tuple[object, ...]:
    return cell.nodes, cell.pods_per_node, cell.priorities, cell.usage


def _key(line: dict[str, object]) -> tuple[object, ...]:
    names = ("nodes", "pods_per_node", "priorities", "usage", "seed", "formulation", "timeout")
    return tuple(line[name] for name in names)


def read(path: Path) -> Iterator[dict[str, object]]:
    """The answers in a file, if it is there."""
    if path.exists():
        yield from (json.loads(text) for text in path.read_text().splitlines() if text)


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "report"):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, default=Path("priority.jsonl"))
    for name in ("place", "agree", "run"):
        command = commands.choices.get(name) or commands.add_parser(name)
        command.add_argument("--placements", type=Path, default=RECORDED)
    command = commands.choices["place"]
    command.add_argument("--instances", type=int, default=10)
    command.add_argument("--nodes", type=numbers, default=[4, 8, 16, 32])
    command.add_argument("--profiles", type=lambda text: text.split(","), default=[AS_IS], help="as-is, in-order")
    command.add_argument("--benches", type=int, default=16, help="instances at once")
    command.add_argument("--minutes", type=float, default=9.0)
    command = commands.choices["run"]
    command.add_argument("--instances", type=int, default=100)
    command.add_argument("--timeouts", type=numbers, default=[1, 10, 20])
    command.add_argument("--nodes", type=numbers, default=[4, 8, 16, 32])
    command.add_argument("--priorities", type=numbers, default=[1, 2, 4])
    command.add_argument("--usages", type=numbers, default=[0.90, 0.95, 1.00, 1.05])
    command.add_argument("--formulations", type=lambda text: text.split(","), default=list(FORMULATIONS))
    command.add_argument("--workers", type=int, default=WORKERS)
    command.add_argument("--default", choices=(AS_IS, IN_ORDER), default=AS_IS, help="whose placement is improved")
    command.add_argument("--minutes", type=float, default=float("inf"), help="begin no search after them")
    command.add_argument(
        "--until",
        choices=("placing", "moves"),
        default="moves",
        help="proven so far at one timeout, an answer is not searched for again at a longer one",
    )
    command.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: on a machine busy with else")
    commands.add_parser("picked")
    command = commands.add_parser("clusters")
    command.add_argument("--nodes", type=numbers, default=[4, 8, 16, 32])
    command.add_argument("--pods-per-node", type=int, default=4)
    command.add_argument("--usage", type=float, default=0.95)
    command.add_argument("--engine", choices=tuple(Engine), default=Engine.DECOMPOSITION)
    command = commands.add_parser("scale")
    command.add_argument("--nodes", type=numbers, default=[200, 500, 1000])
    command.add_argument("--pods-per-node", type=int, default=8)
    command.add_argument("--usages", type=numbers, default=[0.95, 1.00, 1.05])
    command.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: on a machine busy with else")
    command.add_argument("--seconds", type=float, default=9.0)
    command.add_argument("--engine", choices=tuple(Engine), default=Engine.DECOMPOSITION)
    arguments = parser.parse_args()
    match arguments.command:
        case "run":
            run(arguments)
        case "place":
            place(arguments)
        case "agree":
            agree(arguments)
        case "picked":
            picked()
        case "report":
            report(list(read(arguments.out)), arguments.out)
        case "clusters":
            cells = [Cell(int(nodes), arguments.pods_per_node, 4, arguments.usage) for nodes in arguments.nodes]
            console = Console(width=None if sys.stdout.isatty() else 120)
            clusters([next(instances(cell, 1)) for cell in cells], arguments.engine, console)
        case _:
            cells = [Cell(int(n), arguments.pods_per_node, 4, u) for n in arguments.nodes for u in arguments.usages]
            scale(cells, arguments.engine, arguments.seconds, arguments.clock)


if __name__ == "__main__":
    main()
