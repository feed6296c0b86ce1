"""The experiment with run lengths: what is known when, how errors are counted, and what playing adds up to."""

from __future__ import annotations

import statistics

import msgspec
import pytest

from htas.model.pods import WorkKind
from htas.model.policy import RunLengths
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, Task, Workload
from htas.sandbox.workloads.openb import SAMPLE, openb
from tests.builders import batch_group, make_policy
from tools.bench.estimating import Always, Errors, Guess, Learned, SoFar, errors, walk
from tools.bench.playing import play

GIB = 2**30


def job(number: int, at_s: float, runs_s: float) -> Arrival:
    requests = Resources(500, GIB, 0, 1)
    return Arrival(at_s, Task(f"job-{number}", requests, WorkKind.BATCH, runs_s=runs_s, stated_s=runs_s))


WORK = Workload("four", (job(1, 0.0, 100.0), job(2, 50.0, 300.0), job(3, 100.0, 80.0), job(4, 900.0, 700.0)))


def test_a_task_teaches_only_once_it_has_ended() -> None:
    """The first ends when the third comes; the fourth is cut short by the trace's end, and is not judged."""
    learning = Learned(RunLengths(min_runs=1))
    assert [guess.expected_s for guess in walk(WORK, learning)] == [600.0, 600.0, 100.0]
    assert [guess.took_s for guess in walk(WORK, Always(1.0))] == [100.0, 300.0, 80.0]


@pytest.mark.parametrize(
    ("of_all", "expected"), [pytest.param(statistics.fmean, 160.0, id="mean"), (statistics.median, 100.0)]
)
def test_the_yardsticks_know_all_that_has_ended(of_all: object, expected: float) -> None:
    longer = Workload("five", (*WORK.arrivals[:3], job(4, 900.0, 50.0), job(5, 901.0, 700.0)))
    assert callable(of_all)
    assert [guess.expected_s for guess in walk(longer, SoFar(of_all, 600.0))] == [600.0, 600.0, 100.0, expected]


def test_errors_by_hand() -> None:
    found = errors([Guess(100.0, 50.0), Guess(100.0, 400.0), Guess(100.0, 110.0)])
    assert found == Errors(50.0, 120.0, 2.0, 2 / 3)
    with pytest.raises(ValueError, match="nothing to compare"):
        errors([])


@pytest.mark.parametrize(
    ("settings", "states"),
    [
        pytest.param(RunLengths(), True, id="exact"),
        pytest.param(RunLengths(), False, id="learned"),
        pytest.param(RunLengths(learn=False), False, id="none"),
    ],
)
def test_whatever_is_known_all_work_ends_and_is_billed(settings: RunLengths, states: bool) -> None:
    policy = msgspec.structs.replace(make_policy([batch_group()]), run_lengths=settings)
    played = play(WORK, policy, states=states)
    assert (played.finished, played.lost) == (4, 0)
    assert played.machines >= 2
    assert played.cost > 0
    assert 0 < played.mean_wait_s <= played.wait_p99_s


def test_the_sample_is_expected_better_by_what_was_learned_than_by_the_mean() -> None:
    work = openb(SAMPLE)
    learned, mean = (errors(walk(work, guesser)) for guesser in (Learned(RunLengths()), SoFar(statistics.fmean, 600.0)))
    assert learned.median_factor < mean.median_factor
