"""The ledger allows what the Eviction API would allow."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.budgets import DisruptionBudget
from htas.model.pods import Phase, Pod
from htas.planning.eligibility.budgets import BudgetLedger
from tests.builders import NOW, labels_are, make_pod, running


def serving(name: str) -> Pod:
    return running(make_pod(name, labels={"app": "web"}), "n1")


def unready(name: str) -> Pod:
    return msgspec.structs.replace(serving(name), ready_since=None)


def budget(healthy: int, desired: int, always: bool = False, name: str = "web") -> DisruptionBudget:
    allowed = max(0, healthy - desired)
    return DisruptionBudget("default", name, labels_are(app="web"), allowed, healthy, desired, always)


STARTING = msgspec.structs.replace(unready("starting"), phase=Phase.PENDING)
ENDING = msgspec.structs.replace(serving("ending"), deleted_at=NOW)
CRASHED = [unready("u1"), unready("u2")]


@pytest.mark.parametrize(
    ("budgets", "leaving", "may"),
    [
        pytest.param([budget(2, 2)], [serving("a")], False, id="Ready, and none to spare"),
        pytest.param([budget(3, 2)], [serving("a")], True, id="Ready, and one to spare"),
        pytest.param([budget(2, 2)], CRASHED, True, id="IfHealthyBudget, healthy: all that are not Ready"),
        pytest.param([budget(1, 2)], CRASHED[:1], False, id="IfHealthyBudget, not healthy: none"),
        pytest.param([budget(1, 2, always=True)], CRASHED, True, id="AlwaysAllow: all that are not Ready"),
        pytest.param([budget(2, 2, always=True)], [serving("a")], False, id="AlwaysAllow says nothing of Ready ones"),
        pytest.param([budget(1, 0)], CRASHED, False, id="it asks for none to be Ready: each is counted"),
        pytest.param([budget(1, 0)], CRASHED[:1], True, id="and the first is within what it allows"),
        pytest.param([budget(3, 2)], [serving("a"), *CRASHED], True, id="with the last one to spare it is healthy"),
        pytest.param([budget(0, 2)], [STARTING, ENDING], True, id="not started, or ending already"),
        pytest.param([budget(9, 2), budget(9, 2, name="again")], [serving("a")], False, id="two budgets"),
        pytest.param([budget(9, 2, True), budget(9, 2, True, "again")], CRASHED[:1], False, id="two, not Ready"),
        pytest.param([budget(0, 2), budget(0, 2, name="again")], [STARTING], True, id="two, not started"),
    ],
)
def test_who_may_leave_together(budgets: list[DisruptionBudget], leaving: list[Pod], may: bool) -> None:
    ledger = BudgetLedger(budgets)
    assert (ledger.try_spend(leaving) is None) is may
    if not may:
        assert set(ledger.budgets) == set(budgets)


def test_who_is_overspent_for_leaves_the_budget_unhealthy() -> None:
    """One Ready pod more than it allows goes all the same (preemption as kube-scheduler has it): no other one may."""
    ledger = BudgetLedger([budget(2, 2)])
    ledger.spend(serving("a"))
    assert ledger.refusal(unready("u1")) is not None
    ledger.refund([serving("a")])
    assert ledger.refusal(unready("u1")) is None


def test_a_refund_gives_back_what_was_spent_and_no_more() -> None:
    ledger = BudgetLedger([budget(3, 2)])
    ledger.spend(unready("u1"))
    ledger.spend(serving("a"))
    ledger.refund([unready("u1"), serving("a")])
    assert ledger.budgets == (budget(3, 2),)


def test_what_a_what_if_within_another_spends_for_the_same_pod_is_given_back_as_often() -> None:
    ledger = BudgetLedger([budget(3, 2)])
    ledger.spend(serving("a"))
    ledger.spend(serving("a"))
    ledger.refund([serving("a")])
    assert ledger.left(0) == budget(3, 2).disruptions_allowed - 1
    ledger.refund([serving("a")])
    ledger.refund([serving("a")])
    assert ledger.budgets == (budget(3, 2),)
