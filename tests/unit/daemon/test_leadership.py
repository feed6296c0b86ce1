"""Who leads, on a clock that the test moves."""

from __future__ import annotations

from contextlib import suppress

import pytest

from htas.daemon.leadership import Leadership, Timing
from htas.ports import TransientError
from tests.unit.daemon.in_memory_lease import InMemoryLease

TIMING = Timing(lease_s=15.0, renew_s=10.0, retry_s=2.0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def candidate(lease: InMemoryLease, name: str, clock: Clock, ahead_s: float = 0.0) -> Leadership:
    """One whose own clock is ahead: clocks of different machines need not agree."""
    return Leadership(lease, name, TIMING, clock=lambda: clock.now + ahead_s, wall=lambda: clock.now)


def test_the_first_to_come_leads_and_goes_on_leading(clock: Clock) -> None:
    one = candidate(InMemoryLease(), "one", clock)
    assert one.attempt()
    for _ in range(20):
        clock.now += 2.0
        assert one.attempt()
        assert one.is_leader
    assert (one.previous_term, one.term) == (0, 1)


def test_the_second_waits_until_the_lease_has_not_changed_for_its_length(clock: Clock) -> None:
    lease = InMemoryLease()
    one, other = candidate(lease, "one", clock), candidate(lease, "other", clock, ahead_s=5000.0)
    assert one.attempt()
    clock.now += 14.0
    assert not other.attempt(), "it has seen the lease for the first time: its age is not known"
    clock.now += 14.9
    assert not other.attempt()
    assert not one.is_leader, "ten seconds after its last renewal it leads no more, whoever else does"
    clock.now += 0.1
    assert other.attempt()
    assert (other.previous_term, other.term) == (1, 2)
    assert other.holder == "other"


def test_a_leader_that_cannot_renew_leads_no_longer_than_its_deadline(clock: Clock) -> None:
    lease = InMemoryLease()
    one = candidate(lease, "one", clock)
    one.attempt()
    lease.lose_requests = 99
    for seconds, leads in ((2.0, True), (7.9, True), (0.1, False)):
        clock.now += seconds
        with suppress(TransientError):
            one.attempt()
        assert one.is_leader is leads


def test_a_process_that_was_frozen_knows_at_once_that_its_time_is_over(clock: Clock) -> None:
    one = candidate(InMemoryLease(), "one", clock)
    one.attempt()
    clock.now += 3600.0
    assert not one.is_leader


def test_a_renewal_counts_from_before_it_was_asked_for(clock: Clock) -> None:
    class SlowLease(InMemoryLease):
        def write(self, record):  # type: ignore[no-untyped-def] # as the port has it
            clock.now += 4.0
            return super().write(record)

    one = candidate(SlowLease(), "one", clock)
    one.attempt()
    clock.now += 5.9
    assert one.is_leader
    clock.now += 0.1
    assert not one.is_leader


def test_an_answer_that_was_lost_is_found_by_the_next_look(clock: Clock) -> None:
    lease = InMemoryLease()
    one = candidate(lease, "one", clock)
    lease.lose_answers = 1
    with pytest.raises(TransientError):
        one.attempt()
    assert not one.is_leader
    clock.now += 2.0
    assert one.attempt()
    assert one.is_leader


def test_a_lease_that_is_deleted_is_no_invitation_while_its_holder_may_still_lead(clock: Clock) -> None:
    lease = InMemoryLease()
    one, other = candidate(lease, "one", clock), candidate(lease, "other", clock)
    one.attempt()
    assert not other.attempt()
    lease.record = None
    clock.now += 14.9
    assert not other.attempt()
    clock.now += 0.1
    assert other.attempt()


def test_a_leader_whose_lease_is_deleted_writes_it_anew(clock: Clock) -> None:
    lease = InMemoryLease()
    one = candidate(lease, "one", clock)
    one.attempt()
    lease.record = None
    clock.now += 2.0
    assert one.attempt()
    assert one.is_leader


def test_who_ends_gives_the_lease_up_and_the_next_need_not_wait(clock: Clock) -> None:
    lease = InMemoryLease()
    one, other = candidate(lease, "one", clock), candidate(lease, "other", clock)
    one.attempt()
    assert not other.attempt()
    one.stop()
    assert not one.is_leader
    assert lease.record is not None
    assert lease.record.holder == ""
    clock.now += 0.1
    assert other.attempt()


def test_who_never_led_gives_up_nothing(clock: Clock) -> None:
    lease = InMemoryLease()
    one, other = candidate(lease, "one", clock), candidate(lease, "other", clock)
    one.attempt()
    other.attempt()
    other.stop()
    assert lease.record is not None
    assert lease.record.holder == "one"


def test_terms_tell_whether_somebody_else_led_in_between(clock: Clock) -> None:
    lease = InMemoryLease()
    first = candidate(lease, "first", clock)
    first.attempt()
    first.stop()
    again = candidate(lease, "again", clock)
    again.attempt()
    assert again.previous_term == first.term, "nobody led between the two"
    again.stop()
    candidate(lease, "stranger", clock).attempt()
    clock.now += 60.0
    last = candidate(lease, "last", clock)
    last.attempt()
    clock.now += 16.0
    last.attempt()
    assert last.is_leader
    assert last.previous_term != again.term
