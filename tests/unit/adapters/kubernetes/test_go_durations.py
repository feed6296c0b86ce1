"""Durations of Cluster Autoscaler's annotations are read as Go reads them."""

from __future__ import annotations

import pytest

from htas.adapters.kubernetes.go_durations import go_duration_s
from htas.model.pods import SCALE_UP_DELAY
from tests.unit.adapters.kubernetes.manifests import pod, problems_of, read_pod, view_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("87600h", 87600 * 3600.0),
        ("1h15m30.5s", 4530.5),
        ("1m1h", 3660.0),
        (".5m", 30.0),
        ("1.h", 3600.0),
        ("250ms", 0.25),
        ("+2m", 120.0),
        ("0", 0.0),
        ("0s", 0.0),
        pytest.param("90", None, id="no unit"),
        pytest.param("-5m", None, id="negative"),
        pytest.param("", None, id="empty"),
        pytest.param("5 m", None, id="a space"),
        pytest.param("1d", None, id="days, which Go does not have"),
        pytest.param("9999999h", None, id="more than an int64 of nanoseconds"),
        pytest.param("1s" * 100_000, None, id="longer than anybody writes"),
        pytest.param("٣s", None, id="digits of another script"),
    ],
)
def test_seconds(text: str, seconds: float | None) -> None:
    assert go_duration_s(text) == (pytest.approx(seconds) if seconds is not None else None)


def test_a_delay_is_read_and_a_malformed_one_is_reported() -> None:
    delayed = {"annotations": {SCALE_UP_DELAY: "5m"}}
    assert read_pod(pod("a", delayed)).launch_delay_s == 300.0
    malformed = {"annotations": {SCALE_UP_DELAY: "soon"}}
    [passed_over] = view_of(pod("a", malformed)).pods
    assert passed_over.launch_delay_s == 0.0
    (told,) = problems_of(pod("a", malformed))
    assert told.endswith(
        f"annotations[{SCALE_UP_DELAY}]: 'soon' is not a duration such as 30s, 5m or 1h30m: there is no delay"
    )
