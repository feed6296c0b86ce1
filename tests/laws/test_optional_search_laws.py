"""A search that a plan can do without never costs a bind, however it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.search_failures import OptionalSearch
from htas.model.snapshot import ClusterSnapshot
from htas.planning.planner import plan
from tests.builders import NOW
from tests.laws.strategies import policies, snapshots

Law = settings(max_examples=60, deadline=None, derandomize=True)
Found = TypeVar("Found")


class Failing:
    """Runs searches, some of which raise when they have done all their work: the worst moment."""

    def __init__(self, *searches: OptionalSearch) -> None:
        self.searches = searches
        self.asked: set[OptionalSearch] = set()

    def __call__(self, search: OptionalSearch, do: Callable[[], Found]) -> Found:
        self.asked.add(search)
        found = do()
        if search in self.searches:
            raise OverflowError("int too large to convert to float")
        return found


def bound(made: Plan) -> set[str]:
    return {item.pod for item in made.bind}


def accounted(made: Plan) -> list[str]:
    told = [item.pod for item in made.bind] + [item.pod for item in made.nominate]
    told += [item.pod for item in made.unplaced]
    return sorted([*told, *(key for item in made.launch for key in item.pods)])


def pending(snapshot: ClusterSnapshot) -> list[str]:
    return sorted(pod.key for pod in snapshot.cluster.pods if pod.node is None)


@Law
@given(snapshots(), policies(), st.sampled_from(list(OptionalSearch)))
def test_a_search_that_raises_costs_no_bind(snapshot: ClusterSnapshot, policy: Policy, search: OptionalSearch) -> None:
    healthy, runner = plan(snapshot, policy, NOW), Failing(search)
    made = plan(snapshot, policy, NOW, runner=runner)
    assert bound(healthy) <= bound(made)
    assert accounted(made) == pending(snapshot)
    assert {failure.search for failure in made.failures} == {search} & runner.asked
    assert healthy.failures == ()


@Law
@given(snapshots(), policies())
def test_the_plan_without_any_optional_search_still_binds_and_launches(
    snapshot: ClusterSnapshot, policy: Policy
) -> None:
    healthy, made = plan(snapshot, policy, NOW), plan(snapshot, policy, NOW, runner=Failing(*OptionalSearch))
    assert bound(healthy) <= bound(made)
    assert accounted(made) == pending(snapshot)
    assert bool(healthy.launch) <= bool(made.launch)
