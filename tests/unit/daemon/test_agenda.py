"""When which stages are due, told in instants: no clock, no thread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htas.daemon.loops.agenda import Agenda
from htas.model.stages import EVENT_STAGES, Stage

PLACE = frozenset({Stage.SCHEDULING})
EVERY_S = {Stage.SCHEDULING: 20.0, Stage.AUTOSCALING: 20.0, Stage.CLEANING: 60.0}


def idle(idle_s: float = 0.2, longest_s: float = 2.0) -> Agenda:
    """An agenda whose first cycles are over; it is 0 o'clock."""
    agenda = Agenda(EVERY_S, idle_s, longest_s, 0.0)
    run(agenda, 0.0)
    return agenda


def run(agenda: Agenda, at: float, *, took_s: float = 0.0, lacks_room: bool = False) -> frozenset[Stage]:
    """The cycle that is due at an instant."""
    stages = agenda.due(at)
    agenda.began(stages, at)
    agenda.ended(at, at + took_s, waits_to_buy=lacks_room)
    return stages


def test_every_periodic_stage_is_due_at_first_and_then_by_its_period() -> None:
    agenda = Agenda(EVERY_S, 0.2, 2.0, 0.0)
    assert run(agenda, 0.0) == frozenset(EVERY_S)
    assert agenda.next_at() == 20.0
    assert not agenda.due(19.9)
    assert run(agenda, 20.5) == EVENT_STAGES
    assert agenda.next_at() == 40.5


def test_what_comes_next_is_told_by_stage_and_a_failure_puts_it_off() -> None:
    agenda = idle()
    assert list(agenda.upcoming().items()) == [
        (Stage.AUTOSCALING, 20.0),
        (Stage.SCHEDULING, 20.0),
        (Stage.CLEANING, 60.0),
    ]
    agenda.follow(Stage.EDGE, 30.0, 0.0)
    agenda.began(PLACE, 19.8)
    agenda.failed(PLACE, 19.9)
    assert agenda.upcoming() == {
        Stage.AUTOSCALING: 20.4,
        Stage.EDGE: 30.0,
        Stage.SCHEDULING: 39.8,
        Stage.CLEANING: 60.0,
    }
    assert agenda.next_at() == 20.4, "as is told"


def test_the_first_change_after_a_rest_is_acted_on_at_once_and_that_is_all_where_it_has_room() -> None:
    agenda = idle()
    agenda.changed(5.0)
    assert agenda.next_at() == 5.0
    assert run(agenda, 5.0) == PLACE
    assert agenda.news_at() is None


def test_what_has_no_room_is_bought_for_when_the_window_ends() -> None:
    agenda = idle()
    agenda.changed(5.0)
    assert run(agenda, 5.0, lacks_room=True) == PLACE
    assert agenda.news_at() == 5.2
    assert run(agenda, 5.2) == EVENT_STAGES
    assert agenda.news_at() is None


def test_more_that_comes_lengthens_the_window_but_not_for_ever() -> None:
    agenda = idle()
    for tenth in range(50, 70):
        agenda.changed(tenth / 10)
        assert run(agenda, tenth / 10, lacks_room=True) == PLACE
    assert agenda.news_at() == 7.0
    assert run(agenda, 7.0) == EVENT_STAGES


def test_a_long_cycle_is_followed_by_a_rest_in_which_work_gathers() -> None:
    agenda = idle()
    agenda.changed(5.0)
    run(agenda, 5.0, took_s=0.4)
    agenda.changed(5.1)
    agenda.changed(5.45)
    assert not agenda.due(5.45)
    assert agenda.news_at() == pytest.approx(5.5)
    assert run(agenda, 5.51) == PLACE


def test_a_change_during_a_cycle_is_not_taken_for_seen() -> None:
    agenda = idle()
    agenda.changed(5.0)
    stages = agenda.due(5.0)
    agenda.began(stages, 5.0)
    agenda.changed(5.01)
    agenda.ended(5.0, 5.02, waits_to_buy=False)
    assert agenda.news_at() == pytest.approx(5.025)


def test_an_answer_waits_for_company() -> None:
    agenda = idle()
    agenda.answered(5.0)
    agenda.answered(5.1)
    assert not agenda.due(5.1)
    assert run(agenda, 5.2) == EVENT_STAGES


