"""A small part of a corpus that runs nearly all of planning's lines that the whole runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
from coverage import Coverage, CoverageData
from numpy.typing import NDArray

from tools.corpus.decisions import Corpus, Decision, Planner

LineOfCode = tuple[str, int]
"""A module, and a line of it."""
ROUNDS = 2


def choose(
    corpus: Corpus, planner: Planner, packages: Iterable[Path], seconds: float, bytes_each: int
) -> list[Decision]:
    """Decisions that run each line that any of them runs, ROUNDS times over, and one of each source beside them.

    Of decisions the one is taken next that runs most of the lines missing in its round for its time and size. Those
    written in more than `bytes_each` are left out; no more are taken than are planned in `seconds`.
    """
    decisions = [each for each in corpus if len(msgspec.json.encode(each)) <= bytes_each]
    runs = _matrix(_lines_run(corpus, decisions, planner, packages))
    costs = np.array([_cost(each) for each in decisions])
    chosen: list[int] = []
    for _ in range(ROUNDS):
        chosen += _covering(runs, costs, chosen)
    seen = {decisions[index].source for index in chosen}
    for index in map(int, costs.argsort(kind="stable")):
        if decisions[index].source not in seen:
            seen.add(decisions[index].source)
            chosen.append(index)
    spent = np.cumsum([decisions[index].seconds for index in chosen])
    return [decisions[index] for index in sorted(chosen[: int((spent <= seconds).sum())])]


def _covering(runs: NDArray[np.float32], costs: NDArray[np.float64], taken: list[int]) -> list[int]:
    """The next round: decisions not taken yet that together run all lines that any of these runs."""
    is_left = np.ones(len(runs), dtype=bool)
    is_left[taken] = False
    missing = (runs * is_left[:, None]).max(axis=0)
    chosen: list[int] = []
    while missing.any():
        best = int(np.where(is_left, runs @ missing / costs, 0.0).argmax())
        is_left[best] = False
        chosen.append(best)
        missing = np.where(runs[best] > 0, 0.0, missing).astype(np.float32)
    return chosen


def _matrix(found: list[set[LineOfCode]]) -> NDArray[np.float32]:
    """A row for each decision, a column for each line: 1 where it is run."""
    columns = {line: column for column, line in enumerate(sorted(set().union(*found)))}
    runs = np.zeros((len(found), len(columns)), dtype=np.float32)
    for row, lines in enumerate(found):
        runs[row, [columns[line] for line in lines]] = 1.0
    return runs


def _cost(decision: Decision) -> float:
    return 0.002 + decision.seconds + len(msgspec.json.encode(decision)) / 5e6


def _lines_run(
    corpus: Corpus, decisions: list[Decision], planner: Planner, packages: Iterable[Path]
) -> list[set[LineOfCode]]:
    """Of each decision the lines that it runs."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "lines"
        coverage = Coverage(data_file=str(file), source_dirs=[str(package) for package in packages])
        coverage.start()
        for index, decision in enumerate(decisions):
            coverage.switch_context(f"{index}")
            corpus.planned(decision, planner)
        coverage.stop()
        coverage.save()
        data = CoverageData(str(file))
        data.read()
        found: list[set[LineOfCode]] = [set() for _ in decisions]
        for module in data.measured_files():
            for line, contexts in data.contexts_by_lineno(module).items():
                for context in filter(None, contexts):
                    found[int(context)].add((module, line))
        return found
