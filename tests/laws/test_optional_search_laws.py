"""A search that a plan can do without never costs a bind, however it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.plan import Carrying, Plan
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.model.search_failures import OptionalSearch
from htas.model.snapshot import ClusterSnapshot
from htas.planning.planner import plan
from tests.builders import NOW
from tests.laws.strategies import policies, snapshots
from tests.laws.test_preemption_laws import full_clusters, preempting

Law = settings(max_examples=60, deadline=None, derandomize=True)
Found = TypeVar("Found")


SEARCHES = tuple(each for each in OptionalSearch if each is not OptionalSearch.BEYOND_PLACING)


class Failing:
    """Runs searches, some of which raise when they have done all their work: the worst moment.

    `spared`: so many runs of each go well first.
    """

    def __init__(self, *searches: OptionalSearch, spared: int = 0) -> None:
        self.left = dict.fromkeys(searches, spared)
        self.raised: set[OptionalSearch] = set()

    def __call__(self, search: OptionalSearch, do: Callable[[], Found]) -> Found:
        found = do()
        if search not in self.left:
            return found
        self.left[search] -= 1
        if self.left[search] >= 0:
            return found
        self.raised.add(search)
        raise OverflowError("int too large to convert to float")


def bound(made: Plan) -> set[str]:
    return {item.pod for item in made.bind}


def accounted(made: Plan) -> list[str]:
    told = [item.pod for item in made.bind] + [item.pod for item in made.nominate]
    told += [item.pod for item in made.unplaced]
    return sorted([*told, *(key for item in made.launch for key in item.pods)])


def without_room_made(snapshot: ClusterSnapshot, made: Plan) -> dict[str, str]:
    """Pods that the plan says it has nominated, with its words, where nothing is evicted from their node or ends there."""
    before = {pod.key for pod in snapshot.cluster.pods if pod.nominated_node is not None}
    told = {item.pod: item.message for item in made.unplaced if item.reason is Unplaced.NOMINATED}
    emptied = {move.source for move in made.preempt} | {p.node for p in snapshot.cluster.pods if p.is_terminating}
    return {
        pod: message
        for pod, message in told.items()
        if pod not in before and not any(message.startswith(f"nominated to {node}:") for node in emptied)
    }


def pending(snapshot: ClusterSnapshot) -> list[str]:
    return sorted(pod.key for pod in snapshot.cluster.pods if pod.node is None)


@Law
@given(snapshots(), policies(), st.sampled_from(list(OptionalSearch)))
def test_a_search_that_raises_costs_no_bind(snapshot: ClusterSnapshot, policy: Policy, search: OptionalSearch) -> None:
    healthy, runner = plan(snapshot, policy, NOW), Failing(search)
    made = plan(snapshot, policy, NOW, runner=runner)
    assert bound(healthy) <= bound(made)
    assert accounted(made) == pending(snapshot)
    assert {failure.search for failure in made.failures} == runner.raised
    assert healthy.failures == ()


@Law
@given(full_clusters(), preempting(), st.integers(0, 3))
def test_whoever_is_nominated_has_room_made_however_often_preemption_went_well(
    snapshot: ClusterSnapshot, policy: Policy, spared: int
) -> None:
    """The first run is the preemption before any launch; later runs go on from what it decided."""
    healthy = plan(snapshot, policy, NOW)
    made = plan(snapshot, policy, NOW, runner=Failing(OptionalSearch.PREEMPTION, spared=spared))
    assert accounted(made) == pending(snapshot)
    assert without_room_made(snapshot, healthy) == without_room_made(snapshot, made) == {}
    assert {move.uid for move in made.preempt} <= {move.uid for move in healthy.preempt}
    assert spared or not made.preempt


@Law
@given(snapshots(), policies())
def test_the_plan_without_any_optional_search_still_binds_and_launches(
    snapshot: ClusterSnapshot, policy: Policy
) -> None:
    healthy, made = plan(snapshot, policy, NOW), plan(snapshot, policy, NOW, runner=Failing(*SEARCHES))
    assert bound(healthy) <= bound(made)
    assert accounted(made) == pending(snapshot)
    assert bool(healthy.launch) <= bool(made.launch)


@Law
@given(snapshots(), policies())
def test_a_plan_of_which_all_but_placing_fails_only_binds(snapshot: ClusterSnapshot, policy: Policy) -> None:
    made = plan(snapshot, policy, NOW, runner=Failing(OptionalSearch.BEYOND_PLACING))
    assert not made.launches
    assert not made.proposals
    assert made.carry == Carrying()
    assert made.memory == snapshot.memory
    ready = {node.name for node in snapshot.cluster.nodes if node.is_ready}
    assert {item.node for item in made.bind} <= ready
