"""The commands of `python -m tools.lab`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from htas.cli.console import FAILED, InputError, err, exit_on_error, out
from tools.lab.designs import EXPERIMENTS, WORK, design, on_request
from tools.lab.edge.results import EdgeResults
from tools.lab.playing import made, play, write
from tools.lab.reporting import report
from tools.lab.workloads.patterns import Pattern, Shape, named, workload
from tools.lab.workloads.table import write_workload

MOST_SEEDS = 10_000

app = typer.Typer(
    name="lab",
    help="Compare policies in the sandbox.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("run")
def run_experiment(
    name: Annotated[str, typer.Argument(help="An experiment: `list` names them.")],
    to: Annotated[Path | None, typer.Option("--to", help="The folder for results; else results/NAME.")] = None,
    seeds: Annotated[
        str,
        typer.Option(
            metavar="N|LIST", help="Repetitions: 5 plays seeds 1 to 5; 101,102 or 11-20 name them; else 10, of edge 20."
        ),
    ] = "",
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", help="Only these; may be given often. Some play only where named: see `list`."),
    ] = None,
    patterns: Annotated[list[str] | None, typer.Option("--pattern", help="Only these; may be given often.")] = None,
    work: Annotated[
        Path | None, typer.Option("--workload", help="A workload of your own (CSV); for trace, an openb pod list.")
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="A price file in the place of the paper's, for paper and ablation.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; else one for each core.")] = None,
) -> None:
    """Play every policy on every workload with every seed, and write what they came to."""
    with exit_on_error():
        chosen = design(
            name,
            policies=policies or (),
            sources=patterns or (),
            seeds=seeds_named(seeds),
            path=work,
            prices=prices,
        )
        for source in chosen.sources:
            source.workload(chosen.seeds[0])  # what cannot be played is told before anything is
        folder = made(to if to is not None else Path("results") / name)
        results, timings = play(chosen, workers or os.cpu_count() or 1)
        if results.runs:
            write(results, timings, folder)
    for result in [] if isinstance(results, EdgeResults) else results.runs:
        if result.note:
            err.print(f"{result.policy}, {result.pattern}, seed {result.seed}: {result.note}", markup=False)
    out.print(f"{len(results.runs)} runs written to {folder}", markup=False, soft_wrap=True)
    if len(results.runs) < chosen.runs:
        err.print(f"interrupted: {chosen.runs - len(results.runs)} of {chosen.runs} runs were not played", markup=False)
        raise typer.Exit(FAILED)


def seeds_named(text: str) -> tuple[int, ...]:
    """Seeds as people name them: a number of them, a list, or ranges; empty: as many as the experiment has.

    Raises InputError with what can be written.
    """
    if not text:
        return ()
    if text.isdecimal() and 0 < int(text) <= MOST_SEEDS:
        return tuple(range(1, int(text) + 1))
    found: dict[int, None] = {}
    for part in text.split(","):
        ends = re.fullmatch(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?", part.strip())
        seeds = range(int(ends[1]), int(ends[2] or ends[1]) + 1) if ends is not None else range(0)
        if not 0 < len(seeds) <= MOST_SEEDS:
            raise InputError(f"--seeds: {part!r} is no seed; write how many, or name them: 101,102 or 11-20")
        found |= dict.fromkeys(seeds)
    return tuple(found)


@app.command("workload")
def make_workload(
    to: Annotated[Path, typer.Option("--to", help="The CSV file to write.")],
    pattern: Annotated[str, typer.Option(help="One of the paper's patterns to begin with.")] = "stable",
    seed: Annotated[int, typer.Option(help="The same seed gives the same tasks.")] = 1,
    shape: Annotated[Shape | None, typer.Option(help="The shape; else the pattern's.")] = None,
    high: Annotated[float | None, typer.Option(help="Tasks a minute at the highest.")] = None,
    low: Annotated[float | None, typer.Option(help="Tasks a minute at the lowest.")] = None,
    minutes: Annotated[float | None, typer.Option(help="How long tasks arrive.")] = None,
    period: Annotated[float | None, typer.Option(help="Minutes of a cycle, or of on and off together.")] = None,
    on_share: Annotated[float | None, typer.Option(help="The part of a period that is on.")] = None,
) -> None:
    """Write a workload as CSV, to look at, to change and to play with `run --workload`."""
    with exit_on_error():
        base = named(pattern)
        own = Pattern(
            name=base.name,
            shape=shape or base.shape,
            high=base.high if high is None else high,
            low=base.low if low is None else low,
            length_s=base.length_s if minutes is None else minutes * 60,
            period_s=base.period_s if period is None else period * 60,
            on_share=base.on_share if on_share is None else on_share,
            begins_s=base.begins_s,
            kinds=base.kinds,
        )
        work = workload(own, seed)
        try:
            write_workload(work, to)
        except OSError as error:
            raise InputError(f"--to: {to}: cannot be written: {error.strerror}; name a file in a folder") from None
    out.print(f"{len(work.arrivals)} tasks written to {to}", markup=False, soft_wrap=True)


@app.command("list")
def list_all() -> None:
    """List experiments, policies and patterns."""
    for name in EXPERIMENTS:
        out.print(f"{name}: {', '.join(design(name).contenders)}", markup=False, soft_wrap=True)
        if on_request(name):
            out.print(f"{name}, only with --policy: {', '.join(on_request(name))}", markup=False, soft_wrap=True)
    for name, found in WORK.items():
        out.print(f"{name}: {', '.join(found)}", markup=False, soft_wrap=True)


@app.command("report")
def report_on_results(
    folder: Annotated[Path, typer.Argument(help="A folder of results, or one with a folder for each experiment.")],
    into: Annotated[Path | None, typer.Option("--into", help="Write there; else next to the results.")] = None,
) -> None:
    """Write tables with confidence intervals, and figures: the paper's 3 to 8, for edge KubeDSM's 4 to 11."""
    with exit_on_error():
        typer.echo(report(folder, into))
