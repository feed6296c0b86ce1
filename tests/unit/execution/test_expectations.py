"""Binds on their way: no pod is placed twice, none is forgotten."""

from __future__ import annotations

import pytest

from htas.execution.expectations import Expectations
from tests.builders import NOW, make_pod, running

WAITING = make_pod("p")
KEY = WAITING.key


@pytest.fixture
def expectations() -> Expectations:
    return Expectations()


def test_a_bind_is_expected_until_it_is_seen(expectations: Expectations) -> None:
    expectations.expect_bind(KEY, "n", NOW)
    expectations.settle([WAITING], NOW + 5)
    assert expectations.binds == {KEY: "n"}
    expectations.settle([running(WAITING, "n")], NOW + 6)
    assert expectations.binds == {}


def test_a_pod_that_went_is_not_expected_any_more(expectations: Expectations) -> None:
    expectations.expect_bind(KEY, "n", NOW)
    expectations.settle([], NOW + 1)
    assert expectations.binds == {}


def test_a_bind_nobody_ever_sees_is_given_up(expectations: Expectations) -> None:
    expectations.expect_bind(KEY, "n", NOW)
    expectations.settle([WAITING], NOW + 29.9)
    assert expectations.binds == {KEY: "n"}
    expectations.settle([WAITING], NOW + 30)
    assert expectations.binds == {}


def test_a_refused_bind_is_forgotten_and_held_back_longer_each_time(expectations: Expectations) -> None:
    now, holds = NOW, []
    for _ in range(6):
        expectations.expect_bind(KEY, "n", now)
        expectations.failed(KEY, now)
        assert expectations.binds == {}
        until = expectations.held_back(now)[KEY]
        holds.append(until - now)
        assert expectations.held_back(until) == {}
        now = until
    assert holds == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_pod_that_was_bound_after_all_begins_anew(expectations: Expectations) -> None:
    expectations.failed(KEY, NOW)
    expectations.failed(KEY, NOW)
    expectations.settle([running(WAITING, "n")], NOW + 1)
    expectations.failed(KEY, NOW + 2)
    assert expectations.held_back(NOW + 2) == {KEY: NOW + 3}