def test_with_no_cycles_on_events_changes_wait_for_the_period() -> None:
    agenda = idle(0.0, 0.0)
    agenda.changed(5.0)
    assert (agenda.news_at(), agenda.next_at()) == (None, 20.0)


def test_what_is_asked_for_is_due_now() -> None:
    agenda = idle()
    agenda.ask(frozenset({Stage.CLEANING}))
    assert agenda.next_at() < 0
    assert run(agenda, 5.0) == {Stage.CLEANING}
    assert agenda.next_at() == 20.0


def fail(agenda: Agenda, at: float) -> frozenset[Stage]:
    """The cycle that is due at an instant, and fails."""
    stages = agenda.due(at)
    agenda.began(stages, at)
    agenda.failed(stages, at)
    return stages


def test_the_news_of_a_cycle_that_failed_is_acted_on_by_the_next() -> None:
    agenda = idle()
    agenda.changed(5.0)
    assert fail(agenda, 5.0) == PLACE
    assert (agenda.expects, agenda.news_at(), agenda.next_at()) == (True, 5.5, 5.5)
    assert not agenda.due(5.4)
    assert run(agenda, 5.5) == EVENT_STAGES, "the window has ended meanwhile"
    assert agenda.news_at() is None


def test_cycles_that_fail_are_tried_less_and_less_often_whatever_else_comes() -> None:
    """An answer of the cloud is unread until a cycle succeeds, and somebody asks for cleaning again and again."""
    agenda, at, pauses = idle(), 5.0, []
    agenda.ask(frozenset({Stage.CLEANING}))
    for _ in range(7):
        assert fail(agenda, at) >= {Stage.CLEANING}
        agenda.answered(at)
        agenda.changed(at + 0.1)
        agenda.ask(frozenset({Stage.CLEANING}))
        pauses.append(agenda.next_at() - at)
        assert agenda.news_at() == agenda.next_at() <= agenda.periodic_at()
        at = agenda.next_at()
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    run(agenda, at)
    agenda.changed(at + 1.0)
    fail(agenda, at + 1.0)
    assert agenda.next_at() == at + 1.5, "one that succeeded ends the series"


def test_a_stage_is_followed_for_as_long_as_it_makes_sense() -> None:
    agenda = idle()
    agenda.follow(Stage.EDGE, 3.0, 1.0)
    agenda.follow(Stage.EDGE, 3.0, 2.0)
    assert agenda.next_at() == 4.0, "not put off by being told again"
    assert run(agenda, 4.0) == {Stage.EDGE}
    agenda.follow(Stage.EDGE, None, 5.0)
    assert agenda.next_at() == 20.0


def test_other_periods_hold_at_once() -> None:
    agenda = idle()
    agenda.adopt({**EVERY_S, Stage.CLEANING: 5.0}, 0.5, 3.0, 1.0)
    assert agenda.next_at() == 6.0


Happening = tuple[float, bool, bool]


@given(st.lists(st.tuples(st.floats(0.001, 1.0), st.booleans(), st.booleans()), max_size=40), st.floats(0.0, 0.5))
def test_no_change_is_ever_forgotten_nor_waits_longer_than_a_cycle_its_rest_and_the_window(
    happenings: list[Happening], took_s: float
) -> None:
    """(pause, whether something changes then, whether the next cycle lacks room), one cycle after the other."""
    agenda, now = idle(), 1.0
    unplaced_since: float | None = None
    unbought_since: float | None = None
    for pause_s, is_change, lacks_room in happenings:
        now += pause_s
        if is_change:
            agenda.changed(now)
            unplaced_since = now if unplaced_since is None else unplaced_since
        due_at = agenda.next_at()
        if unplaced_since is not None:
            assert due_at <= unplaced_since + took_s + 1e-9
        if unbought_since is not None:
            assert due_at <= unbought_since + 2.0 + 1e-9
        if due_at <= now:
            stages = run(agenda, now, took_s=took_s, lacks_room=lacks_room)
            assert Stage.SCHEDULING in stages or unplaced_since is None
            unplaced_since = None
            if stages >= EVENT_STAGES or not lacks_room:
                unbought_since = None
            elif unbought_since is None:
                unbought_since = now
            now += took_s
