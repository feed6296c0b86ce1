"""Pods that many others keep away: what they cost to plan, and that the plan is what asking term by term gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.planning.cluster import counts as tallies
from htas.planning.cluster.feasibility import inter_pod_affinity
from htas.planning.planner import plan
from tests.builders import NOW, make_node, make_pod, make_policy, make_snapshot, opened, running

ALL_ONE_BY_ONE = 1_000_000


def from_all_but(*apps: str, key: str = HOSTNAME_LABEL) -> PodAffinityTerm:
    return PodAffinityTerm(key, LabelSelector((Requirement("app", Operator.NOT_IN, apps),)))


def hermit(i: int, **fields: Any) -> Pod:
    """A pod that shares its node with no app but its own."""
    apart = Constraints(anti_affinity=(from_all_but(f"a{i}"),))
    return make_pod(f"p{i:03d}", labels={"app": f"a{i}"}, constraints=apart, **fields)


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[None]:
    """Grows by one with each call of a function."""
    calls: list[None] = []
    real: Callable[..., Any] = getattr(module, name)

    def noted(*args: Any) -> Any:
        calls.append(None)
        return real(*args)

    monkeypatch.setattr(module, name, noted)
    return calls


@pytest.mark.parametrize("count", [20, 40, 80])
def test_pods_that_all_keep_away_from_each_other_are_asked_about_once_a_machine(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Each machine bought is tried for all that wait: half of count². Term by term it was count times as much."""
    looks = counted(monkeypatch, inter_pod_affinity, "_shares_domain")
    made = plan(make_snapshot([], [hermit(i) for i in range(count)]), make_policy(), NOW)
    assert [len(item.pods) for item in made.launch] == [1] * count
    assert len(looks) <= count**2


def test_pods_that_differ_in_whom_they_keep_away_are_one_kind_to_nodes() -> None:
    pods = [hermit(0), hermit(1), make_pod("sociable"), make_pod("choosy", constraints=Constraints((("disk", "ssd"),)))]
    book = opened([make_node("n")], pods).book
    first, *others = (book.class_of(each).static_key for each in pods)
    assert [first == other for other in others] == [True, True, False]


APPS = ("a0", "a1", "a2")
terms = st.builds(
    lambda apps, key: from_all_but(*sorted(apps), key=key),
    st.sets(st.sampled_from(APPS), min_size=1),
    st.sampled_from([HOSTNAME_LABEL, ZONE_LABEL]),
)
wishes = st.tuples(st.sampled_from(APPS), st.lists(terms, max_size=3), st.sampled_from([None, "n0", "n1", "n2"]))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(wishes, min_size=1, max_size=10))
def test_summed_up_or_one_by_one_the_plan_is_the_same(
    asked: list[tuple[str, list[PodAffinityTerm], str | None]],
) -> None:
    nodes = [make_node(f"n{i}", "1", "1Gi", labels={ZONE_LABEL: f"z{i // 2}"}) for i in range(3)]
    pods = [_wishing(i, *each) for i, each in enumerate(asked)]

    def made(few: int) -> Plan:
        with patch.object(tallies, "FEW_REPULSIONS", few):
            return plan(make_snapshot(nodes, pods), make_policy(), NOW)

    assert made(0) == made(ALL_ONE_BY_ONE)


def _wishing(i: int, app: str, away: list[PodAffinityTerm], node: str | None) -> Pod:
    waiting = make_pod(f"p{i}", labels={"app": app}, constraints=Constraints(anti_affinity=tuple(away)))
    return waiting if node is None else running(waiting, node)
