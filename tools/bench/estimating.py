"""Run lengths learned from a trace: how far they are off.

The tasks are walked through in time; each is estimated when it is created, and teaches only once it has ended.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from htas.model.pods import Pod, WorkKind
from htas.model.policy import RunLengths
from htas.model.record import Run
from htas.profiler.run_lengths import LearnedRunLengths
from htas.sandbox.workload import Arrival, Task, Workload


@dataclass(frozen=True, slots=True)
class Guess:
    """What a task was expected to take, and what it took, in seconds."""

    expected_s: float
    took_s: float


class Guesser(Protocol):
    """Expects run lengths in seconds, and is taught by tasks that have ended."""

    def expect(self, arrival: Arrival) -> float: ...

    def teach(self, arrival: Arrival) -> None: ...


class Always:
    """Nothing is learned: every task is expected to take the same."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def expect(self, arrival: Arrival) -> float:
        return self._seconds

    def teach(self, arrival: Arrival) -> None:
        pass


class SoFar:
    """The mean or the median of all tasks that have ended, whatever they were; the default before the first."""

    def __init__(self, of_all: Callable[[Iterable[float]], float], default_s: float) -> None:
        self._of_all, self._default_s = of_all, default_s
        self._seconds: list[float] = []

    def expect(self, arrival: Arrival) -> float:
        return self._of_all(self._seconds) if self._seconds else self._default_s

    def teach(self, arrival: Arrival) -> None:
        self._seconds.append(arrival.task.runs_s or 0.0)


class Learned:
    """What HTAS does; the default where it has learned too little."""

    def __init__(self, settings: RunLengths) -> None:
        self._settings = settings
        self._learned = LearnedRunLengths(settings)

    def expect(self, arrival: Arrival) -> float:
        found = self._learned.estimate(_pod(arrival))
        return found.seconds if found is not None else self._settings.default_s

    def teach(self, arrival: Arrival) -> None:
        self._learned.learn([run_of(arrival, arrival.at_s + (arrival.task.runs_s or 0.0))])


def walk(work: Workload, guesser: Guesser) -> list[Guess]:
    """Every task as it was expected when it was created. Those that the trace's end cut short are left out.

    A task is taken to begin at its creation, as it does in the sandbox but for the wait for a machine.
    """
    last = max(ends_at(arrival) for arrival in work.arrivals)
    ending: list[tuple[float, int]] = []
    guesses = []
    for number, arrival in enumerate(work.arrivals):
        while ending and ending[0][0] <= arrival.at_s:
            guesser.teach(work.arrivals[heapq.heappop(ending)[1]])
        if ends_at(arrival) < last:
            guesses.append(Guess(guesser.expect(arrival), arrival.task.runs_s or 0.0))
            heapq.heappush(ending, (ends_at(arrival), number))
    return guesses


@dataclass(frozen=True, slots=True)
class Errors:
    """How far guesses were off: medians and means in seconds, the factor as a number of at least 1."""

    median_s: float
    mean_s: float
    median_factor: float
    within_twice: float


def errors(guesses: list[Guess]) -> Errors:
    """The errors of guesses; raises ValueError where there are none."""
    if not guesses:
        raise ValueError("no task has ended: there is nothing to compare")
    off = [abs(guess.expected_s - guess.took_s) for guess in guesses]
    factors = [_factor(guess) for guess in guesses]
    within = sum(factor <= 2.0 for factor in factors) / len(factors)
    return Errors(statistics.median(off), statistics.fmean(off), statistics.median(factors), within)


def _factor(guess: Guess) -> float:
    """How many times too long or too short; what took less than a second counts as one."""
    expected, took = max(1.0, guess.expected_s), max(1.0, guess.took_s)
    return max(expected / took, took / expected)


def run_of(arrival: Arrival, ended_at: float) -> Run:
    """The record of a task that ended well."""
    task = arrival.task
    return Run(
        namespace=task.namespace,
        pod=task.name,
        uid=task.name,
        node="",
        kind=WorkKind.BATCH,
        owner=task.made_of(arrival.controller),
        image=task.image,
        cpu_m=task.requests.cpu_m,
        memory_bytes=task.requests.memory_bytes,
        share_millionths=0,
        began_at=ended_at - (task.runs_s or 0.0),
        came_at=ended_at - (task.runs_s or 0.0),
        ended_at=ended_at,
        succeeded=True,
    )


def _pod(arrival: Arrival) -> Pod:
    task: Task = arrival.task
    template = task.made_of(arrival.controller)
    return Pod(task.namespace, task.name, task.requests, kind=task.kind, template=template, image=task.image)


def ends_at(arrival: Arrival) -> float:
    """When a task ends that begins as it arrives, in seconds since the workload's start."""
    return arrival.at_s + (arrival.task.runs_s or 0.0)
