"""`htas experiment`: play policies against each other in the sandbox, and write workloads to play."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_context
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from htas.cli.console import FAILED, InputError, err, out, told
from htas.experiments.designs import EXPERIMENTS, WORK, Design, Source, contender_of, design, on_request
from htas.experiments.edge.contenders import EdgeContender
from htas.experiments.edge.design import ScenarioSource
from htas.experiments.edge.results import EdgeResults, EdgeRun, write_edge_results
from htas.experiments.results import Results, RunResult, Timing, write_results
from htas.experiments.workloads.patterns import Pattern, Shape, named, workload
from htas.experiments.workloads.table import write_workload
from htas.ports import PermanentError
from htas.trials import bill, edge

app = typer.Typer(help="Play policies against each other in the sandbox.", no_args_is_help=True)

Part = tuple[str, str, Source | ScenarioSource, int]
"""Experiment, contender, workload and seed: what a process needs to play a trial."""
Played = tuple[RunResult | EdgeRun, Timing]
TOLD = 10
"""Where no bar is drawn, a line is written each time that so many trials more have been played."""


@app.command("run")
def run_experiment(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}.")],
    to: Annotated[Path | None, typer.Option("--to", help="The folder for results; else results/NAME.")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Repetitions, each with a seed of its own; else 10, of edge 20."),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", help="Only these; may be given often. Some play only where named: see `list`."),
    ] = None,
    patterns: Annotated[list[str] | None, typer.Option("--pattern", help="Only these; may be given often.")] = None,
    work: Annotated[
        Path | None, typer.Option("--workload", help="A workload of your own (CSV); for trace, an openb pod list.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; else one for each core.")] = None,
) -> None:
    """Play every policy on every workload with every seed, and write what they came to."""
    with told():
        chosen = design(name, policies=policies or (), sources=patterns or (), seeds=seeds, path=work)
        for source in chosen.sources:
            source.workload(chosen.seeds[0])  # what cannot be played is told before anything is
        folder = _made(to if to is not None else Path("results") / name)
        results, timings = play(chosen, workers or os.cpu_count() or 1)
        if results.runs:
            try:
                if isinstance(results, EdgeResults):
                    write_edge_results(results, timings, folder)
                else:
                    write_results(results, timings, folder)
            except OSError as error:
                raise PermanentError(f"{folder}: cannot be written: {error.strerror}") from None
    for result in [] if isinstance(results, EdgeResults) else results.runs:
        if result.note:
            err.print(f"{result.policy}, {result.pattern}, seed {result.seed}: {result.note}", markup=False)
    out.print(f"{len(results.runs)} runs written to {folder}", markup=False, soft_wrap=True)
    if len(results.runs) < chosen.runs:
        err.print(f"interrupted: {chosen.runs - len(results.runs)} of {chosen.runs} runs were not played", markup=False)
        raise typer.Exit(FAILED)


def _made(folder: Path) -> Path:
    """The folder, in which files can be made: told before an hour is played, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise InputError(f"--to: {folder}: cannot be written to: {error.strerror}") from None


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
    with told():
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
    """Tell which experiments, policies and patterns there are."""
    for name in EXPERIMENTS:
        out.print(f"{name}: {', '.join(design(name).contenders)}", markup=False, soft_wrap=True)
        if on_request(name):
            out.print(f"{name}, only with --policy: {', '.join(on_request(name))}", markup=False, soft_wrap=True)
    for name, found in WORK.items():
        out.print(f"{name}: {', '.join(found)}", markup=False, soft_wrap=True)


@app.command("report")
def report_on_results(
    folder: Annotated[Path, typer.Argument(help="A folder of results, or one with a folder for each experiment.")],
    into: Annotated[Path | None, typer.Option("--into", help="Write there; else beside the results.")] = None,
) -> None:
    """Write tables with confidence intervals, and figures: the paper's 3 to 8, for edge KubeDSM's 4 to 11."""
    from htas.cli.experiment_report import report

    with told():
        typer.echo(report(folder, into))


def play(chosen: Design, workers: int) -> tuple[Results | EdgeResults, list[Timing]]:
    """Play all trials of a design, several at a time; the results stand in the design's order whoever is done first.

    Where it is interrupted (Ctrl-C, SIGTERM) they are of those that have been played by then.
    """
    parts: list[Part] = [
        (chosen.name, name, source, seed)
        for source in chosen.sources
        for name in chosen.contenders
        for seed in chosen.seeds
    ]
    done: dict[int, Played] = {}
    with suppress(KeyboardInterrupt), _ended_like_interrupted():
        _play_into(done, parts, workers)
    played = [done[index] for index in sorted(done)]
    return _results(chosen, [result for result, _ in played]), [timing for _, timing in played]


def _results(chosen: Design, runs: list[RunResult | EdgeRun]) -> Results | EdgeResults:
    names = tuple(source.name for source in chosen.sources)
    first = contender_of(chosen.name, chosen.contenders[0])
    if isinstance(first, EdgeContender):
        of_edge = tuple(run for run in runs if isinstance(run, EdgeRun))
        return EdgeResults(chosen.name, chosen.contenders, names, chosen.seeds, of_edge)
    return Results(
        experiment=chosen.name,
        currency=first.policy.catalogue.currency,
        policies=chosen.contenders,
        patterns=names,
        seeds=chosen.seeds,
        runs=tuple(run for run in runs if isinstance(run, RunResult)),
    )


def _play_into(done: dict[int, Played], parts: list[Part], workers: int) -> None:
    """Note each trial by its place among the parts as soon as it is over."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    spawning = get_context("spawn")
    with (
        Progress(*columns, TimeRemainingColumn(), console=err, disable=not err.is_terminal) as progress,
        ProcessPoolExecutor(min(workers, len(parts)), mp_context=spawning, initializer=_ignore_interrupts) as pool,
    ):
        task = progress.add_task(parts[0][0], total=len(parts))
        playing = {pool.submit(_play_part, part): index for index, part in enumerate(parts)}
        try:
            for trial in as_completed(playing):
                part = parts[playing[trial]]
                done[playing[trial]] = trial.result()
                said = f"{part[1]} on {part[2].name}, seed {part[3]}"
                progress.update(task, advance=1, description=said)
                if not err.is_terminal and (len(done) % TOLD == 0 or len(done) == len(parts)):
                    err.print(f"{len(done)} of {len(parts)} played, last {said}", markup=False, soft_wrap=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():  # a trial on the whole trace takes minutes: nobody waits for its end
                child.terminate()
            raise


@contextmanager
def _ended_like_interrupted() -> Iterator[None]:
    """What `timeout` or a system going down ends has played for an hour, too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ignore_interrupts() -> None:
    """Ctrl-C goes to all processes of a terminal; the one that hands out the trials ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _play_part(part: Part) -> Played:
    """In a process of its own."""
    experiment, name, source, seed = part
    contender, work = contender_of(experiment, name), source.workload(seed)
    if isinstance(contender, EdgeContender):
        return edge.run(contender, source.name, work, seed)
    return bill.run(bill.Trial(contender, source.name, work, seed))
