"""A small part of a corpus that runs nearly all of planning's lines that the whole runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from coverage import Coverage, CoverageData
from numpy.typing import NDArray

from tools.corpus.decisions import Asked, Corpus, Question

LineOfCode = tuple[str, int]
"""A module, and a line of it."""
ROUNDS = 2


def choose(corpus: Corpus, asked: Asked, packages: Iterable[Path], most_bytes: int) -> list[Question]:
    """Questions that run each line that any of them runs, ROUNDS times over, and one of each source beside them.

    The one is taken next that runs most of the lines missing in its round for its time and size. No more are taken
    than are written in `most_bytes`.
    """
    questions = list(corpus)
    return chosen(questions, lines_run(corpus, questions, asked, packages), most_bytes)


def chosen(questions: Sequence[Question], lines: Sequence[set[LineOfCode]], most_bytes: int) -> list[Question]:
    """The same of questions of which it is known what lines they run."""
    runs = _matrix(lines)
    sizes = np.array([len(msgspec.json.encode(each)) for each in questions])
    costs = 0.002 + sizes / 1e6 + np.array([each.seconds for each in questions])
    order: list[int] = []
    for _ in range(ROUNDS):
        order += _covering(runs, costs, order)
    seen = {questions[index].source for index in order}
    for index in map(int, costs.argsort(kind="stable")):
        if questions[index].source not in seen:
            seen.add(questions[index].source)
            order.append(index)
    count = int((np.cumsum(sizes[order]) <= most_bytes).sum())
    return [questions[index] for index in sorted(order[:count])]


def _covering(runs: NDArray[np.float32], costs: NDArray[np.float64], taken: list[int]) -> list[int]:
    """The next round: questions not taken yet that together run all lines that any of these runs."""
    is_left = np.ones(len(runs), dtype=bool)
    is_left[taken] = False
    missing = (runs * is_left[:, None]).max(axis=0)
    found: list[int] = []
    while missing.any():
        best = int(np.where(is_left, runs @ missing / costs, 0.0).argmax())
        is_left[best] = False
        found.append(best)
        missing = np.where(runs[best] > 0, 0.0, missing).astype(np.float32)
    return found


def _matrix(found: Sequence[set[LineOfCode]]) -> NDArray[np.float32]:
    """A row for each question, a column for each line: 1 where it is run."""
    columns = {line: column for column, line in enumerate(sorted(set().union(*found)))}
    runs = np.zeros((len(found), len(columns)), dtype=np.float32)
    for row, lines in enumerate(found):
        runs[row, [columns[line] for line in lines]] = 1.0
    return runs


def lines_run(
    corpus: Corpus, questions: Sequence[Question], asked: Asked, packages: Iterable[Path]
) -> list[set[LineOfCode]]:
    """Of each question the lines that it runs."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "lines"
        coverage = Coverage(data_file=str(file), source_dirs=[str(package) for package in packages])
        coverage.start()
        for index, question in enumerate(questions):
            coverage.switch_context(f"{index}")
            corpus.decided(question, asked)
        coverage.stop()
        coverage.save()
        data = CoverageData(str(file))
        data.read()
        found: list[set[LineOfCode]] = [set() for _ in questions]
        for module in data.measured_files():
            for line, contexts in data.contexts_by_lineno(module).items():
                for context in filter(None, contexts):
                    found[int(context)].add((module, line))
        return found
