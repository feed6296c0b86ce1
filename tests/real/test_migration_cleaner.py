"""The cleaner of a running daemon empties a real node, and nothing that ran on it is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from htas.adapters.sqlite.store import SqliteStore
from htas.model.migrations import is_checkpoint
from htas.model.record import ProfileEvent
from tests.real.conftest import Tell
from tests.real.counting import STEP_S, Count, container, counts, goes_on, job, job_status, last, pods_of
from tests.real.harness import Htas, Json, eventually
from tests.real.moving import World
from tests.real.owned_nodes import busy, cleaning, expected_to_run_on, own
from tests.real.test_chart import SPACE, a_pod, account_kubeconfig, applied_rights, can, refused, rendered

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
        assert is_checkpoint(twin["spec"]["containers"][0]["image"])
        assert events_of_the_move(tmp_path) == [("termination", "real-a"), ("rescheduling", "real-b")]
        shown = [daemon.get(path)[1] for path in ("/planz", "/snapshotz")] + [str(daemon.lines)]
        assert twin["metadata"]["name"] in shown[1]
        assert not [each for each in shown if "htas-checkpoint" in each], "names of images are told to nobody"
        eventually(lambda: job_status(world.cluster, "train").get("succeeded"), 90, "the Job completes")
    status = job_status(world.cluster, "train")
    assert (status["succeeded"], status.get("failed", 0)) == (1, 0), status
    told_of = counts(world.cluster, twin["metadata"]["name"])
    assert {each.process for each in told_of} == {before.process}
    assert told_of[-1].number == 400


def test_a_node_whose_pod_cannot_be_moved_is_kept_with_the_reason(world: World, tmp_path: Path) -> None:
    """The pod holds a file lock, which only the dump finds out; the node is open again, and left alone."""
    locked = container(before="flock /lock sleep 1000000 & sleep 1;")
    world.counting(busy("real-b"), expected_to_run_on(job("train", None, locked)))
    (source,) = pods_of(world.cluster, "train")
    own(world)
    with Htas(cleaning(world, tmp_path, "kubelet-checkpoint"), tmp_path / "htas.log") as daemon:
        told = daemon.says("moved", 120, status="failed")
        assert "3 attempts: FileLock" in told["message"], told
        undone = daemon.says("undo-drain", 30, status="done")
        assert (undone["subject"], "FileLock" in undone["message"]) == ("real-a", True), undone
        eventually(lambda: not node(world, "real-a")["spec"].get("unschedulable"), 10, "the node is open again")
        assert goes_on(world.cluster, source["metadata"]["name"])
        assert len(daemon.said("drain", status="done")) == 1, "it is left alone for a while"


def test_work_that_is_kept_by_moving_and_lost_by_evicting(world: World, tmp_path: Path, tell: Tell) -> None:
    """The same drained node under both methods: a Job that has counted for half a minute."""
    lost = {method: seconds_lost(world, tmp_path, method) for method in ("evict", "kubelet-checkpoint")}
    tell(f"seconds of work lost: evict {lost['evict']:.1f}, kubelet-checkpoint {lost['kubelet-checkpoint']:.1f}")
    assert lost["evict"] > 30.0
    assert lost["kubelet-checkpoint"] < lost["evict"] / 2


def seconds_lost(world: World, tmp_path: Path, method: str) -> float:
    """Work that the source had done and its successor does again."""
    train = expected_to_run_on(job("train", None, container()))
    train["spec"]["backoffLimit"] = 6
    world.counting(busy("real-b"), train)
    (source,) = pods_of(world.cluster, "train")
    name = source["metadata"]["name"]
    eventually(lambda: last(world.cluster, name).number >= 300, 120, "it has counted for half a minute")
    own(world)
    done: list[Count] = []
    with Htas(cleaning(world, tmp_path, method, name=method), tmp_path / f"{method}.log") as daemon:

        def has_moved() -> bool:
            done[:] = counts(world.cluster, name) or done
            return bool([each for each in pods_of(world.cluster, "train") if each["spec"].get("nodeName") == "real-b"])

        eventually(has_moved, 90, f"the pod leaves by {method}")
        (successor,) = [each for each in pods_of(world.cluster, "train") if each["spec"].get("nodeName") == "real-b"]
        again = successor["metadata"]["name"]
        assert goes_on(world.cluster, again)
        daemon.stop()
    told = counts(world.cluster, again)
    began_at = told[0].number if told[0].process != done[0].process else resumed_at(told)
    world.wipe()
    return max(0, done[-1].number - began_at) * STEP_S


def resumed_at(told: list[Count]) -> int:
    """The last count before the longest pause: where a restored process was dumped."""
    before, _ = max(pairwise(told), key=lambda pair: pair[1].at - pair[0].at)
    return before.number


def test_the_charts_rights_are_enough_for_a_move(world: World, helm: Path, tmp_path: Path) -> None:
    """With a token of the account of the chart: nodes/checkpoint, and no nodes/proxy; and under its admission policies."""
    values = {
        "config": {
            "cluster": "trial",
            "nodeGroups": [{"name": "batch", "cleaning": {"migration": "kubelet-checkpoint"}}],
            "migration": {"scp": {"user": "root"}},
        },
        "moves": {"sshSecret": "htas-ssh"},
    }
    world.cluster.kubectl("create", "namespace", SPACE)
    world.counting(busy("real-b"), expected_to_run_on(job("train", None, container())))
    before = last(world.cluster, pods_of(world.cluster, "train")[0]["metadata"]["name"])
    own(world, namespace=SPACE)
    try:
        with applied_rights(world.cluster, rendered(helm, values)), applied_policies(world, rendered(helm, values)):
            assert not can(world.cluster, "create nodes/proxy", "default")
            assert can(world.cluster, "create nodes/checkpoint", "default")
            kubeconfig = account_kubeconfig(world.cluster, tmp_path)
            access = {"kubeconfig": str(kubeconfig), "namespace": SPACE}
            config = cleaning(world, tmp_path, "kubelet-checkpoint", kubeconfig, kubernetes=access)
            with Htas(config, tmp_path / "htas.log") as daemon:
                daemon.says("moved", 90, status="done")
                eventually(lambda: "real-a" not in names(world), 60, "the source's node is released")
                assert not [line for line in daemon.lines if "orbidden" in str(line)]
    finally:
        world.cluster.kubectl("delete", "namespace", SPACE)
    (twin,) = pods_of(world.cluster, "train")
    assert twin["spec"]["nodeName"] == "real-b"
    assert last(world.cluster, twin["metadata"]["name"]).process == before.process


@contextmanager
def applied_policies(world: World, items: list[Json]) -> Iterator[None]:
    """The chart's admission policies for as long as the context lasts, once they are in force."""
    policies = yaml.safe_dump_all([item for item in items if "AdmissionPolicy" in item["kind"]])
    world.cluster.kubectl("apply", "-f", "-", input=policies)
    forged = a_pod("forged")
    forged["spec"]["containers"][0]["image"] = "localhost/htas-checkpoint/x"
    command = ("create", "-f", "-", "--dry-run=server")
    try:
        eventually(lambda: "HTAS restores" in refused(world.cluster, *command, given=forged), 30, "in force")
        yield
    finally:
        world.cluster.kubectl("delete", "-f", "-", input=policies)


def events_of_the_move(directory: Path) -> list[tuple[str, str]]:
    """What the profiler has written since the daemon found what was there: Table 3's rows but for the node's end."""
    with closing(SqliteStore(str(directory / "htas.db"), only_reads=True)) as store:
        rows = store.profile()
    since = [row for row in rows if row.event_time > rows[0].event_time]
    return [(row.event.value, row.instance_name) for row in since if row.event is not ProfileEvent.DEPROVISIONING]


def node(world: World, name: str) -> Json:
    return next(each for each in world.cluster.nodes() if each["metadata"]["name"] == name)


def names(world: World) -> set[str]:
    return {node["metadata"]["name"] for node in world.cluster.nodes()}
