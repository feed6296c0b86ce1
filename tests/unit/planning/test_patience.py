"""How long batch work waits at most for what is cheaper: `auto`, and what is stated."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.machine_times import MachineTimes
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.planning.planner import plan
from htas.planning.provision.patience import patient_policy
from tests.builders import NOW, batch_group, make_job, make_node, make_policy, make_snapshot, owned_node, running

AUTO: dict[str, Any] = {"shortens_wait": True, "shortens_gathering": True}


@pytest.mark.parametrize(
    ("starts", "stated", "want"),
    [
        pytest.param(
            (20.0, 20.0, 24.0), AUTO, (30.0, 20 / 3), id="machines come in 20 s: nobody waits for three minutes"
        ),
        pytest.param((120.0,), AUTO, (180.0, 40.0), id="in two minutes: as the limits are"),
        pytest.param((400.0,), AUTO, (180.0, 40.0), id="in seven minutes: no longer than the limits"),
        pytest.param((), AUTO, (180.0, 40.0), id="none has come yet: as the limits are"),
        pytest.param((20.0,), {}, (180.0, 40.0), id="both are stated"),
        pytest.param((20.0,), {"shortens_wait": True}, (30.0, 40.0), id="one is stated"),
        pytest.param(
            (20.0,), {**AUTO, "max_wait_for_capacity_s": None}, (None, 20 / 3), id="a wait without end stays without"
        ),
        pytest.param((20.0,), {**AUTO, "gather_s": 0.0}, (30.0, 0.0), id="who does not gather goes on not gathering"),
    ],
)
def test_waits_are_shorter_where_machines_come_sooner(
    starts: tuple[float, ...], stated: dict[str, Any], want: tuple[float | None, float]
) -> None:
    policy = make_policy([batch_group()], **{"gather_s": 40.0, **stated})
    found = patient_policy(policy, make_snapshot(machine_times=MachineTimes(starts=starts)))
    assert (found.max_wait_for_capacity_s, found.gather_s) == pytest.approx(want)


@pytest.mark.parametrize(
    ("start_s", "waits"),
    [
        pytest.param(120.0, True, id="a machine takes two minutes: the room that frees in one is waited for"),
        pytest.param(20.0, False, id="a machine comes in twenty seconds: it is bought"),
    ],
)
def test_a_job_that_has_waited_for_a_minute_for_room_about_to_free(start_s: float, waits: bool) -> None:
    node = owned_node("full", "batch", "m3.xsmall", cpu="500m", memory="2Gi")
    ends = running(make_job("ends", 600, cpu="500m", memory="1Gi"), "full", since_s=540)
    job = make_job("job", 600, cpu="500m", memory="1Gi", created_at=NOW - 60)
    snapshot = make_snapshot([node], [ends, job], machine_times=MachineTimes(starts=(start_s,)))
    made = plan(snapshot, make_policy([batch_group()], **AUTO), NOW)
    assert [item.reason for item in made.unplaced] == ([Unplaced.CAPACITY_FREES_SOON] if waits else [])
    assert bool(made.launch) is not waits


def test_a_policy_is_left_alone_where_all_is_stated() -> None:
    policy: Policy = make_policy([batch_group()])
    assert patient_policy(policy, make_snapshot([make_node("n")])) is policy
