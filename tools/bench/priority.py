"""The document's evaluation of its optimiser, by its formulation and our engines in the same run, and cases of scale.

The grid: 4, 8, 16, 32 identical nodes × 4, 8 pods a node × 1, 2, 4 priorities × 90, 95, 100, 105 % usage; instances
in which the default scheduler leaves pods unplaced; 1, 10 and 20 s of wall clock, building included, two workers. An
answer proven (in placing and staying) at one timeout holds at longer ones and is not searched again. Each answer is
appended to a file of JSON lines as it comes: run again, the bench goes on where it was stopped.

    python -m tools.bench.priority run --instances 5 --timeouts 1,10 --nodes 4,8,16,32 --out priority.jsonl
    python -m tools.bench.priority report --out priority.jsonl      # CSV, figure and table beside it
    python -m tools.bench.priority scale                            # 200, 500, 1,000 nodes
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time

from rich.progress import track

from htas.model.flavours import Catalogue
from htas.model.policy import Engine, NodeGroup, Policy
from htas.model.rearrangement import Rearrangement
from htas.planning.optimize import Budget, optimise
from tools.bench.priority_document import Document
from tools.bench.priority_instances import GRID, NOW, Cell, Instance, generate, instances, node_name, snapshot
from tools.bench.priority_report import report

POLICY = Policy("bench", Catalogue(()), (NodeGroup("any"),))
WORKERS = 2
FORMULATIONS = "document", *Engine
"""The document's model as it states it, and the three engines of `fallback.engine`."""
SCALE = [Cell(nodes, 8, 4, usage) for nodes in (200, 500, 1000) for usage in (0.95, 1.00, 1.05)]


def solve(formulation: str, instance: Instance, seconds: float, clock: str = "wall") -> dict[str, object]:
    """One answer, as it is written to the file. By `clock` cpu engines may use so many seconds of processor time."""
    before = by_tier(instance, instance.node_of)
    began, began_cpu = perf_counter(), process_time()
    if formulation == "document":
        answer = Document(instance, seconds, WORKERS).run()
        placed, placing, staying = answer.placed, answer.is_placing_proven, answer.is_staying_proven
        node_of, bound = answer.node_of, None
        took, took_cpu = perf_counter() - began, process_time() - began_cpu
    else:
        elapsed = (lambda: perf_counter() - began) if clock == "wall" else (lambda: process_time() - began_cpu)
        found = optimise(snapshot(instance), POLICY, NOW, Budget(seconds, WORKERS, engine=Engine(formulation)), elapsed)
        took, took_cpu = perf_counter() - began, process_time() - began_cpu
        placed = tuple(tier.placed_after for tier in found.tiers)
        placing = all(tier.is_placing_proven for tier in found.tiers)
        staying = all(tier.is_staying_proven for tier in found.tiers)
        node_of, bound = after(instance, found), found.tiers[-1].placed_bound
    return {
        "nodes": instance.cell.nodes,
        "pods_per_node": instance.cell.pods_per_node,
        "priorities": instance.cell.priorities,
        "usage": instance.cell.usage,
        "seed": instance.seed,
        "formulation": formulation,
        "timeout": seconds,
        "before": before,
        "after": placed,
        "bound": bound,
        "is_placing_proven": placing,
        "is_staying_proven": staying,
        "moved": sum(0 <= old != new for old, new in zip(instance.node_of, node_of, strict=False)),
        "seconds": round(took, 3),
        "cpu_seconds": round(took_cpu, 3),
        "more_cpu": utilisation(instance, node_of)[0] - utilisation(instance, instance.node_of)[0] if node_of else 0,
        "more_memory": utilisation(instance, node_of)[1] - utilisation(instance, instance.node_of)[1] if node_of else 0,
    }


def by_tier(instance: Instance, node_of: tuple[int, ...]) -> tuple[int, ...]:
    """Pods placed by tier, from the highest."""
    placed = [priority for priority, node in zip(instance.priority, node_of, strict=True) if node >= 0]
    return tuple(placed.count(priority) for priority in sorted(set(instance.priority), reverse=True))


def after(instance: Instance, found: Rearrangement) -> tuple[int, ...]:
    """Where each pod is once a rearrangement is carried out; checks that no node is over-full."""
    number = {node_name(i): i for i in range(instance.cell.nodes)}
    node_of = list(instance.node_of)
    for shift in found.shifts:
        node_of[int(shift.uid.removeprefix("pod-"))] = -1 if shift.target is None else number[shift.target]
    for seat in found.seats:
        node_of[int(seat.uid.removeprefix("pod-"))] = number[seat.node]
    for requests, room in ((instance.cpu_m, instance.node_cpu_m), (instance.memory_bytes, instance.node_memory_bytes)):
        for node in range(instance.cell.nodes):
            if sum(amount for amount, at in zip(requests, node_of, strict=True) if at == node) > room:
                raise AssertionError(f"node {node} is over-full in instance {instance.seed} of {instance.cell}")
    return tuple(node_of)


