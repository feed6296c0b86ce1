"""What is kept of pods that have left a node."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.nodes import CLAIM_LABEL, Node
from htas.model.pods import Pod
from htas.model.record import Run
from htas.model.resources import share_millionths
from htas.model.snapshot import ClusterSnapshot, Ended
from htas.profiler.stays import Stays, stay_of
from htas.profiler.stays import running as stays_now
from tests.builders import NOW, amounts, make_job, make_node, make_snapshot, running

A, B = make_node("a", labels={CLAIM_LABEL: "a"}), make_node("b")
JOB = running(make_job("j", 100), "a", 30)


def at(seconds: float, nodes: list[Node], pods: list[Pod], *ended: Ended) -> ClusterSnapshot:
    seen = make_snapshot(nodes, pods)
    return msgspec.structs.replace(
        seen, taken_at=NOW + seconds, cluster=msgspec.structs.replace(seen.cluster, ended=ended)
    )


def told(*snapshots: ClusterSnapshot) -> list[list[Run]]:
    stays = Stays()
    return [stays.observe(snapshot) for snapshot in snapshots]


Facts = tuple[str, float, float, float, bool | None]


def facts(runs: list[Run]) -> list[Facts]:
    return [(run.node, run.began_at - NOW, run.came_at - NOW, run.ended_at - NOW, run.succeeded) for run in runs]


def moved(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, node=node)


@pytest.mark.parametrize(
    ("then", "want"),
    [
        pytest.param([at(10, [A], [JOB])], [], id="it runs on"),
        pytest.param([at(10, [A], [], Ended(JOB.uid, True, NOW + 7))], [("a", -30, -30, 7, True)], id="it ended well, between two cycles"),
        pytest.param([at(10, [A], [], Ended(JOB.uid, False))], [("a", -30, -30, 10, False)], id="it failed, and nobody says when"),
        pytest.param([at(10, [A], [])], [("a", -30, -30, 10, None)], id="it is gone, and nobody saw how"),
        pytest.param([at(10, [], [JOB])], [("a", -30, -30, 10, None)], id="its node is gone"),
        pytest.param([at(10, [A, B], [moved(JOB, "b")])], [("a", -30, -30, 10, None)], id="it moved away"),
        pytest.param([at(10, [A, B], [moved(JOB, "b")]), at(50, [A, B], [], Ended(JOB.uid, True, NOW + 40))], [("b", -30, 10, 40, True)], id="it moved, and ended there: the run counts from its beginning"),
    ],
)  # fmt: skip
def test_a_stay_is_told_when_it_is_over(then: list[ClusterSnapshot], want: list[Facts]) -> None:
    assert facts(told(at(0, [A, B], [JOB]), *then)[-1]) == want


def test_a_twin_goes_on_with_its_sources_run() -> None:
    twin = msgspec.structs.replace(running(make_job("t", 100), "b", 0), uid="t", twin_of=JOB.uid, started_at=NOW + 20)
    adopted = msgspec.structs.replace(twin, twin_of="")
    seen = told(
        at(0, [A, B], [JOB]),
        at(25, [A, B], [JOB, twin]),
        at(30, [A, B], [adopted]),
        at(90, [A, B], [], Ended("t", True)),
    )
    assert [facts(runs) for runs in seen[2:]] == [[("a", -30, -30, 30, None)], [("b", -30, 20, 90, True)]]


def test_a_pod_that_waits_or_starts_is_no_stay() -> None:
    waiting, starting = make_job("w", 100), moved(make_job("s", 100), "a")
    assert told(at(0, [A], [waiting, starting]), at(10, [A], [])) == [[], []]
    assert stays_now(at(0, [A], [waiting, starting, JOB])) == [stay_of(JOB, A, NOW)]


def test_a_stay_says_whose_it_was_and_what_it_held() -> None:
    pod = msgspec.structs.replace(JOB, template="CronJob/backup", image="example.com/x:1", requests=amounts("1", "4Gi"))
    stay = stay_of(pod, msgspec.structs.replace(A, allocatable=amounts("4", "8Gi")), NOW)
    assert (stay.owner, stay.image, stay.claim, stay.share_millionths) == (
        "CronJob/backup",
        "example.com/x:1",
        "a",
        500_000,
    )


@pytest.mark.parametrize(
    ("asked", "offered", "share"),
    [
        pytest.param(amounts("4", "8Gi"), amounts("4", "8Gi"), 1_000_000, id="all of it"),
        pytest.param(amounts("1", "0"), amounts("4", "8Gi"), 250_000, id="the greatest of its shares"),
        pytest.param(amounts("1", "1Gi"), amounts("3", "3Gi"), 333_333, id="a third, rounded down"),
        pytest.param(amounts("1", "1Gi"), amounts("0", "0"), 0, id="of a machine that offers nothing"),
    ],
)  # fmt: skip
def test_shares_of_a_machine(asked: object, offered: object, share: int) -> None:
    assert share_millionths(asked, offered) == share  # type: ignore[arg-type] # the table's columns are objects
