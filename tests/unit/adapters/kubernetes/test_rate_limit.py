"""A token bucket on a clock that the test moves, and once on real threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htas.adapters.kubernetes.rate_limit import RateLimit

EIGHT_A_SECOND = 8.0
"""One in 0.125 s, which a float holds exactly."""


class Time:
    """A clock that pauses move, as they do in the world."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def bucket(self, per_second: float, burst: int) -> RateLimit:
        return RateLimit(per_second, burst, clock=self.clock, pause=self.pause)


@pytest.fixture
def time() -> Time:
    return Time()


def test_a_burst_goes_at_once_and_the_rest_at_the_rate(time: Time) -> None:
    limit = time.bucket(10.0, 3)
    for _ in range(5):
        limit.wait()
    assert time.pauses == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize(
    ("idle_s", "free"),
    [
        pytest.param(0.0, 0, id="none after no time"),
        pytest.param(0.125, 1, id="one after its time"),
        pytest.param(0.3125, 2, id="a part of one is none yet"),
        pytest.param(3600.0, 3, id="never more than the burst"),
    ],
)
def test_tokens_come_back_with_time(idle_s: float, free: int, time: Time) -> None:
    limit = time.bucket(EIGHT_A_SECOND, 3)
    for _ in range(3):
        limit.wait()
    time.now += idle_s
    for _ in range(free):
        limit.wait()
    assert time.pauses == []
    limit.wait()
    assert len(time.pauses) == 1


def test_who_does_not_wait_is_refused_and_owes_nothing(time: Time) -> None:
    limit = time.bucket(EIGHT_A_SECOND, 2)
    assert [limit.try_take() for _ in range(50)] == [True, True] + [False] * 48
    time.now += 0.125
    assert limit.try_take()
    assert not limit.try_take()
    assert time.pauses == []


def test_those_who_wait_stand_in_line_and_who_does_not_wait_is_refused_meanwhile() -> None:
    pauses: list[float] = []
    limit = RateLimit(10.0, 1, clock=lambda: 0.0, pause=pauses.append)  # all come at one instant
    for _ in range(4):
        limit.wait()
    assert pauses == pytest.approx([0.1, 0.2, 0.3]), "each after the one before it"
    assert not limit.try_take()


def test_threads_share_one_bucket() -> None:
    pauses: list[float] = []
    limit = RateLimit(10.0, 40, clock=lambda: 0.0, pause=pauses.append)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: limit.wait(), range(100)))
    assert sorted(pauses) == pytest.approx([0.1 * debt for debt in range(1, 61)]), "nobody's token is lost or doubled"


@given(st.integers(1, 20), st.lists(st.tuples(st.booleans(), st.floats(0.0, 3.0)), max_size=60))
def test_in_no_stretch_of_time_more_than_the_burst_and_the_rate(burst: int, calls: list[tuple[bool, float]]) -> None:
    time, taken = Time(), []
    limit = time.bucket(5.0, burst)
    for waits, idle_s in calls:
        time.now += idle_s
        if waits:
            limit.wait()
            taken.append(time.now)
        elif limit.try_take():
            taken.append(time.now)
    for first, begun in enumerate(taken):
        for last, ended in enumerate(taken[first:], 1):
            assert last <= burst + 5.0 * (ended - begun) + 1e-6
