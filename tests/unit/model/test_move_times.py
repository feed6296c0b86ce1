"""T = C ÷ B + K, fitted to moves that were measured."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.migrations import MigrationRecord, MigrationState
from htas.model.move_times import GIB, PRIOR_CONSTANT_S, PRIOR_S_PER_GIB, MoveTimes
from htas.model.moves import MigrationMethod


def moved(
    gib: float, took_s: float, asked_gib: float = 1.0, state: MigrationState = MigrationState.DONE
) -> MigrationRecord:
    return MigrationRecord(
        "m",
        "default/a",
        "u",
        "n1",
        "n2",
        MigrationMethod.CHECKPOINT,
        state,
        0.0,
        reached={"Prepared": 50.0, state.value: 50.0 + took_s},
        archive_bytes=round(gib * GIB),
        memory_bytes=round(asked_gib * GIB),
    )


def test_before_anything_was_measured_moves_take_what_real_ones_took() -> None:
    times = MoveTimes()
    assert times.line == pytest.approx((PRIOR_CONSTANT_S, PRIOR_S_PER_GIB))
    assert times.expected_s(500 * 2**20) == pytest.approx(20.6, abs=0.1)


def test_bandwidth_and_constant_are_found() -> None:
    times = MoveTimes()
    for gib in (0.1, 0.5, 1.0, 2.0, 4.0) * 10:
        times = times.learned(moved(gib, 2.0 + gib * 8.0, asked_gib=gib))
    constant, slope = times.line  # the two that were assumed still weigh two in thirty
    assert constant == pytest.approx(2.0, abs=2.0)
    assert slope == pytest.approx(8.0, abs=0.7)
    assert times.line[1] == pytest.approx(slope)


def test_small_moves_say_nothing_of_large_ones() -> None:
    times = MoveTimes()
    for _ in range(40):
        times = times.learned(moved(0.001, 3.0, asked_gib=0.001))
    assert times.expected_s(GIB // 1000) == pytest.approx(3.0, abs=0.2)
    assert times.expected_s(10 * GIB) > 300


def test_newer_moves_count_more() -> None:
    times = MoveTimes()
    for took in [10.0] * 60 + [100.0] * 60:
        times = times.learned(moved(1.0, took))
    assert times.expected_s(GIB) > 80


def test_pods_that_use_less_than_they_ask_for_have_smaller_archives() -> None:
    times = MoveTimes()
    for _ in range(40):
        times = times.learned(moved(0.5, 20.0, asked_gib=2.0))
    assert times.expected_s(2 * GIB) == pytest.approx(20.0, abs=1.0)


def test_what_was_taken_back_teaches_nothing() -> None:
    assert MoveTimes().learned(moved(1.0, 500.0, state=MigrationState.ROLLED_BACK)) == MoveTimes()


def test_a_move_that_waited_for_a_daemon_teaches_nothing() -> None:
    times = MoveTimes()
    for _ in range(10):
        times = times.learned(moved(0.125, 6.0, asked_gib=0.25))
    resumed = msgspec.structs.replace(moved(0.125, 3600.0, asked_gib=0.25), is_taken_up=True)
    assert times.learned(resumed) == times


def test_pods_that_asked_for_no_memory_say_nothing_of_the_size_of_others() -> None:
    """Ten archives of 1 GiB: a pod that asks for 256 MiB is not expected to have one of 2.5 GiB."""
    times = MoveTimes()
    for _ in range(10):
        times = times.learned(moved(1.0, 38.0, asked_gib=0.0))
    assert times.expected_s(2**28) == pytest.approx(4.0 + 34.0 / 4, rel=0.1)
    halves = MoveTimes()
    for asked in (1.0, 0.0, 1.0, 0.0):
        halves = halves.learned(moved(0.5, 21.0, asked_gib=asked))
    assert halves.gib / halves.asked_gib == pytest.approx(0.5)
