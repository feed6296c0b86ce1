"""Journals that somebody else wrote: no pod but the writer's own is touched for them, and no command is run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.migration.copying.scp import SecureCopies
from htas.adapters.migration.documents import journalled, twin_name_of, twin_of
from htas.adapters.migration.method import StepFailedError
from htas.adapters.migration.methods.kubelet_checkpoint import KubeletCheckpoint, Kubelets
from htas.adapters.migration.objects import Objects
from htas.model.migrations import Failure, MigrationRecord, MigrationState, SecureCopy
from htas.model.moves import MigrationMethod
from htas.model.pods import MOVING
from tests.builders import make_pod
from tests.unit.adapters.migration.cluster import Cluster, merge
from tests.unit.adapters.migration.moving import ID, World, a_source
from tests.unit.adapters.migration.pods import a_pod, a_record
from tests.waiting import until

OWN = "/var/lib/kubelet/checkpoints/checkpoint-train-x_default-main-2026-11-21T10:00:00Z.tar"


def about_a_victim(state: MigrationState, **changes: Any) -> MigrationRecord:
    now = time.time()
    facts: dict[str, Any] = {"image": "attacker/image", "dumped_at": now, "containers": ("main",)}
    return MigrationRecord(
        ID,
        "kube-system/victim",
        "u-victim",
        "a",
        "b",
        MigrationMethod.KUBELET_CHECKPOINT,
        state,
        now,
        **(facts | changes),
    )


@pytest.mark.parametrize(
    "state", [MigrationState.PREPARED, MigrationState.TRANSFERRED, MigrationState.RESTORED, MigrationState.SWITCHED]
)
def test_a_forged_journal_touches_no_other_pod(state: MigrationState) -> None:
    world = World()
    victim = world.cluster.add(a_source("", "victim", "kube-system", "u-victim"))
    forged = about_a_victim(state)
    bearer = world.cluster.add(a_source("", "evil", "team", "u-evil"))
    merge(bearer, journalled(forged))
    disguised = twin_of(victim, forged, ["attacker/image"], "Never")
    disguised["metadata"]["namespace"] = "team"
    merge(world.cluster.add(disguised), journalled(forged))
    before = list(world.cluster.pods)
    honest = world.left(MigrationState.RESTORED)
    with world.engine() as engine:
        engine.run()
        until(lambda: any(record.is_over for record in engine.records()))  # the look that passed them is over
        assert {record.id for record in engine.records()} == {honest.id}
    assert set(before) - set(world.cluster.pods) == {("team", "train")}
    assert ("POST", twin_name_of(forged)) not in world.cluster.writes


@pytest.mark.parametrize("target", ["b", "c"])
def test_a_pod_that_bears_the_journal_of_the_pod_it_is_a_copy_of_is_moved(target: str) -> None:
    world = World()
    world.cluster.add_node("c")
    world.disks.images["c"] = set()
    copy = world.cluster.add(a_source("", "copy", "team", "u-copy"))
    merge(copy, journalled(world.left(MigrationState.PREPARED)))
    with world.engine() as engine:
        engine.start(make_pod("copy", namespace="team", uid="u-copy"), target)
        until(lambda: any(record.is_over for record in engine.records()))
        (record,) = engine.records()
        assert (record.pod, record.target, record.state) == ("team/copy", target, MigrationState.DONE)


def test_a_pod_that_bears_a_twins_name_is_neither_restored_nor_deleted() -> None:
    world = World()
    record = world.left(MigrationState.TRANSFERRED)
    squatter = a_source("", twin_name_of(record), "team", "u-squatter")
    squatter["spec"]["nodeName"] = "b"
    world.cluster.add(squatter)
    over = world.carried_on()
    assert (over.state, over.reason) == (MigrationState.ROLLED_BACK, Failure.RESTORE_FAILED)
    assert world.names == ["train", "train-m"]
    assert not squatter["metadata"].get("deletionTimestamp")


def test_what_came_to_forbid_a_move_is_looked_at_again_before_a_twin_is_made() -> None:
    world = World()
    world.source["spec"]["volumes"] = [{"name": "host", "hostPath": {"path": "/"}}]
    world.left(MigrationState.TRANSFERRED)
    over = world.carried_on(attempts=3)
    assert (over.state, over.attempt, over.reason) == (MigrationState.ROLLED_BACK, 1, Failure.REFUSED)
    assert world.names == ["train"]
    assert MOVING not in world.source["metadata"]["labels"]


@pytest.mark.parametrize(
    "archive",
    [
        "/etc/shadow",
        OWN.replace("_default-", "_default-b-"),
        OWN.replace("train-x", "other"),
        OWN.replace("-main-", "-main-log-"),
        OWN.replace("/checkpoints/", "/checkpoints/../"),
        OWN + ";reboot",
        "",
    ],
)
def test_nothing_is_read_but_the_pods_own_archive(archive: str) -> None:
    with kubelet_checkpoint() as method, pytest.raises(StepFailedError, match="no archives of default/train-x"):
        method.deliver(a_record(archive=archive), a_pod(), 1.0)


@pytest.mark.parametrize("image", ["attacker/image", "localhost/htas-checkpoint/main:abcdef012345-2", ""])
def test_nothing_is_restored_but_the_moves_own_image(image: str) -> None:
    with kubelet_checkpoint() as method, pytest.raises(StepFailedError) as refused:
        method.restore(a_record(image=image), a_pod(), 1.0)
    assert (refused.value.reason, refused.value.is_final) == (Failure.REFUSED, True)


@contextmanager
def kubelet_checkpoint() -> Iterator[KubeletCheckpoint]:
    """The method in a cluster of nobody, with a shell that reaches nothing."""
    with Cluster().served() as server:
        access = server.access()
        objects = Objects(ApiServer(access, RateLimit(1e9, 10**9), pause=lambda _: None))
        copies = SecureCopies(SecureCopy(), objects.address)
        yield KubeletCheckpoint(objects, Kubelets(access, 10250, None, None), copies)
