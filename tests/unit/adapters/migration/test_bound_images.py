"""A checkpoint's image holds the memory of its pod: nobody guesses its name, is told it, or finds it longer than needed."""

from __future__ import annotations

import re
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from htas.adapters.migration.copying.image import tag_of
from htas.adapters.migration.documents import base_images_of, found_in, journalled, record_in, twin_of
from htas.adapters.migration.leftovers import starting_over
from htas.adapters.migration.method import StepFailedError
from htas.adapters.migration.steps import STALE_S
from htas.model.migrations import Failure, MigrationRecord, MigrationState, is_checkpoint
from htas.model.moves import MigrationMethod
from htas.model.pods import Phase, Pod
from htas.model.resources import Resources
from tests.unit.adapters.migration.cluster import RUNNING, Json, merge
from tests.unit.adapters.migration.moving import ID, IMAGE, KEY, Disks, World
from tests.waiting import until


def model_of(source: Json) -> Pod:
    meta = source["metadata"]
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        requests=Resources(cpu_m=50, memory_bytes=2**20, pods=1),
        node="a",
        phase=Phase.RUNNING,
    )


# Names.


def test_each_move_has_a_key_of_its_own_which_is_journalled_before_anything_is_dumped() -> None:
    keys: list[str] = []

    class Looking(Disks):
        def checkpoint(self, record: MigrationRecord, source: Json, within_s: float):  # type: ignore[no-untyped-def] # as its base
            told = record_in(world.source)
            assert told is not None
            keys.append(told.image_key)
            return super().checkpoint(record, source, within_s)

    for _ in range(2):
        world = World()
        world.disks = Looking()
        with world.engine() as engine:
            engine.start(model_of(world.source), "b")
            until(lambda engine=engine: engine.records() and all(each.is_over for each in engine.records()))
    assert len(set(keys)) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)


TAGS = [
    pytest.param(f"localhost/htas-checkpoint/main:{ID}-1-{KEY}", True, id="by ssh"),
    pytest.param(f"registry:5000/htas:01234567-{ID}-12-{KEY}-main-2", True, id="by a registry"),
    pytest.param(f"localhost/htas-checkpoint/main:{ID}-1", False, id="of an earlier htas, which restarts from it"),
    pytest.param("localhost/htas-checkpoint/main", False, id="no tag"),
    pytest.param("registry:5000/train@sha256:" + "0" * 64, False, id="a digest"),
    pytest.param("", False, id="nothing"),
]


@pytest.mark.parametrize(("image", "is_ours"), TAGS)
def test_a_checkpoint_is_known_by_its_tag(image: str, is_ours: bool) -> None:
    assert is_checkpoint(image) is is_ours


@given(
    st.integers(1, 99),
    st.binary(min_size=16, max_size=16),
    st.from_regex(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True),
)
def test_every_tag_is_one_that_registries_take_and_that_is_known_again(
    attempt: int, key: bytes, container: str
) -> None:
    record = MigrationRecord(
        ID,
        "n/p",
        "u",
        "a",
        "b",
        MigrationMethod.KUBELET_CHECKPOINT,
        MigrationState.PREPARED,
        0.0,
        attempt,
        image_key=key.hex(),
    )
    longest = f"01234567-{tag_of(record)}-{container}"
    assert len(longest) <= 128
    assert is_checkpoint(f"r/x:{longest}")
    assert is_checkpoint(f"r/x:{tag_of(record)}")


def test_a_journal_with_a_key_that_is_none_is_not_believed() -> None:
    world = World()
    world.left(MigrationState.TRANSFERRED, image_key="x'; touch owned; '")
    assert found_in([world.source]) == []


# What is told.


def test_nothing_that_leads_to_an_image_is_told_of_moves() -> None:
    world = World()
    world.left(MigrationState.RESTORED, archive="/var/lib/kubelet/checkpoints/x.tar", digest="d" * 64)
    with capture_logs() as logged, world.engine() as engine:
        engine.run()
        until(lambda: engine.records() and all(each.is_over for each in engine.records()))
        told = msgspec.json.encode(engine.records()).decode() + str(logged)
    for secret in (KEY, IMAGE, "x.tar", "d" * 64):
        assert secret not in told


def test_a_name_in_a_complaint_is_told_to_nobody() -> None:
    class Complaining(Disks):
        def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
            raise StepFailedError(Failure.RESTORE_FAILED, f"failed to pull image {IMAGE}", is_final=True)

    world = World()
    world.disks = Complaining()
    world.left(MigrationState.TRANSFERRED)
    with capture_logs() as logged, world.engine() as engine:
        engine.run()
        until(lambda: engine.records() and all(each.is_over for each in engine.records()))
        (record,) = engine.records()
        told = msgspec.json.encode(record).decode() + str(logged)
    assert "failed to pull image" in record.detail
    assert KEY not in told


# How long it stays.


