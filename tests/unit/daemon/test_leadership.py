"""Who leads, on a clock that the test moves."""

from __future__ import annotations

from contextlib import suppress

import pytest

from htas.daemon.loops.leadership import Leadership, LeaseTiming
from htas.ports import TransientError
from tests.unit.daemon.in_memory_lease import InMemoryLease

TIMING = LeaseTiming(lease_s=15.0, renew_s=10.0, retry_s=2.0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def candidate(lease: InMemoryLease, name: str, clock: Clock, ahead_s: float = 0.0, **more: bool) -> Leadership:
    """One whose own clock is ahead: clocks of different machines need not agree."""
    return Leadership(lease, name, TIMING, clock=lambda: clock.now + ahead_s, wall=lambda: clock.now, **more)


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


def test_a_leader_makes_way_for_who_insists_and_nobody_else_steps_in(clock: Clock) -> None:
    lease = InMemoryLease()
    one, other = candidate(lease, "one", clock), candidate(lease, "other", clock)
    command = candidate(lease, "command", clock, insists=True)
    assert one.attempt()
    assert not other.attempt()
    assert not command.attempt(), "it has asked"
    assert one.attempt(), "it leads on until its cycle is over"
    assert one.successor == "command"
    one.stop()
    clock.now += 2.0
    assert not other.attempt()
    assert command.attempt()
    assert command.successor == ""
    assert not other.attempt()


def test_what_the_leader_writes_meanwhile_goes_first_and_it_is_asked_again(clock: Clock) -> None:
    class Busy(InMemoryLease):
        """Its leader renews between every read and write of another."""

        is_busy = True

        def read(self):  # type: ignore[no-untyped-def] # as the port has it
            found = super().read()
            if self.is_busy and found is not None:
                super().write(found)
            return found

    lease = Busy()
    one, command = candidate(lease, "one", clock), candidate(lease, "command", clock, insists=True)
    lease.is_busy = False
    assert one.attempt()
    lease.is_busy = True
    assert not command.attempt()
    assert lease.record is not None
    assert lease.record.successor == ""
    lease.is_busy = False
    assert not command.attempt()
    assert one.attempt()
    assert one.successor == "command"


def test_who_was_asked_for_and_never_came_is_waited_for_no_longer_than_a_lease(clock: Clock) -> None:
    lease = InMemoryLease()
    one, other = candidate(lease, "one", clock), candidate(lease, "other", clock)
    assert one.attempt()
    candidate(lease, "command", clock, insists=True).attempt()
    assert one.attempt()
    one.stop()
    assert not other.attempt()
    clock.now += 14.9
    assert not other.attempt()
    clock.now += 0.1
    assert other.attempt()
    assert other.successor == "", "the one it was kept for has lost its claim"


def test_a_lease_that_is_retired_is_gone_and_stand_bys_hold_back(clock: Clock) -> None:
    lease = InMemoryLease()
    other = candidate(lease, "other", clock)
    command = candidate(lease, "command", clock, insists=True)
    assert command.attempt()

    def pause(seconds: float) -> None:
        clock.now += seconds
        assert not other.attempt()

    command.retire(60.0, pause)
    assert lease.record is None
    assert not command.is_leader
    clock.now += 59.9
    assert not other.attempt()
    clock.now += 0.1
    assert other.attempt()


def test_a_lease_that_was_lost_is_not_removed(clock: Clock) -> None:
    lease = InMemoryLease()
    command = candidate(lease, "command", clock, insists=True)
    assert command.attempt()
    clock.now += 15.0
    with pytest.raises(TransientError, match="lost"):
        command.retire(60.0, lambda seconds: None)
    assert lease.record is not None
