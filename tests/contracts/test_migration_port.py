import pytest

from htas.ports import ConflictError, NotFoundError
from tests.builders import make_pod
from tests.contracts.conftest import Universe
from tests.contracts.test_cluster_port import pod


def running_job(universe: Universe) -> None:
    universe.cluster.bind(pod(universe, "job"), "a")
    universe.wait(5)


def test_a_moved_pod_keeps_its_progress(universe: Universe) -> None:
    running_job(universe)
    before = pod(universe, "job")
    universe.migration.start(before, "b")
    universe.migration.start(before, "b")  # begun already is done
    assert [(move.pod, move.target) for move in universe.migration.moving()] == [(before.key, "b")]
    assert pod(universe, "job").node == "a"
    universe.wait(30)
    after = pod(universe, "job")
    assert (after.node, after.uid, after.started_at) == ("b", before.uid, before.started_at)
    assert not universe.migration.moving()
    universe.wait(75)
    assert not [p for p in universe.cluster.observe().pods if p.name.startswith("job")]


def test_without_room_nothing_is_moved(universe: Universe) -> None:
    running_job(universe)
    with pytest.raises((ConflictError, NotFoundError)):
        universe.migration.start(pod(universe, "job"), "nowhere")
    assert not universe.migration.moving()


def test_a_target_that_goes_leaves_the_pod_where_it_was(universe: Universe) -> None:
    running_job(universe)
    universe.migration.start(pod(universe, "job"), "b")
    universe.cluster.delete_node("b")
    universe.wait(30)
    assert pod(universe, "job").node == "a"


def test_what_is_gone_is_not_moved(universe: Universe) -> None:
    with pytest.raises(NotFoundError):
        universe.migration.start(make_pod("nobody"), "b")