def test_an_image_goes_as_soon_as_the_restored_container_runs() -> None:
    left: list[set[str]] = []
    world = World()
    world.left(MigrationState.TRANSFERRED)
    world.disks.images["b"].add(ID)
    world.cluster.before = lambda method, name, body: (
        left.append(set(world.disks.images["b"])) if ('"state":"Restored"' in str(body)) else None
    )
    record = world.carried_on()
    assert record.state is MigrationState.DONE
    assert left, "Restored was journalled"
    assert set().union(*left) == set()


@pytest.mark.parametrize("state", [MigrationState.RESTORED, MigrationState.SWITCHED])
def test_a_daemon_that_died_before_it_removed_an_image_leaves_that_to_the_next(state: MigrationState) -> None:
    world = World()
    found = world.left(MigrationState.RESTORED)
    if state is MigrationState.SWITCHED:
        world.switch(found)
    assert world.disks.images["b"] == {ID}
    assert world.carried_on().state is MigrationState.DONE
    assert not world.disks.images["b"]


@pytest.mark.parametrize("state", [MigrationState.CHECKPOINTED, MigrationState.TRANSFERRED])
def test_so_does_one_that_died_before_the_twin_was_made(state: MigrationState) -> None:
    """Too old to be restored from, and the last attempt: nothing of it is left."""
    world = World()
    world.left(state, ago_s=STALE_S + 60)
    world.disks.images["b"].add(ID)
    world.disks.archives["a"].add("team/train")
    assert world.carried_on().state is MigrationState.ROLLED_BACK
    assert not world.disks.images["b"]
    assert not world.disks.archives["a"]


def test_a_target_that_does_not_answer_just_then_is_swept_later() -> None:
    world = World()
    world.left(MigrationState.TRANSFERRED)
    world.disks.images["b"].add(ID)
    world.disks.unreachable.add("b")
    with world.engine() as engine:
        engine.run()
        until(lambda: engine.records() and all(each.is_over for each in engine.records()))
        assert engine.records()[0].state is MigrationState.DONE, "the move does not wait for that"
        assert world.disks.images["b"] == {ID}
        world.disks.unreachable.clear()
        until(lambda: not world.disks.images["b"], 20)


# A restored container that ends later.


def restored(waiting: str, *, state: MigrationState = MigrationState.DONE, **spec: str) -> Json:
    world = World()
    record = world.left(MigrationState.RESTORED)
    twin = world.twin
    merge(twin, journalled(msgspec.structs.replace(record, state=state)))
    twin["spec"]["containers"][0] |= spec
    twin["status"]["containerStatuses"] = [
        {"name": "main", "state": {"waiting": {"reason": waiting}} if waiting else RUNNING}
    ]
    return twin


LATER = [
    pytest.param(restored("ErrImageNeverPull"), "busybox:1.36", id="imported, and removed"),
    pytest.param(restored("ImagePullBackOff"), "busybox:1.36", id="pulled, and removed from the registry"),
    pytest.param(restored(""), None, id="it runs"),
    pytest.param(restored("CrashLoopBackOff"), None, id="it waits for something else"),
    pytest.param(restored("ErrImageNeverPull", image="mine:2"), None, id="its owner gave it another image"),
    pytest.param(restored("ErrImageNeverPull", state=MigrationState.RESTORED), None, id="its move is under way"),
]


@pytest.mark.parametrize(("pod", "image"), LATER)
def test_it_starts_from_its_own_image(pod: Json, image: str | None) -> None:
    patch = starting_over(pod)
    assert (patch and patch["spec"]["containers"][0]["image"]) == image


def test_the_daemon_gives_it_its_own_image_back() -> None:
    world = World()
    world.left(MigrationState.RESTORED)
    with world.engine() as engine:
        engine.run()
        until(lambda: engine.records() and all(each.is_over for each in engine.records()))
        twin = world.twin
        twin["status"]["containerStatuses"] = [{"name": "main", "state": {"waiting": {"reason": "ErrImageNeverPull"}}}]
        world.cluster.changed(twin)
        until(lambda: world.twin["spec"]["containers"][0]["image"] == "busybox:1.36", 20)


def test_what_was_moved_twice_still_knows_what_it_started_from() -> None:
    world = World()
    done = msgspec.structs.replace(world.left(MigrationState.RESTORED), state=MigrationState.DONE)
    twin = world.twin
    merge(twin, journalled(done))
    assert base_images_of(twin) == ("busybox:1.36",)
    again = msgspec.structs.replace(
        done, id="b" * 12, uid=twin["metadata"]["uid"], pod=f"team/{twin['metadata']['name']}", source="b", target="a",
        base_images=base_images_of(twin), image_key="f" * 32, state=MigrationState.TRANSFERRED, twin="",
        started_at=time.time(),
    )  # fmt: skip
    second = twin_of(twin, again, [f"localhost/htas-checkpoint/main:{tag_of(again)}"], "Never")
    assert base_images_of({**second, "metadata": {**second["metadata"], "uid": "u-9"}}) == ("busybox:1.36",)
