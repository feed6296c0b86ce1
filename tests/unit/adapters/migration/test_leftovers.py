"""What moves leave on nodes is removed, also where that has to wait; what is needed is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.migration.documents import LEFT_BEHIND, RESTORED, journalled, record_in
from htas.adapters.migration.leftovers import Leftovers
from htas.adapters.migration.objects import Objects
from htas.model.migrations import MigrationRecord, MigrationState
from htas.model.moves import MigrationMethod
from tests.unit.adapters.migration.cluster import merge
from tests.unit.adapters.migration.moving import ID, Disks, World, a_source
from tests.waiting import until

NEW = "bbbbbbbbbbbb"


@contextmanager
def leftovers(world: World, *nodes: str) -> Iterator[Leftovers]:
    with world.cluster.served() as server:
        objects = Objects(ApiServer(server.access(), RateLimit(1e9, 10**9), pause=lambda _: None))
        yield Leftovers(objects, world.disks, lambda: nodes)


def nobody() -> Sequence[MigrationRecord]:
    return ()


def test_archives_on_a_node_that_cannot_be_reached_are_removed_once_it_can() -> None:
    world = World()
    world.left(MigrationState.RESTORED)
    world.disks.archives["a"].add("team/train")
    world.disks.unreachable.add("a")
    with world.engine() as engine:
        engine.run()
        until(lambda: any(record.is_over for record in engine.records()))
        (record,) = engine.records()
        assert (record.state, record.left_behind) == (MigrationState.DONE, True)
        assert world.twin["metadata"]["labels"][LEFT_BEHIND] == ID
        world.disks.unreachable.clear()
        until(lambda: not world.disks.archives["a"])
        until(lambda: LEFT_BEHIND not in world.twin["metadata"]["labels"])
    told = record_in(world.twin)
    assert told is not None
    assert not told.left_behind
    assert not world.disks.images["b"], "the restored pod lives without its image"


def test_a_daemon_that_begins_removes_the_archives_that_an_earlier_one_could_not() -> None:
    world = World()
    over = world.left(MigrationState.RESTORED).advanced(MigrationState.ROLLED_BACK, 0.0, left_behind=True)
    merge(world.source, journalled(over))
    world.disks.archives["a"].add("team/train")
    with leftovers(world) as swept:
        swept.look(nobody)
    assert not world.disks.archives["a"]
    assert LEFT_BEHIND not in world.source["metadata"]["labels"]


def test_a_pod_whose_mark_is_no_moves_id_has_no_image_forgotten() -> None:
    """A command that is called for a move without an id may well remove what is all moves'."""
    forgotten: list[str] = []

    class Noted(Disks):
        def forget(self, node: str, move: str) -> None:
            forgotten.append(move)

    world = World()
    world.disks = Noted()
    for uid, mark in (("u-2", "..."), ("u-3", NEW)):
        pod = world.cluster.add(a_source("", uid, "team", uid))
        pod["metadata"]["labels"][RESTORED] = mark
    with leftovers(world) as swept:
        swept.look(nobody)
        world.cluster.pods.clear()
        swept.look(nobody)
    assert forgotten == [NEW]


def test_archives_of_a_pod_that_is_on_its_way_again_are_left_until_it_has_arrived() -> None:
    """They have the same names but for the instant: the new move's would go, too."""
    world = World()
    over = world.left(MigrationState.PREPARED)
    world.disks.archives["a"].add("team/train")
    with leftovers(world) as swept:
        swept.owe(over, keep_image=False)
        swept.look(lambda: [over])
        assert world.disks.archives["a"]
        swept.look(nobody)
        assert not world.disks.archives["a"]


def test_a_journal_about_another_pod_has_nothing_removed() -> None:
    world = World()
    world.disks.archives["a"].add("kube-system/victim")
    forged = MigrationRecord(
        ID,
        "kube-system/victim",
        "u-victim",
        "a",
        "b",
        MigrationMethod.KUBELET_CHECKPOINT,
        MigrationState.ROLLED_BACK,
        0.0,
    )
    bearer = world.cluster.add(a_source("", "evil"))
    bearer["metadata"]["labels"][LEFT_BEHIND] = ID
    merge(bearer, journalled(forged))
    bearer["metadata"]["labels"][LEFT_BEHIND] = ID
    with leftovers(world) as swept:
        swept.look(nobody)
    assert world.disks.archives["a"] == {"kube-system/victim"}


def test_a_pod_that_is_restored_while_another_node_is_swept_keeps_its_image() -> None:
    """Which of two nodes is swept first is chance: so either's sweep has a move restored on the other."""

    class Slow(Disks):
        def __init__(self) -> None:
            super().__init__()
            self.swept: list[str] = []

        def sweep(self, node: str, keep: Sequence[str]) -> None:
            other = "b" if node == "a" else "a"
            if not self.swept:
                swept.restored(other, NEW)
                self.images[other].add(NEW)
            self.swept.append(node)
            super().sweep(node, keep)

    world = World()
    world.disks = disks = Slow()
    disks.images = {"a": {"cccccccccccc"}, "b": {"dddddddddddd"}}
    with leftovers(world, "a", "b") as swept:
        swept.look(nobody)
    first, second = disks.swept
    assert disks.images == {first: set(), second: {NEW}}


def test_a_sweep_that_fails_is_tried_again() -> None:
    world = World()
    world.disks.images["b"].add("cccccccccccc")
    world.disks.unreachable.add("b")
    with leftovers(world, "b") as swept:
        swept.look(nobody)
        assert world.disks.images["b"]
        world.disks.unreachable.clear()
        swept.look(nobody)
    assert not world.disks.images["b"]
