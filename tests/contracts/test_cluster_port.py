from threading import Event

import msgspec
import pytest

from htas.model.constraints import Effect, Taint
from htas.model.nodes import DRAINING_TAINT, OWN_LABELS
from htas.model.pods import Phase, Pod
from htas.ports import ConflictError, NotFoundError
from tests.builders import make_pod
from tests.contracts.conftest import Universe


def pod(universe: Universe, start: str) -> Pod:
    return next(pod for pod in universe.cluster.observe().pods if pod.name.startswith(start))


def test_it_shows_what_waits(universe: Universe) -> None:
    view = universe.cluster.observe()
    assert [node.name for node in view.nodes] == ["a", "b"]
    assert sorted(pod.name.partition("-")[0] for pod in view.pods) == ["job", "web", "web"]
    assert all(pod.node is pod.ready_since is None for pod in view.pods)


def test_a_bound_pod_runs_and_ends(universe: Universe) -> None:
    universe.cluster.bind(pod(universe, "job"), "a")
    universe.wait(5)
    found = pod(universe, "job")
    assert (found.node, found.phase) == ("a", Phase.RUNNING)
    assert found.started_at is not None
    assert found.ready_since is not None
    assert found.started_at <= found.ready_since <= universe.clock.now()
    universe.wait(200)
    view = universe.cluster.observe()
    assert not [p for p in view.pods if p.name.startswith("job")]
    assert [(end.uid, end.succeeded) for end in view.ended] == [(found.uid, True)]
    assert view.ended[0].at is None or found.started_at <= view.ended[0].at <= universe.clock.now()


def test_binding_twice_is_binding_once_but_not_elsewhere(universe: Universe) -> None:
    waiting = pod(universe, "web")
    universe.cluster.bind(waiting, "a")
    universe.cluster.bind(waiting, "a")
    with pytest.raises(ConflictError):
        universe.cluster.bind(waiting, "b")


def test_a_pod_is_bound_with_its_deletion_cost_and_keeps_it(universe: Universe) -> None:
    """Its annotation comes with the binding: no call of its own, and no right to patch pods."""
    waiting, beside = (each for each in universe.cluster.observe().pods if each.name.startswith("web"))
    universe.cluster.bind(waiting, "a", -1_478_894_080)
    universe.cluster.bind(beside, "a")
    universe.wait(5)
    costs = {each.name: each.deletion_cost for each in universe.cluster.observe().pods}
    assert (costs[waiting.name], costs[beside.name]) == (-1_478_894_080, None)


def test_binding_what_is_gone(universe: Universe) -> None:
    with pytest.raises(NotFoundError):
        universe.cluster.bind(make_pod("nobody"), "a")
    with pytest.raises(NotFoundError):
        universe.cluster.bind(pod(universe, "web"), "nowhere")


def test_changes_grow_when_room_frees(universe: Universe) -> None:
    universe.cluster.bind(pod(universe, "job"), "a")
    universe.wait(5)
    before = universe.cluster.changes()
    universe.wait(200)
    assert universe.cluster.changes() > before


def test_who_waits_for_changes_is_woken(universe: Universe) -> None:
    """Once the number has grown, so that whoever looks then sees it."""
    universe.cluster.bind(pod(universe, "job"), "a")
    universe.wait(5)
    before = universe.cluster.changes()
    woken = Event()
    universe.cluster.on_change(woken.set)
    universe.provider.on_change(lambda: None)
    universe.wait(200)
    assert woken.wait(10.0)
    assert universe.cluster.changes() > before


def test_an_evicted_pod_is_replaced_by_its_controller(universe: Universe) -> None:
    first = pod(universe, "web")
    universe.cluster.bind(first, "a")
    universe.wait(5)
    universe.cluster.evict(first)
    universe.cluster.evict(first)  # evicting again is no error
    universe.wait(60)
    names = [p.name for p in universe.cluster.observe().pods if p.name.startswith("web")]
    assert len(names) == 2
    assert first.name not in names


def test_evicting_what_is_gone_is_done(universe: Universe) -> None:
    universe.cluster.evict(make_pod("nobody"))