def utilisation(instance: Instance, node_of: tuple[int, ...]) -> tuple[float, float]:
    """Percent of cpu and memory requested on nodes."""
    nodes = instance.cell.nodes
    return tuple(
        100 * sum(amount for amount, at in zip(requests, node_of, strict=True) if at >= 0) / (room * nodes)
        for requests, room in (
            (instance.cpu_m, instance.node_cpu_m),
            (instance.memory_bytes, instance.node_memory_bytes),
        )
    )  # type: ignore[return-value]  # two resources, two shares


def run(arguments: Namespace) -> None:
    """What is not in the file yet, the shortest timeout first."""
    done = {_key(line): line for line in read(arguments.out)}
    cells = [
        cell
        for cell in GRID
        if cell.nodes in arguments.nodes and cell.priorities in arguments.priorities and cell.usage in arguments.usages
    ]
    tasks = [(timeout, cell) for timeout in arguments.timeouts for cell in cells]
    with arguments.out.open("a") as file:
        for timeout, cell in track(tasks, "cells", disable=not sys.stderr.isatty()):
            for instance in instances(cell, arguments.instances):
                for formulation in arguments.formulations:
                    key = (*_cell(cell), instance.seed, formulation, timeout)
                    if key in done:
                        continue
                    shorter = [done.get((*key[:-1], other)) for other in arguments.timeouts if other < timeout]
                    proven = next((line for line in shorter if line and _is_proven(line)), None)
                    line = (
                        {**proven, "timeout": timeout}
                        if proven
                        else solve(formulation, instance, timeout, arguments.clock)
                    )
                    done[key] = line
                    file.write(json.dumps(line) + "\n")
                    file.flush()


def _is_proven(line: dict[str, object]) -> bool:
    return bool(line["is_placing_proven"] and line["is_staying_proven"])


def _cell(cell: Cell) -> tuple[object, ...]:
    return cell.nodes, cell.pods_per_node, cell.priorities, cell.usage


def _key(line: dict[str, object]) -> tuple[object, ...]:
    names = ("nodes", "pods_per_node", "priorities", "usage", "seed", "formulation", "timeout")
    return tuple(line[name] for name in names)


def read(path: Path) -> Iterator[dict[str, object]]:
    """The answers in a file, if it is there."""
    if path.exists():
        yield from (json.loads(text) for text in path.read_text().splitlines() if text)


def scale_case(nodes: int, usage: float, seconds: float, engine: str) -> None:
    """One large cluster, in this process: its memory is the process's peak."""
    instance = generate(Cell(nodes, 8, 4, usage), 1)
    answer = solve(engine, instance, seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{nodes:>6} {usage:>6.0%} {answer['seconds']:>8} {answer['cpu_seconds']:>8} {peak:>8.0f} "
        f"{answer['before']!s:>26} {answer['after']!s:>26} {answer['bound']:>6} {answer['moved']:>6}",
        flush=True,
    )


def scale(arguments: Namespace) -> None:
    """Each case in a process of its own."""
    print(
        f"{'nodes':>6} {'usage':>6} {'wall_s':>8} {'cpu_s':>8} {'peak_MB':>8} {'before':>26} {'after':>26} bound moved"
    )
    sys.stdout.flush()
    for cell in SCALE:
        command = [sys.executable, "-m", "tools.bench.priority", "scale-case", str(cell.nodes), str(cell.usage)]
        subprocess.run([*command, str(arguments.seconds), arguments.engine], check=True)


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "report"):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, default=Path("priority.jsonl"))
    command = commands.choices["run"]
    command.add_argument("--instances", type=int, default=100)
    command.add_argument("--timeouts", type=numbers, default=[1, 10, 20])
    command.add_argument("--nodes", type=numbers, default=[4, 8, 16, 32])
    command.add_argument("--priorities", type=numbers, default=[1, 2, 4])
    command.add_argument("--usages", type=numbers, default=[0.90, 0.95, 1.00, 1.05])
    command.add_argument("--formulations", type=lambda text: text.split(","), default=list(FORMULATIONS))
    command.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: on a machine busy with else")
    command = commands.add_parser("scale")
    command.add_argument("--seconds", type=float, default=9.0)
    command.add_argument("--engine", choices=tuple(Engine), default=Engine.DECOMPOSITION)
    case = commands.add_parser("scale-case")
    case.add_argument("nodes", type=int)
    case.add_argument("usage", type=float)
    case.add_argument("seconds", type=float)
    case.add_argument("engine")
    arguments = parser.parse_args()
    match arguments.command:
        case "run":
            run(arguments)
        case "report":
            report(list(read(arguments.out)), arguments.out)
        case "scale":
            scale(arguments)
        case _:
            scale_case(arguments.nodes, arguments.usage, arguments.seconds, arguments.engine)


if __name__ == "__main__":
    main()
