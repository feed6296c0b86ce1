"""Which node: kube-scheduler's six rules, one after another."""

from __future__ import annotations

import pytest

from htas.model.pods import Pod
from htas.planning.disrupt.preemption.candidates import PreemptionCandidate, best, by_importance
from tests.builders import NOW, make_pod
from tests.unit.planning.preemption.world import HIGH, LOW, MIDDLE, budget, chosen, ending, incoming, machine, on

TWO = [machine("a"), machine("b")]

RULES = [
    pytest.param(
        [on("a", "a1", labels={"app": "foo"}), on("b", "b1", priority=MIDDLE)],
        [budget(0)],
        ("b", {"b1"}),
        id="1: fewer broken budgets before lower priority",
    ),
    pytest.param(
        [on("a", "a1", priority=MIDDLE), on("b", "b1", "2"), on("b", "b2", "2")],
        [],
        ("b", {"b1", "b2"}),
        id="2: the lowest of the highest priorities, though more pods leave",
    ),
    pytest.param(
        [
            on("a", "a1", "2", MIDDLE),
            on("a", "a2", "2", MIDDLE),
            on("b", "b1", "2", MIDDLE),
            on("b", "b2", "2", LOW),
        ],
        [],
        ("b", {"b1", "b2"}),
        id="3: the lowest sum of priorities",
    ),
    pytest.param(
        [on("a", "a1", "2", -5), on("a", "a2", "2", -5), on("b", "b1", "4", -5)],
        [],
        ("b", {"b1"}),
        id="3: with negative priorities two victims still weigh more than one",
    ),
    pytest.param(
        [on("a", "a1", "2", LOW), on("a", "a2", "2", LOW), on("b", "b1", "4", LOW)],
        [],
        ("b", {"b1"}),
        id="4: the fewest victims",
    ),
    pytest.param(
        [on("a", "a1", since_s=100), on("b", "b1", since_s=10)],
        [],
        ("b", {"b1"}),
        id="5: the victim that has run least",
    ),
    pytest.param(
        [
            on("a", "a1", "2", MIDDLE, since_s=10),
            on("a", "a2", "2", LOW, since_s=500),
            on("b", "b1", "2", MIDDLE, since_s=20),
            on("b", "b2", "2", LOW, since_s=5),
        ],
        [],
        ("a", {"a1", "a2"}),
        id="5: the start of lesser victims does not count",
    ),
    pytest.param([on("a", "a1"), on("b", "b1")], [], ("a", {"a1"}), id="6: the first of equals"),
    pytest.param(
        [on("a", "a1"), ending(on("b", "b1", priority=HIGH))],
        [],
        ("b", set()),
        id="nobody leaves where waiting is enough",
    ),
]


@pytest.mark.parametrize(("pods", "budgets", "expected"), RULES)
def test_the_rules_in_their_order(pods: list[Pod], budgets: list, expected: object) -> None:
    assert chosen(incoming("4"), TWO, pods, budgets) == expected


def test_no_candidate_is_no_choice() -> None:
    assert best([], NOW) is None


def test_priorities_beyond_32_bits_are_compared_exactly() -> None:
    big = [make_pod(f"p{i}", priority=2**60 + i) for i in range(2)]
    candidates = [PreemptionCandidate(0, "a", (big[1],)), PreemptionCandidate(1, "b", (big[0],))]
    assert best(candidates, NOW) is candidates[1]


def test_a_pod_that_has_not_started_is_less_important_than_one_that_runs() -> None:
    waiting, runs = make_pod("a"), on("n", "b")
    assert sorted([waiting, runs], key=lambda pod: by_importance(pod, NOW)) == [runs, waiting]


def test_it_looks_past_the_shortlist_for_a_node_that_breaks_no_budget() -> None:
    nodes = [machine(f"n{i:03d}") for i in range(130)]
    pods = [on(node.name, f"p-{node.name}", labels={"app": "foo"}) for node in nodes[:-1]]
    pods.append(on("n129", "free", priority=MIDDLE))
    assert chosen(incoming("4"), nodes, pods, [budget(0)]) == ("n129", {"free"})
