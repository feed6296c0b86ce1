"""Moves that fail for real: three attempts, then the source counts on and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Thread

import pytest

from htas.model.migrations import Failure, MigrationRecord, MigrationState, Refusal
from htas.ports import MoveRefusedError
from tests.real.conftest import Tell
from tests.real.counting import bare_pod, container, goes_on, last, pod, replica_set
from tests.real.harness import eventually
from tests.real.moving import World, impatient, over
from tools.testenv.real_nodes import ARCHIVES

pytestmark = pytest.mark.timeout(300)

CONTENT = "/var/lib/containerd/io.containerd.content.v1.content"
"""Where containerd writes what it imports."""
LOCKED = "flock /lock sleep 1000000 & sleep 1;"
Reached = Callable[[str], None]


def rolled_back(
    world: World,
    counting: dict[str, object],
    trouble: AbstractContextManager[object],
    reached: Reached = lambda _: None,
) -> MigrationRecord:
    """Try to move a pod while there is trouble; returns what became of it, after the checks that all have in common."""
    world.counting(bare_pod("lone", "real-a", counting))
    before = last(world.cluster, "lone")
    with world.engine(deadlines=impatient(), reached=reached) as engine:
        with trouble:
            engine.start(world.model_of("lone"), "real-b")
            (record,) = over(engine, 200)
        assert record.state is MigrationState.ROLLED_BACK
        assert record.attempt == 3, "three attempts"
        assert goes_on(world.cluster, "lone")
        assert last(world.cluster, "lone").process == before.process, "the source was not restarted"
        here = [each["metadata"]["name"] for each in world.cluster.pods()]
        assert here == ["lone"], "no twin is left"
        assert "htas.io/moving" not in pod(world.cluster, "lone")["metadata"]["labels"]
        world.nodes.start()
        eventually(world.is_clean, 40, "nothing is left on the nodes")
    return record


def test_a_held_file_lock_is_found_out_by_the_dump(world: World) -> None:
    record = rolled_back(world, container(before=LOCKED), nullcontext())
    assert record.reason == Failure.FILE_LOCK, record


def test_a_copy_that_is_cut_off(world: World) -> None:
    record = rolled_back(world, container(60), repeatedly(world, "real-a", KILL_READER))
    assert record.reason == Failure.TRANSFER_FAILED, record


def test_an_archive_that_changes_on_its_way_is_refused_by_its_digest(world: World) -> None:
    record = rolled_back(world, container(60), repeatedly(world, "real-a", SPOIL_WHILE_READ))
    assert record.reason == Failure.DIGEST_WRONG, record


def test_a_checkpoint_without_one_of_its_files_is_not_restored(world: World, tell: Tell) -> None:
    def spoil(point: str) -> None:
        if point == "move.checkpointed":
            world.nodes.on("real-a", f"cd {ARCHIVES} && for f in *.tar; do {WITHOUT_A_CORE}; done")

    record = rolled_back(world, container(), nullcontext(), spoil)
    assert record.reason == Failure.RESTORE_FAILED, record
    tell(f"a checkpoint without core-1.img: {record.detail}")


def test_the_targets_containerd_is_stopped(world: World) -> None:
    record = rolled_back(world, container(), world.nodes.without_containerd("real-b"))
    assert record.reason in (Failure.TRANSFER_FAILED, Failure.TARGET_LOST), record


def test_the_target_is_gone(world: World) -> None:
    def lose(point: str) -> None:
        if point == "move.checkpointed" and world.nodes.runs("real-b"):
            world.nodes.kill("real-b")

    record = rolled_back(world, container(), nullcontext(), lose)
    assert record.reason in (Failure.TRANSFER_FAILED, Failure.TARGET_LOST), record


def test_no_disk_space_on_the_source(world: World) -> None:
    record = rolled_back(world, container(1), world.nodes.without_space("real-a", ARCHIVES, "400k"))
    assert record.reason in (Failure.NO_SPACE, Failure.CHECKPOINT_FAILED), record


def test_no_disk_space_on_the_target(world: World) -> None:
    record = rolled_back(world, container(10), world.nodes.without_space("real-b", CONTENT, "1m", "ingest"))
    assert record.reason == Failure.NO_SPACE, record


def test_a_source_that_ends_meanwhile_is_not_moved_again(world: World) -> None:
    def end(point: str) -> None:
        if point == "move.transferred":
            world.cluster.kubectl("delete", "pod", "lone", "--grace-period=0", "--force")

    world.counting(bare_pod("lone", "real-a", container()))
    with world.engine(deadlines=impatient(), reached=end) as engine:
        engine.start(world.model_of("lone"), "real-b")
        (record,) = over(engine)
        assert (record.state, record.reason, record.attempt) == (
            MigrationState.ROLLED_BACK,
            Failure.SOURCE_ENDED,
            1,
        )
        eventually(lambda: not world.cluster.pods(), 20, "no twin is left")
        eventually(world.is_clean, 20, "nothing is left on the nodes")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"volumes": [{"name": "scratch", "emptyDir": {}}]}, Refusal.EMPTY_DIR),
        ({"volumes": [{"name": "host", "hostPath": {"path": "/tmp"}}]}, Refusal.HOST_PATH),
        ({"hostNetwork": True}, Refusal.HOST_NAMESPACE),
    ],
)
def test_what_would_be_lost_is_refused_before_anything_is_touched(
    change: dict[str, object], reason: Refusal, world: World
) -> None:
    manifest = bare_pod("lone", "real-a", container())
    manifest["spec"] |= change
    world.counting(manifest)
    with world.engine() as engine:
        with pytest.raises(MoveRefusedError) as caught:
            engine.start(world.model_of("lone"), "real-b")
        assert caught.value.reason is reason
        assert not engine.records()


def test_a_replica_sets_source_is_its_own_again_after_a_failed_switch(world: World) -> None:
    """The twin is gone just before it takes over: the next attempt moves the pod all the same."""
    cut = []

    def lose_twin(point: str) -> None:
        if point == "move.source-first-to-go" and not cut:
            cut.append(point)
            world.cluster.kubectl("delete", "pod", "-l", "htas.io/twin-of", "--grace-period=0", "--force")

    world.counting(replica_set("steady", "real-a", container()))
    with world.engine(deadlines=impatient(), reached=lose_twin) as engine:
        engine.start(world.model_of("steady"), "real-b")
        (record,) = over(engine)
    assert cut, "the switch was disturbed"
    assert (record.state, record.attempt) == (MigrationState.DONE, 2), record
    assert world.model_of("steady").node == "real-b"


WITHOUT_A_CORE = (
    "d=$(mktemp -d) && tar --force-local -xf $f -C $d"
    " && rm $d/checkpoint/core-1.img && tar --force-local -cf $f -C $d . && rm -rf $d"
)
READER = "for p in /proc/[0-9]*; do if tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q -e '^cat .*checkpoints' -e '^ssh -F'; then {}; fi; done"
KILL_READER = READER.format("kill -9 ${p#/proc/}")
ANNOUNCED = "/dev/shm/htas-move-*"
"""Is on the source from when it has said the archive's digest until the copy ends."""
SPOIL_WHILE_READ = (
    f"! ls {ANNOUNCED} >/dev/null 2>&1 || for f in {ARCHIVES}/*.tar; do"
    " printf spoiled | dd of=$f bs=1M seek=55 conv=notrunc 2>/dev/null; done"
)


@contextmanager
def repeatedly(world: World, node: str, command: str) -> Iterator[None]:
    """Run a command on a node over and over."""
    stopping = Event()

    def run() -> None:
        while not stopping.is_set():
            world.nodes.on(node, f"i=0; while [ $i -lt 20 ]; do i=$((i + 1)); {command}; sleep 0.02; done; true")

    thread = Thread(target=run, name="trouble")
    thread.start()
    yield
    stopping.set()
    thread.join()
