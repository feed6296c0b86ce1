"""Money of a window, and what a decision has saved."""

from __future__ import annotations

import msgspec
import pytest

from htas.documents.remedies import meaning
from htas.model.claims import ClaimState, NodeClaim
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.reasons import Kept, ProposalReason, Unplaced
from htas.web.chronicle import Chronicle, Decision
from htas.web.reports.decisions import _saved
from htas.web.reports.money import money_report
from htas.web.seat import Seat
from tests.builders import NOW, make_snapshot

BUY = Decision(1, NOW - 7200, "buy", "c1", "done", "", group="any", nanos_per_hour=100, claim="c1")
EMPTY = Decision(2, NOW - 3700, "empty", "node", "done", "", nanos_per_hour=100, claim="c1")
RELEASE = Decision(2, NOW - 3600, "release", "c1", "done", "", claim="c1")


def again(nanos: int, group: str = "any") -> Decision:
    return Decision(3, NOW - 1800, "buy", "c2", "done", "", group=group, nanos_per_hour=nanos, claim="c2")


@pytest.mark.parametrize(
    ("later", "want"),
    [
        pytest.param([], {1: (360_000, True)}, id="not needed again"),
        pytest.param([again(100)], {1: (180_000, False)}, id="bought again after half an hour"),
        pytest.param([again(50)], {1: (360_000, True)}, id="a cheaper one was bought"),
        pytest.param([again(100, "other")], {1: (360_000, True)}, id="another group bought"),
    ],
)
def test_what_emptying_a_node_has_saved(later: list[Decision], want: dict[int, tuple[int, bool]]) -> None:
    assert _saved([BUY, EMPTY, RELEASE, *later], NOW) == want


def test_a_machine_is_returned_once_however_often_the_cloud_is_asked() -> None:
    claim = NodeClaim("c1", "any", "small", ClaimState.DRAINING, NOW, NOW)
    snapshot = msgspec.structs.replace(make_snapshot(), claims=(claim,))
    asked = (Outcome(Action.RELEASE, "c1", OutcomeStatus.DONE, "Empty"),)
    refused = (Outcome(Action.RELEASE, "c1", OutcomeStatus.FAILED, "tried again soon"),)
    chronicle = Chronicle()
    for outcomes in (refused, asked, asked):
        chronicle.observe(snapshot, Plan(NOW), outcomes)
    assert [each.status for each in chronicle.decisions()] == ["failed", "done"]


def test_the_bars_add_up_to_what_was_spent(saw: Seat) -> None:
    told = money_report(saw, saw.picture(), 6.0)
    assert float(told.spent) == pytest.approx(sum(bucket.spent for bucket in told.buckets), abs=1e-5)
    assert float(told.spent) == 0.1
    assert told.splits[0].parts[-1].key == "(idle)"


@pytest.mark.parametrize("reason", [*Kept, *Unplaced, *filter(lambda reason: reason.empties_nodes, ProposalReason)])
def test_each_reason_is_told_in_a_sentence(reason: str) -> None:
    assert meaning(reason).says.endswith(".")
