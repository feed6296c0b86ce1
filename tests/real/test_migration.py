"""Running pods move between two real kubelets with CRIU, and lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from htas.model.migrations import MigrationState
from tests.real.conftest import Tell
from tests.real.counting import (
    bare_pod,
    container,
    counts,
    goes_on,
    job,
    job_status,
    last,
    longest_pause,
    pod,
    pods_of,
    replica_set,
)
from tests.real.harness import PODS, Json, Watcher, eventually
from tests.real.moving import World, as_model, over

pytestmark = pytest.mark.timeout(360)  # 500 MB, on a machine that others use
INDEX = "batch.kubernetes.io/job-completion-index"


def moved(world: World, app: str, tell: Tell | None = None, what: str = "") -> Json:
    """Move the pod of an app from real-a to real-b; returns the pod that has its place."""
    source = world.model_of(app)
    with world.engine() as engine:
        engine.start(source, "real-b")
        (record,) = over(engine)
        assert record.state is MigrationState.DONE, record
        if tell is not None:
            took = [
                record.took(before, after) or 0.0
                for before, after in (
                    (MigrationState.PREPARED, MigrationState.CHECKPOINTED),
                    (MigrationState.CHECKPOINTED, MigrationState.TRANSFERRED),
                    (MigrationState.TRANSFERRED, MigrationState.RESTORED),
                    (MigrationState.PREPARED, MigrationState.DONE),
                )
            ]
            dump, copy, restore, total = took
            size = record.archive_bytes / 1e6
            tell(
                f"{what}: {size:.1f} MB; dump {dump:.2f} s, copy {copy:.2f} s, restore {restore:.2f} s, total {total:.2f} s"
            )
        eventually(world.is_clean, 10, "nothing is left on the way, nor where it runs")
    assert pod(world.cluster, source.name).get("metadata", {}).get("uid") != source.uid
    return pod(world.cluster, record.twin)


@pytest.mark.parametrize("megabytes", [1, 100, 500])
def test_a_bare_pods_count_goes_on(megabytes: int, world: World, tell: Tell) -> None:
    world.counting(bare_pod("lone", "real-a", container(megabytes)))
    before = last(world.cluster, "lone")
    twin = moved(world, "lone", tell, f"{megabytes} MB of memory")
    name = twin["metadata"]["name"]
    assert twin["spec"]["nodeName"] == "real-b"
    assert twin["metadata"]["labels"]["app"] == "lone"
    assert goes_on(world.cluster, name)
    told = counts(world.cluster, name)
    assert {each.process for each in told} == {before.process}, "the same process, not a new one"
    assert told[-1].number > before.number, "not from zero"
    tell(f"{megabytes} MB: longest pause in the count {longest_pause(told):.2f} s")


def test_a_jobs_pod_keeps_its_place_and_the_job_completes_once(world: World, tell: Tell) -> None:
    """With backoffLimit 0 any second pod, or any failure, would end the Job."""
    with seen(world, "train") as uids:
        world.counting(job("train", "real-a", container(until=200)))
        before = last(world.cluster, pods_of(world.cluster, "train")[0]["metadata"]["name"])
        twin = moved(world, "train", tell, "a Job's pod")
        assert job_status(world.cluster, "train").get("active") == 1
        eventually(lambda: job_status(world.cluster, "train").get("succeeded"), 60, "the Job completes")
    status = job_status(world.cluster, "train")
    assert (status["succeeded"], status.get("failed", 0), status.get("active", 0)) == (1, 0, 0), status
    assert len(uids) == 2, "the pod and its twin, and no replacement"
    told = counts(world.cluster, twin["metadata"]["name"])
    assert {each.process for each in told} == {before.process}
    assert told[-1].number == 200
    with world.engine():
        assert world.is_clean()


def test_two_pods_of_an_indexed_job_move_at_once_and_keep_their_indexes(world: World) -> None:
    with seen(world, "parts") as uids:
        indexed = job("parts", "real-a", container(until=250), count=2, completionMode="Indexed")
        world.counting(indexed)
        sources = [as_model(each) for each in pods_of(world.cluster, "parts")]
        with world.engine() as engine:
            for source in sources:
                engine.start(source, "real-b")
            records = over(engine, count=2)
            assert {each.state for each in records} == {MigrationState.DONE}, records
        here = pods_of(world.cluster, "parts")
        assert {each["spec"]["nodeName"] for each in here} == {"real-b"}
        assert {each["metadata"]["labels"][INDEX] for each in here} == {"0", "1"}
        eventually(lambda: job_status(world.cluster, "parts").get("succeeded") == 2, 60, "the Job completes")
    status = job_status(world.cluster, "parts")
    assert (status["completedIndexes"], status.get("failed", 0)) == ("0,1", 0), status
    assert len(uids) == 4, "two pods and their twins"


def test_a_replica_sets_pod_moves_and_no_replacement_is_made(world: World, tell: Tell) -> None:
    with seen(world, "steady") as uids:
        world.counting(replica_set("steady", "real-a", container()))
        before = last(world.cluster, pods_of(world.cluster, "steady")[0]["metadata"]["name"])
        twin = moved(world, "steady", tell, "a ReplicaSet's pod")
        assert goes_on(world.cluster, twin["metadata"]["name"])
    (only,) = pods_of(world.cluster, "steady")
    assert only["metadata"]["uid"] == twin["metadata"]["uid"]
    assert only["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    assert {each.process for each in counts(world.cluster, twin["metadata"]["name"])} == {before.process}
    assert len(uids) == 2, "the pod and its twin, and no replacement"


@contextmanager
def seen(world: World, app: str) -> Iterator[set[str]]:
    """The uids of all pods that ever bore an app's label."""
    uids: set[str] = set()

    def look(_: str, item: Json) -> None:
        if item["metadata"].get("labels", {}).get("app") == app:
            uids.add(item["metadata"]["uid"])

    watcher = Watcher(world.cluster.api, PODS, look)
    yield uids
    watcher.stop()
