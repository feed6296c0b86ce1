"""Calls to the cloud: one after another about each machine, and not again at once when one fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from htas.execution.calls import DirectCalls
from htas.execution.cloud_calls import CloudCalls
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.sandbox.clock import VirtualClock
from tests.builders import NOW


class Cloud:
    """Whose calls fail while it is told to; `made_at` are the seconds at which it was called."""

    def __init__(self) -> None:
        self.clock = VirtualClock(NOW)
        self.calls = CloudCalls(DirectCalls(), self.clock)
        self.fails = True
        self.made_at: list[float] = []
        self.seen_under_way: list[frozenset[str]] = []

    def call(self) -> Outcome:
        self.made_at.append(self.clock.now() - NOW)
        self.seen_under_way.append(self.calls.under_way)
        return Outcome(Action.LAUNCH, "a", OutcomeStatus.FAILED if self.fails else OutcomeStatus.DONE)

    def asked_until(self, seconds: int, *longest_s: float) -> list[float]:
        """Every second somebody asks; when calls were made."""
        for at in range(seconds + 1):
            self.clock.set(NOW + at)
            self.calls.begin("a", self.call, *longest_s)
        return self.made_at


@pytest.mark.parametrize(
    ("longest_s", "made"),
    [
        pytest.param((), [0, 1, 3, 7, 15, 25, 35, 45], id="creates: 1, 2, 4, 8, then every 10 s"),
        pytest.param((300.0,), [0, 1, 3, 7, 15, 31], id="deletes: doubling up to five minutes"),
        pytest.param((1.5,), [0, 1, 3, 5, 7], id="no longer than is said"),
    ],
)
def test_a_call_that_goes_on_failing_is_made_more_and_more_seldom(
    longest_s: tuple[float, ...], made: list[int]
) -> None:
    assert Cloud().asked_until(max(made), *longest_s) == made


def test_a_call_that_worked_is_made_again_at_once_and_fails_from_the_shortest_pause_on() -> None:
    cloud = Cloud()
    cloud.asked_until(3)
    cloud.fails = False
    cloud.clock.set(NOW + 7)
    cloud.calls.begin("a", cloud.call)
    cloud.calls.begin("a", cloud.call)
    cloud.fails = True
    cloud.calls.begin("a", cloud.call)
    cloud.clock.set(NOW + 8)
    cloud.calls.begin("a", cloud.call)
    assert cloud.made_at == [0, 1, 3, 7, 7, 7, 8]


@pytest.mark.parametrize(
    "ended",
    [
        pytest.param(lambda calls: calls.resume(), id="the cloud answers again"),
        pytest.param(lambda calls: calls.forget("a"), id="the machine is forgotten"),
    ],
)
def test_a_pause_ends_when(ended: Callable[[CloudCalls], None]) -> None:
    cloud = Cloud()
    cloud.calls.begin("a", cloud.call)
    cloud.calls.begin("a", cloud.call)
    assert cloud.made_at == [0]
    ended(cloud.calls)
    cloud.calls.begin("a", cloud.call)
    assert cloud.made_at == [0, 0]


def test_the_pause_of_one_machine_is_not_another_s() -> None:
    cloud = Cloud()
    cloud.calls.begin("a", cloud.call)
    cloud.calls.begin("b", cloud.call)
    assert cloud.made_at == [0, 0]


def test_a_machine_is_asked_about_from_the_beginning_of_its_call_to_the_end() -> None:
    cloud = Cloud()
    cloud.calls.begin("a", cloud.call)
    assert (cloud.seen_under_way, cloud.calls.under_way) == ([frozenset({"a"})], frozenset())
    assert cloud.calls.has_answers()
    assert [each.status for each in cloud.calls.answers()] == [OutcomeStatus.FAILED]
    assert (cloud.calls.has_answers(), cloud.calls.answers()) == (False, [])


def test_a_defect_of_ours_is_told_of_its_own_call_and_is_a_failure_like_others() -> None:
    cloud = Cloud()

    def broken() -> Outcome:
        raise KeyError("flavour")

    cloud.calls.begin("a", broken)
    cloud.calls.begin("a", cloud.call)
    (told,) = cloud.calls.answers()
    assert (told.subject, told.status, told.message) == (
        "a",
        OutcomeStatus.FAILED,
        "a defect of htas: KeyError('flavour')",
    )
    assert cloud.made_at == []
