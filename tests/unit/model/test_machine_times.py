"""What machines were seen to take to come and to go."""

from __future__ import annotations

import pytest

from htas.execution.claim_life import ClaimStep, timed, was_away
from htas.model.claims import ClaimState, NodeClaim
from htas.model.machine_times import GOING_S, KEPT, MachineTimes
from htas.model.policy import Cycles

NOW = 5000.0


def claim(state: ClaimState, **fields: float) -> NodeClaim:
    return NodeClaim("c", "batch", "m1", state, created_at=NOW - 90, since=NOW - 30, **fields)  # type: ignore[arg-type] # times


@pytest.mark.parametrize(
    ("before", "state", "want"),
    [
        pytest.param(claim(ClaimState.ACTIVE), ClaimState.READY, MachineTimes((90.0,)), id="it is Ready: it took 90 s"),
        pytest.param(
            claim(ClaimState.REGISTERED, ready_at=NOW - 60), ClaimState.READY, MachineTimes(), id="it is Ready again"
        ),
        pytest.param(
            claim(ClaimState.DRAINING, leaving_since=NOW - 12),
            ClaimState.RELEASED,
            MachineTimes((), (12.0,)),
            id="it is gone, 12 s after its end was asked for",
        ),
        pytest.param(
            claim(ClaimState.FAILED, leaving_since=NOW - 400), ClaimState.RELEASED, MachineTimes(), id="a broken one is"
        ),
        pytest.param(claim(ClaimState.DRAINING), ClaimState.RELEASED, MachineTimes(), id="it went by itself"),
        pytest.param(claim(ClaimState.ACTIVE), ClaimState.REGISTERED, MachineTimes(), id="it is on its way"),
    ],
)
def test_what_a_change_of_state_teaches(before: NodeClaim, state: ClaimState, want: MachineTimes) -> None:
    assert timed(MachineTimes(), before, ClaimStep(state), NOW) == want


def test_the_newest_count() -> None:
    times = MachineTimes()
    for second in range(KEPT + 5):
        times = times.started(float(second)).released(float(KEPT - second))
    assert (len(times.starts), times.starts[-1], times.releases[0]) == (KEPT, KEPT + 4.0, KEPT - 5.0)


def test_what_is_expected_of_the_next() -> None:
    assert (MachineTimes().start_s(60.0), MachineTimes((70.0, 300.0, 90.0)).start_s(60.0)) == (60.0, 90.0)


@pytest.mark.parametrize(
    ("releases", "want"),
    [
        pytest.param((), GOING_S, id="none was seen"),
        pytest.param((3.0,), GOING_S, id="one was quick"),
        pytest.param((3.0, 45.0, 12.0), 45.0, id="the slowest of a few: late is paid for"),
        pytest.param((3.0, 7200.0, 12.0), 300.0, id="no longer than after which it is asked for again"),
        pytest.param((7200.0, *[12.0] * 19), 12.0, id="one of twenty is an outlier"),
        pytest.param((50.0, *[12.0] * 18, 40.0), 40.0, id="two are not"),
    ],
)
def test_how_long_the_next_may_take_to_go(releases: tuple[float, ...], want: float) -> None:
    assert MachineTimes((), releases).release_s(300.0) == want


@pytest.mark.parametrize(
    ("looked_at", "cycle_s", "away"),
    [
        pytest.param(None, 20.0, True, id="it has just started"),
        pytest.param(NOW - 20.0, 20.0, False, id="a cycle ago"),
        pytest.param(NOW - 60.0, 20.0, False, id="a minute ago"),
        pytest.param(NOW - 61.0, 20.0, True, id="a minute and more"),
        pytest.param(NOW - 600.0, 300.0, False, id="two cycles of five minutes"),
    ],
)
def test_whether_nobody_looked(looked_at: float | None, cycle_s: float, away: bool) -> None:
    assert was_away(looked_at, NOW, Cycles(cycle_s, cycle_s, 3600.0)) is away
