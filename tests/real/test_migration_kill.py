"""SIGKILL of the daemon at every step of a real move: then exactly one copy runs, and its count is not lost."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from htas.execution.crash_points import VARIABLE
from tests.real.counting import container, goes_on, job, job_status, last, pods_of, replica_set
from tests.real.harness import Htas, Json, eventually
from tests.real.moving import World
from tests.real.owned_nodes import busy, cleaning, expected_to_run_on, own

pytestmark = pytest.mark.timeout(240)

OF_JOBS = (
    "move.prepared",
    "move.dumped",
    "move.checkpointed",
    "move.delivered",
    "move.transferred",
    "move.twin-created",
    "move.restored",
    "move.orphaned",
    "move.adopted",
    "move.switched",
    "move.source-deleted",
)
OF_REPLICA_SETS = ("move.source-first-to-go",)
BACKWARDS = ("move.taken-back",)
MOVES = (*OF_JOBS, *OF_REPLICA_SETS, *BACKWARDS)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("point", [*OF_JOBS, *OF_REPLICA_SETS])
def test_after_a_kill_one_copy_runs_and_counts_on(point: str, world: World, tmp_path: Path) -> None:
    work = replica_set if point in OF_REPLICA_SETS else job
    process, number = killed_at(point, world, tmp_path, expected_to_run_on(work("train", None, container())))
    with Htas(tmp_path / "htas.yaml", tmp_path / "again.log") as daemon:
        eventually(lambda: daemon.said("move", state="Done") or is_settled(world), 90, "the move ends")
        eventually(lambda: is_settled(world), 60, "one pod is left, and nothing moves")
        eventually(lambda: not world.nodes.checkpoint_images("real-b"), 60, "no image is left where it runs")
        daemon.stop()
    (only,) = pods_of(world.cluster, "train")
    told = last(world.cluster, only["metadata"]["name"])
    assert told.process == process, "the same process, not one begun anew"
    assert told.number > number, "its count was not lost"
    assert goes_on(world.cluster, only["metadata"]["name"])
    if work is job:
        assert job_status(world.cluster, "train").get("failed", 0) == 0
        assert job_status(world.cluster, "train")["active"] == 1


@pytest.mark.parametrize("point", BACKWARDS)
def test_after_a_kill_while_a_move_is_taken_back_its_source_counts_on(point: str, world: World, tmp_path: Path) -> None:
    locked = container(before="flock /lock sleep 1000000 & sleep 1;")
    process, _ = killed_at(point, world, tmp_path, expected_to_run_on(job("train", None, locked)))
    with Htas(tmp_path / "htas.yaml", tmp_path / "again.log") as daemon:
        told = daemon.says("moved", 90, status="failed")
        assert "FileLock" in told["message"]
        eventually(lambda: daemon.said("undo-drain"), 60, "the node is kept")
        daemon.stop()
    (only,) = pods_of(world.cluster, "train")
    assert only["spec"]["nodeName"] == "real-a"
    assert last(world.cluster, only["metadata"]["name"]).process == process
    assert goes_on(world.cluster, only["metadata"]["name"])
    eventually(world.is_clean, 20, "nothing is left on the nodes")


def killed_at(point: str, world: World, tmp_path: Path, work: Json) -> tuple[str, int]:
    """Have a daemon empty real-a, and be killed at a step; returns what counted there, and how far it had come."""
    world.counting(busy("real-b"), work)
    own(world)
    (source,) = pods_of(world.cluster, "train")
    before = last(world.cluster, source["metadata"]["name"])
    config = cleaning(world, tmp_path, "kubelet-checkpoint")
    with Htas(config, tmp_path / "killed.log", {VARIABLE: point}) as daemon:
        eventually(lambda: daemon.process.poll() is not None, 90, f"the daemon gets to {point} and is killed")
        assert daemon.process.returncode == -signal.SIGKILL, daemon.tail()
    return before.process, before.number


def is_settled(world: World) -> bool:
    """One pod of the work, no twin, no move under way, and one copy of the process beside the one that is busy."""
    pods = pods_of(world.cluster, "train")
    twins = world.cluster.pods(labelSelector="htas.io/moving")
    copies = sum(world.copies(node) for node in ("real-a", "real-b"))
    return len(pods) == 1 and not twins and copies == 2 and pods[0]["spec"]["nodeName"] == "real-b"
