"""What stays say of the work itself, apart from the machines that it ran on."""

from __future__ import annotations

import math

import msgspec
import pytest

from htas.model.pods import WorkKind
from htas.model.record import Bill, Run
from htas.model.resources import Resources
from htas.profiler.recorded_work import Work, recorded_work

ASKED = Resources(500, 2**30, pods=1, extended=(("nvidia.com/gpu", 1),))
BILLS = [Bill(claim, "gpu", "g1", 10**9, 0.0) for claim in ("c1", "c2", "c3")]
END = 1000.0


def stay(pod: str, claim: str, came_at: float, ended_at: float, **fields: object) -> Run:
    known = Run(
        "ns", pod, pod, claim, WorkKind.BATCH, "Job/train", "", 500, 2**30, 0, came_at, came_at, ended_at, claim
    )
    known = msgspec.structs.replace(known, created_at=came_at - 20.0, extended=ASKED.extended)
    return msgspec.structs.replace(known, **fields)


def job(arrives_at: float, length_s: float, **fields: object) -> Work:
    known = Work("ns/a", "gpu", WorkKind.BATCH, ASKED, arrives_at, length_s, waited_s=20.0)
    return msgspec.structs.replace(known, **fields)


def served(arrives_at: float, ends_at: float) -> Work:
    return job(arrives_at, math.inf, kind=WorkKind.SERVICE, ends_at=ends_at)


@pytest.mark.parametrize(
    ("stays", "want"),
    [
        pytest.param([stay("a", "c1", 100, 160)], [job(80, 60)], id="a job: when it was created, how long it ran, what it asked for"),
        pytest.param([stay("a", "c1", 100, 160), stay("a-twin", "c2", 160, 300, began_at=100.0)], [job(80, 200)], id="moved once: one job, with the length of both stays"),
        pytest.param([stay("a", "c1", 100, 160, kind=WorkKind.SERVICE)], [served(80, 160)], id="a service runs until an instant"),
        pytest.param([stay("a", "c1", 100, END)], [job(80, math.inf)], id="it still runs: how long nobody knows"),
        pytest.param([stay("a", "c1", 50, 160, began_at=-10.0)], [job(50, 110, was_running=True, waited_s=None)], id="it ran before the record begins"),
        pytest.param([stay("a", "c1", 100, 160, created_at=0.0)], [job(100, 60, waited_s=None)], id="an earlier record, without the creation: it arrives as it starts"),
        pytest.param([stay("a", "c1", 10, 60)], [job(0, 50, waited_s=10.0)], id="what it waited before the record begins is left out"),
        pytest.param([stay("a", "elsewhere", 100, 160)], [], id="a machine that HTAS did not launch"),
    ],
)  # fmt: skip
def test_stays_make_work(stays: list[Run], want: list[Work]) -> None:
    assert recorded_work(stays, BILLS, 0.0, END).work == want


def test_of_jobs_alike_each_moved_one_goes_on_with_the_stay_that_ended_first() -> None:
    began = [stay("a", "c1", 100, 150), stay("b", "c1", 100, 200)]
    moved = [stay("a2", "c2", 150, 300, began_at=100.0), stay("b2", "c3", 200, 400, began_at=100.0)]
    found = recorded_work([*moved, *began], BILLS, 0.0, END).work
    assert [(work.name, work.length_s) for work in found] == [("ns/a", 200.0), ("ns/b", 300.0)]


def test_daemon_sets_of_most_machines_count_for_each() -> None:
    def daemon(owner: str, claim: str, cpu_m: int) -> Run:
        return stay(owner, claim, 0, 500, owner=f"DaemonSet/{owner}", kind=WorkKind.SERVICE, cpu_m=cpu_m, extended=())

    agents = [daemon("agent", "c1", 50), daemon("agent", "c2", 70), daemon("rare", "c3", 900)]
    found = recorded_work([*agents, stay("a", "c1", 100, 160)], BILLS, 0.0, END)
    assert [work.name for work in found.work] == ["ns/a"], "they are no work of their own"
    assert found.daemons == {"gpu": Resources(70, 2**30, pods=1)}
