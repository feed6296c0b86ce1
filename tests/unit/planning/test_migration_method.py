"""By which method a pod leaves its node: the one rule of the optimiser and of those who carry out what it finds."""

from __future__ import annotations

import pytest

from htas.model.migrations import Refusal
from htas.model.moves import MigrationMethod
from htas.model.nodes import Node
from htas.model.pods import Owner, Pod
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.model.snapshot import ClusterView
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy
from htas.planning.eligibility.migration_methods import MigrationMethods
from tests.builders import NOW, make_job, make_pod, make_policy, owned_node, running

EVICT, CHECKPOINT, KUBELET, REPLACE = (
    MigrationMethod.EVICT,
    MigrationMethod.CHECKPOINT,
    MigrationMethod.KUBELET_CHECKPOINT,
    MigrationMethod.REPLACE,
)
RESTORES, ONLY_DUMPS, OLD = "containerd://2.3.1", "containerd://2.4.0", "containerd://1.7.2"
STATEFUL = Owner("StatefulSet", "db", "db-uid")


def policy(method: MigrationMethod) -> Policy:
    return make_policy([NodeGroup("any", cleaning=CleaningRules(migration=method))])


def view(source: str = RESTORES, target: str = RESTORES) -> ClusterView:
    nodes: list[Node] = [owned_node("a", runtime=source), owned_node("b", runtime=target)]
    return ClusterView(nodes=tuple(nodes))


def job(**fields: object) -> Pod:
    return running(make_job("job", 600.0, **fields), "a")


@pytest.mark.parametrize(
    ("method", "pod", "seen", "expected"),
    [
        pytest.param(EVICT, job(), view(), EVICT, id="as its group says"),
        pytest.param(CHECKPOINT, job(), view(OLD, OLD), CHECKPOINT, id="by the provider's means, whatever runs it"),
        pytest.param(KUBELET, job(), view(), KUBELET, id="by the kubelet's"),
        pytest.param(CHECKPOINT, job(owner=STATEFUL), view(), EVICT, id="a StatefulSet's pod keeps its name"),
        pytest.param(KUBELET, job(obstacles=(Refusal.DEVICE,)), view(), EVICT, id="a device is not dumped"),
        pytest.param(KUBELET, job(), view(source=OLD), EVICT, id="its source dumps nothing"),
        pytest.param(KUBELET, job(), view(target=ONLY_DUMPS), EVICT, id="its target restores nothing"),
        pytest.param(REPLACE, running(make_pod(), "a"), view(OLD, OLD), REPLACE, id="a service starts on any node"),
        pytest.param(REPLACE, job(), view(), EVICT, id="batch work is not begun beside itself"),
        pytest.param(REPLACE, running(make_pod(owner=STATEFUL), "a"), view(), EVICT, id="a StatefulSet's is unique"),
    ],
)
def test_what_cannot_be_moved_by_its_groups_method_is_evicted(
    method: MigrationMethod, pod: Pod, seen: ClusterView, expected: MigrationMethod
) -> None:
    assert MigrationMethods(seen, policy(method)).method(pod, "b") is expected


def test_a_pod_on_a_node_that_no_group_has_is_evicted() -> None:
    leaving = MigrationMethods(view(), make_policy([NodeGroup("other", cleaning=CleaningRules(migration=CHECKPOINT))]))
    assert leaving.method(job(), "b") is EVICT


def test_a_pod_that_nobody_starts_again_may_be_moved_where_it_is_restored_and_nowhere_else() -> None:
    bare = running(make_pod("bare", owner=None, disruption={"htas.io/migrate": "true"}), "a")
    for seen, expected in (
        (view(), AllowedFor.ANYBODY),
        (view(target=OLD), AllowedFor.NOBODY),
        (view(source=OLD), AllowedFor.NOBODY),
    ):
        terms = DisruptionPolicy(seen, policy(KUBELET), NOW).terms(bare, DisruptionKind.MOVE, "b")
        assert terms.allowed_for is expected
        assert MigrationMethods(seen, policy(KUBELET)).arrives(bare, "b") is (expected is not AllowedFor.NOBODY)


def test_what_came_by_a_move_that_is_not_over_stays() -> None:
    twin = running(make_job("job-twin", 600.0, twin_of="job"), "b")
    assert (
        DisruptionPolicy(view(), policy(CHECKPOINT), NOW).terms(twin, DisruptionKind.EVICT).allowed_for
        is AllowedFor.NOBODY
    )
