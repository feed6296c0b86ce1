"""What `python -m tools.lab run` does: trials on several processes at a time, and their results in files."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_context
from pathlib import Path
from tempfile import TemporaryFile

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from htas.cli.console import InputError, err
from htas.ports import PermanentError
from tools.lab.designs import Design, Source, contender_of
from tools.lab.edge.contenders import EdgeContender
from tools.lab.edge.results import EdgeResults, EdgeRun, write_edge_results
from tools.lab.edge.scenarios import ScenarioSource
from tools.lab.results import Results, RunResult, Timing, write_results
from tools.lab.trials import bill, edge

Part = tuple[str, str, Source | ScenarioSource, int, Path | None]
"""Experiment, contender, workload, seed and price file: what a process needs to play a trial."""
Played = tuple[RunResult | EdgeRun, Timing]
TOLD = 10
"""Where no bar is drawn, a line is written after the first trial, and each time that so many more have been played."""


def made(folder: Path) -> Path:
    """The folder, in which files can be made: told before an hour is played, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise InputError(f"--to: {folder}: cannot be written to: {error.strerror}") from None


def write(results: Results | EdgeResults, timings: list[Timing], folder: Path) -> None:
    """Raises PermanentError where the folder cannot be written to any more."""
    try:
        if isinstance(results, EdgeResults):
            write_edge_results(results, timings, folder)
        else:
            write_results(results, timings, folder)
    except OSError as error:
        raise PermanentError(f"{folder}: cannot be written: {error.strerror}") from None


def play(chosen: Design, workers: int) -> tuple[Results | EdgeResults, list[Timing]]:
    """Play all trials of a design, several at a time; the results stand in the design's order whoever is done first.

    Where it is interrupted (Ctrl-C, SIGTERM) they are of those that have been played by then.
    """
    parts: list[Part] = [
        (chosen.name, name, source, seed, chosen.prices)
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
    first = contender_of(chosen.name, chosen.contenders[0], chosen.prices)
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
                if not err.is_terminal and (len(done) % TOLD == 0 or len(done) in (1, len(parts))):
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
    experiment, name, source, seed, prices = part
    contender, work = contender_of(experiment, name, prices), source.workload(seed)
    if isinstance(contender, EdgeContender):
        return edge.run(contender, source.name, work, seed)
    return bill.run(bill.Trial(contender, source.name, work, seed))
