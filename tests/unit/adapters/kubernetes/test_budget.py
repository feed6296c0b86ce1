"""Pods that demand more than anybody writes wait with the reason; what runs keeps its terms."""

from __future__ import annotations

import pytest

from htas.adapters.kubernetes.budget import MOST, within_budget
from htas.model.constraints import (
    Constraints,
    HostPort,
    NodeSelectorTerm,
    PodAffinityTerm,
    SpreadConstraint,
    Toleration,
)
from htas.model.selectors import LabelSelector, Operator, Requirement


def term(*values: str) -> PodAffinityTerm:
    return PodAffinityTerm("zone", LabelSelector((Requirement("app", Operator.IN, values),)))


def requirement(*values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement("a", Operator.IN, values),))


def demands(what: str, count: int) -> Constraints:
    """Constraints with so many of one thing."""
    match what:
        case "host ports":
            return Constraints(host_ports=tuple(HostPort(port) for port in range(1, count + 1)))
        case "tolerations":
            return Constraints(tolerations=tuple(Toleration(f"k{i}") for i in range(count)))
        case "topology spread constraints":
            return Constraints(spread=tuple(SpreadConstraint(f"k{i}", 1, None) for i in range(count)))
        case "terms of pod affinity and anti-affinity":
            near, apart = (tuple(term(f"v{i}") for i in each) for each in (range(count // 2), range(count // 2, count)))
            return Constraints(affinity=near, anti_affinity=apart)
        case "requirements of node affinity":
            return Constraints(node_affinity=tuple(requirement(f"v{i}") for i in range(count)))
        case "values in affinity and selectors":
            return Constraints(node_affinity=(requirement(*(f"v{i}" for i in range(count - 1))),))
        case _:
            return Constraints(claims=tuple(f"c{i}" for i in range(count)))


@pytest.mark.parametrize("what", MOST)
def test_up_to_the_bound_a_pod_is_as_it_was_and_beyond_it_waits(what: str) -> None:
    most = demands(what, MOST[what])
    assert within_budget(most, is_placed=False) is most
    beyond = within_budget(demands(what, MOST[what] + 1), is_placed=False)
    assert beyond == Constraints(unsupported=(f"{MOST[what] + 1:,} {what}, more than {MOST[what]:,}",))


@pytest.mark.parametrize("what", MOST)
def test_what_runs_keeps_its_terms(what: str) -> None:
    running = demands(what, MOST[what] + 1)
    assert within_budget(running, is_placed=True) is running


def test_of_many_things_that_are_not_understood_three_are_told() -> None:
    odd = Constraints(unsupported=tuple(f"thing {i}" for i in range(1000)))
    told = within_budget(odd, is_placed=False).unsupported
    assert told == ("thing 0", "thing 1", "thing 2", "997 things more that are not understood")