def test_a_waiting_pod_is_nominated_to_a_node_and_to_none_again(universe: Universe) -> None:
    waiting = pod(universe, "job")
    for _ in range(2):
        universe.cluster.nominate(waiting, "a")
        assert pod(universe, "job").nominated_node == "a"
    universe.cluster.nominate(waiting, None)
    assert pod(universe, "job").nominated_node is None


def test_a_nominated_pod_is_bound_where_it_is_bound(universe: Universe) -> None:
    universe.cluster.nominate(pod(universe, "job"), "a")
    universe.cluster.bind(pod(universe, "job"), "b")
    assert pod(universe, "job").node == "b"


def test_nobody_who_is_gone_is_nominated(universe: Universe) -> None:
    with pytest.raises(NotFoundError):
        universe.cluster.nominate(make_pod("nobody"), "a")


def test_a_preempted_pod_ends_and_is_replaced_by_its_controller(universe: Universe) -> None:
    first = pod(universe, "web")
    universe.cluster.bind(first, "a")
    universe.wait(5)
    universe.cluster.preempt(first, "for work of higher priority")
    universe.cluster.preempt(first, "for work of higher priority")
    universe.wait(60)
    names = [p.name for p in universe.cluster.observe().pods if p.name.startswith("web")]
    assert len(names) == 2
    assert first.name not in names


def test_another_pod_of_the_same_name_is_not_preempted(universe: Universe) -> None:
    first = pod(universe, "web")
    other = msgspec.structs.replace(first, uid="00000000-0000-0000-0000-000000000000")
    universe.cluster.preempt(other, "for another")
    with pytest.raises(NotFoundError):
        universe.cluster.nominate(other, "a")
    universe.cluster.preempt(make_pod("nobody"), "gone already is done")
    universe.wait(5)
    assert [(p.uid, p.is_terminating) for p in universe.cluster.observe().pods if p.name == first.name] == [
        (first.uid, False)
    ]


def test_draining_can_be_set_and_undone(universe: Universe) -> None:
    universe.cluster.set_draining("a", True)
    universe.cluster.set_draining("a", True)
    node = universe.cluster.observe().nodes[0]
    assert node.is_unschedulable
    assert node.taints.count(DRAINING_TAINT) == 1
    universe.cluster.set_draining("a", False)
    node = universe.cluster.observe().nodes[0]
    assert not node.is_unschedulable
    assert not node.is_draining
    with pytest.raises(NotFoundError):
        universe.cluster.set_draining("nowhere", True)


def test_deleting_a_node_twice_is_deleting_it_once(universe: Universe) -> None:
    universe.cluster.delete_node("b")
    universe.cluster.delete_node("b")
    assert [node.name for node in universe.cluster.observe().nodes] == ["a"]


def test_setting_up_a_node_adds_to_what_it_has_and_may_be_repeated(universe: Universe) -> None:
    taint = Taint("dedicated", Effect.NO_SCHEDULE, "batch")
    universe.cluster.set_draining("a", True)
    for _ in range(2):
        universe.cluster.set_up_node("a", {"team": "x"}, (taint,))
    found = next(node for node in universe.cluster.observe().nodes if node.name == "a")
    assert found.labels["team"] == "x"
    assert found.labels["kubernetes.io/hostname"] == "a"
    assert found.is_draining
    assert [each for each in found.taints if each.key == "dedicated"] == [taint]


def test_a_disowned_node_loses_our_labels_alone(universe: Universe) -> None:
    universe.cluster.set_up_node("a", {**dict.fromkeys(OWN_LABELS, "x"), "team": "y"})
    for _ in range(2):
        universe.cluster.disown_node("a")
    found = next(node for node in universe.cluster.observe().nodes if node.name == "a")
    assert not set(OWN_LABELS) & set(found.labels)
    assert found.labels["team"] == "y"
    assert found.labels["kubernetes.io/hostname"] == "a"
    universe.cluster.disown_node("nobody")


def test_a_node_that_is_gone_cannot_be_set_up(universe: Universe) -> None:
    with pytest.raises(NotFoundError):
        universe.cluster.set_up_node("nobody", {"team": "x"})
