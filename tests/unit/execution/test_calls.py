"""Calls one after another, and several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Barrier, Event, Timer

import pytest

from htas.execution.calls import Calls, DirectCalls, ParallelCalls
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from tests.waiting import until


def call(name: str, act: Callable[[], object] = lambda: None) -> Callable[[], Outcome]:
    def made() -> Outcome:
        act()
        return Outcome(Action.BIND, name, OutcomeStatus.DONE)

    return made


@pytest.fixture(params=["direct", "parallel"])
def calls(request: pytest.FixtureRequest) -> Iterator[Calls]:
    made = DirectCalls() if request.param == "direct" else ParallelCalls(4)
    yield made
    made.close()


def test_outcomes_come_in_the_order_of_the_calls(calls: Calls) -> None:
    assert [outcome.subject for outcome in calls.all(call(str(i)) for i in range(20))] == [str(i) for i in range(20)]


def test_what_is_not_waited_for_is_told_once(calls: Calls) -> None:
    calls.later(call("a"))
    until(calls.has_done)
    assert [outcome.subject for outcome in calls.done()] == ["a"]
    assert not calls.has_done()
    assert calls.done() == []


def test_several_run_at_one_time() -> None:
    calls, together = ParallelCalls(3), Barrier(3, timeout=10.0)
    calls.all(call(str(i), together.wait) for i in range(3))
    calls.close()


def test_nobody_is_held_up_by_a_call_that_takes_long() -> None:
    calls, may_end = ParallelCalls(1), Event()
    calls.later(call("slow", lambda: may_end.wait(10.0)))
    assert (calls.has_done(), calls.done()) == (False, [])
    may_end.set()
    until(calls.has_done)
    assert [outcome.subject for outcome in calls.done()] == ["slow"]
    calls.close()


def test_what_has_not_begun_at_the_end_is_not_begun_any_more() -> None:
    """A hundred orders in the queue of a daemon that is told to end would hold it up beyond its grace period."""
    calls, may_end, began = ParallelCalls(1), Event(), Event()
    calls.later(call("under way", lambda: (began.set(), may_end.wait(10.0))))
    calls.later(call("in the queue"))
    began.wait(10.0)
    Timer(0.1, may_end.set).start()
    calls.close()
    assert [outcome.subject for outcome in calls.done()] == ["under way"]


def test_who_leads_no_more_makes_no_call() -> None:
    made: list[str] = []
    calls = ParallelCalls(2, may_act=lambda: False)
    (outcome,) = calls.all([call("a", lambda: made.append("a"))])
    calls.close()
    assert (outcome.status, made) == (OutcomeStatus.DROPPED, [])
