"""Which pods are found guilty of failed machines, and for how long they are not bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState, NodeClaim
from htas.model.launches import FailedStarts, Launches
from htas.model.pods import Owner, Pod
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory
from htas.planning.cluster.failing_starts import MOST_PAUSE_S, PAUSE_S, SOON_S, judge_starts, workload_of
from htas.planning.cluster.owners import Owners
from htas.planning.planner import plan
from tests.builders import NOW, make_flavour, make_pod, make_policy, owned_node, running

POLICY = make_policy(flavours=[make_flavour("cheap", "4", "8Gi", "0.10")])
OWNERS = Owners(POLICY)


def pod_of(name: str, **fields: Any) -> Pod:
    return make_pod(f"{name}-x", owner=Owner("ReplicaSet", name, name), **fields)


def train(number: int) -> Pod:
    return make_pod(f"train-{number}-x", owner=Owner("Job", f"train-{number}", ""), template="Job/train-#")


def known(pods: Mapping[str, int]) -> dict[str, FailedStarts]:
    """Records of services by name: so many failed starts in a row."""
    keys = {name: (workload_of(pod_of(name), OWNERS), OWNERS.of(pod_of(name))) for name in pods}
    return {key: FailedStarts(pods[name], NOW - 100) for name, both in keys.items() for key in both}


def after(launches: Launches, *pods: Pod, **claim: Any) -> Launches:
    nodes = claim.pop("nodes", (owned_node("other", flavour="cheap"),))
    fields = {"state": ClaimState.FAILED, "missing_since": NOW - 70, **claim}
    failed = NodeClaim("c", "any", "cheap", created_at=NOW - 900, since=NOW, node="c", **fields)
    snapshot = ClusterSnapshot(NOW, ClusterView(nodes=nodes, pods=pods), claims=(failed,))
    judged = judge_starts(snapshot, POLICY, launches, NOW)
    return Launches(starts=judged.starts, failed_starts=judged.failed)


def started(pods: Sequence[Pod], failed: Mapping[str, FailedStarts], age_s: float = 100.0) -> Launches:
    return Launches(starts={"c": {workload_of(pod, OWNERS): NOW - age_s for pod in pods}}, failed_starts=failed)


def paused(launches: Launches, pods: Sequence[Pod]) -> dict[str, float]:
    records = ((pod, launches.failed_starts.get(workload_of(pod, OWNERS))) for pod in pods)
    found = ((pod, known) for pod, known in records if known is not None and known.until)
    return {pod.owner.name: known.until - NOW for pod, known in found if pod.owner is not None}


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param({"a": 0}, {}, id="one failure may be the machine's"),
        pytest.param({"a": 1}, {"a": PAUSE_S}, id="two in a row"),
        pytest.param({"a": 1, "b": 0, "c": 0}, {"a": PAUSE_S}, id="whose starts failed most often"),
        pytest.param({"a": 1, "b": 1, "c": 1, "d": 1}, {"c": PAUSE_S, "d": PAUSE_S}, id="half of those as suspect"),
        pytest.param({"a": 1, "b": 1, "c": 1}, {"b": PAUSE_S, "c": PAUSE_S}, id="the larger half"),
    ],
)
def test_of_a_failed_machine(before: dict[str, int], expected: dict[str, float]) -> None:
    pods = [pod_of(name) for name in before]
    record = known({name: times for name, times in before.items() if times})
    assert paused(after(started(pods, record)), pods) == expected


def test_a_pause_doubles_for_who_is_guilty_alone() -> None:
    record, lengths = known({"a": 1}), []
    for _ in range(4):
        judged = after(started([pod_of("a")], record))
        lengths.append(paused(judged, [pod_of("a")])["a"])
        record = dict(judged.failed_starts)
    assert lengths == [PAUSE_S, 2 * PAUSE_S, MOST_PAUSE_S, MOST_PAUSE_S]


def test_a_pod_that_lives_elsewhere_clears_its_owner() -> None:
    lives = msgspec.structs.replace(running(pod_of("a"), "other"), started_at=NOW - SOON_S)
    assert after(started([pod_of("a")], known({"a": 3})), lives).failed_starts == {}


def test_of_jobs_whose_names_differ_in_digits_one_is_guilty_though_others_live() -> None:
    lives = msgspec.structs.replace(running(train(1), "other"), started_at=NOW - SOON_S)
    before = {workload_of(train(0), OWNERS): FailedStarts(1, NOW - 100)}
    judged = after(started([train(0), train(2)], before), lives)
    assert paused(judged, [train(0), train(1), train(2)]) == {"train-0": PAUSE_S}


def test_a_failed_machine_counts_once_though_its_pods_are_still_listed() -> None:
    """Kubernetes keeps pods of a node that is not Ready for five minutes."""
    listed = msgspec.structs.replace(running(pod_of("a"), "c"), started_at=NOW - 100)
    node = msgspec.structs.replace(owned_node("c", flavour="cheap"), is_ready=False)
    once = after(started([pod_of("a")], {}), listed, nodes=(node,))
    assert after(once, listed, nodes=(node,)).failed_starts == once.failed_starts
    assert {known.times for known in once.failed_starts.values()} == {1}


@pytest.mark.parametrize(
    ("age_s", "claim"),
    [
        pytest.param(SOON_S + 70, {}, id="it had lived when the machine failed"),
        pytest.param(100, {"state": ClaimState.READY, "missing_since": NOW - 59}, id="the machine may yet be there"),
        pytest.param(100, {"state": ClaimState.DRAINING, "missing_since": None}, id="the machine is drained"),
    ],
)
def test_no_start_has_failed(age_s: float, claim: dict[str, Any]) -> None:
    assert after(started([pod_of("a")], {}, age_s), **claim).failed_starts == {}


@pytest.mark.parametrize(("until", "bound"), [(NOW + 60, 0), (NOW, 1), (NOW + MOST_PAUSE_S + 60, 1)])
def test_a_paused_pod_is_not_bound_and_one_is_tried_after_it(until: float, bound: int) -> None:
    """A pause of more than its length was set by a clock that has been put back."""
    pods = [pod_of("a"), make_pod("a-y", owner=Owner("ReplicaSet", "a", "a"))]
    record = {key: msgspec.structs.replace(each, until=until, times=2) for key, each in known({"a": 2}).items()}
    view = ClusterView(nodes=(owned_node("n", flavour="cheap"),), pods=tuple(pods))
    made = plan(ClusterSnapshot(NOW, view, memory=Memory(launches=Launches(failed_starts=record))), POLICY, NOW)
    assert len(made.bind) == bound
    assert [item.reason for item in made.unplaced] == [Unplaced.STARTS_FAIL] * (2 - bound)
    assert not made.launch
