"""The cleaner of a running daemon empties a real node, and nothing that ran on it is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.conftest import Tell
from tests.real.counting import container, counts, job, job_status, last, pods_of
from tests.real.harness import Htas, eventually
from tests.real.moving import World
from tests.real.owned_nodes import busy, cleaning, expected_to_run_on, own

pytestmark = pytest.mark.timeout(300)


def test_an_underutilised_node_is_emptied_and_released_and_its_job_completes_once(
    world: World, tmp_path: Path, tell: Tell
) -> None:
    train = expected_to_run_on(job("train", None, container(until=400)))
    world.counting(busy("real-b"), train)
    source = pods_of(world.cluster, "train")[0]["metadata"]["name"]
    own(world)
    with Htas(cleaning(world, tmp_path, "kubelet-checkpoint"), tmp_path / "htas.log") as daemon:
        daemon.says("leads")
        drained = daemon.says("drain", 60, status="done")
        assert drained["subject"] == "real-a"
        before = last(world.cluster, source)
        told = daemon.says("moved", 60, status="done")
        tell(f"the cleaner: {told['subject']} {told['message']}")
        eventually(lambda: "real-a" not in names(world), 60, "the source's node is released")
        (twin,) = pods_of(world.cluster, "train")
        assert twin["spec"]["nodeName"] == "real-b"
        eventually(lambda: job_status(world.cluster, "train").get("succeeded"), 90, "the Job completes")
    status = job_status(world.cluster, "train")
    assert (status["succeeded"], status.get("failed", 0)) == (1, 0), status
    told_of = counts(world.cluster, twin["metadata"]["name"])
    assert {each.process for each in told_of} == {before.process}
    assert told_of[-1].number == 400


def names(world: World) -> set[str]:
    return {node["metadata"]["name"] for node in world.cluster.nodes()}
