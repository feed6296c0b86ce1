"""Money of a window, and what a decision has saved."""

from __future__ import annotations

import msgspec
import pytest

from htas.documents.books import books_of
from htas.documents.costs import cost_report
from htas.documents.forms import CostBy
from htas.documents.recommendation import recommendation_report
from htas.documents.remedies import meaning
from htas.model.claims import ClaimState, NodeClaim
from htas.model.money import bill_amount
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.reasons import Kept, ProposalReason, Unplaced
from htas.model.savings import Course, Savings
from htas.ports import GivenError
from htas.profiler.accounts import ALWAYS
from htas.profiler.shares import IDLE
from htas.web.chronicle import Chronicle, Decision
from htas.web.reports.decisions import _saved, decision_page
from htas.web.reports.money import money_report
from htas.web.seat import RECOMMEND, Seat, Seen
from tests.builders import NOW, make_snapshot
from tests.unit.web.conftest import POLICY, SNAPSHOT

BUY = Decision(1, NOW - 7200, "launch", "c1", "done", "", group="any", nanos_per_hour=100, claim="c1")
EMPTY = Decision(2, NOW - 3700, "drain", "node", "done", "", nanos_per_hour=100, claim="c1")
RELEASE = Decision(2, NOW - 3600, "delete", "c1", "done", "", claim="c1")


def again(nanos: int, group: str = "any") -> Decision:
    return Decision(3, NOW - 1800, "launch", "c2", "done", "", group=group, nanos_per_hour=nanos, claim="c2")


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
    asked = (Outcome(Action.DELETE, "c1", OutcomeStatus.DONE, "Empty"),)
    refused = (Outcome(Action.DELETE, "c1", OutcomeStatus.FAILED, "tried again soon"),)
    chronicle = Chronicle()
    for outcomes in (refused, asked, asked):
        chronicle.observe(snapshot, Plan(NOW), outcomes)
    assert [each.status for each in chronicle.decisions()] == ["failed", "done"]


@pytest.mark.parametrize("hours", [6, 24, 168, 720])
@pytest.mark.parametrize("later_s", [0.0, 20.5, 1000.25], ids=["at once", "within a billed minute", "a while later"])
def test_the_bars_add_up_to_what_was_spent(hours: int, later_s: float, saw: Seat) -> None:
    """What a minute is billed ahead was in the bars alone."""
    saw.present = lambda: NOW + later_s
    told = money_report(saw, saw.picture(), hours)
    assert told.spent == f"{sum(bucket.spent for bucket in told.buckets):.6f}"
    assert told.splits[0].parts[-1].key == "(idle)"


def test_money_and_costs_tell_one_sum(saw: Seat) -> None:
    """One cut the billed minute at its present second, the other told it whole."""
    saw.present = lambda: NOW + 20.0
    told = money_report(saw, saw.picture(), 24.0)
    whole = books_of(saw.store(), POLICY, ALWAYS, saw.present())
    parts = {part.key: part.amount for part in cost_report(whole, CostBy.NAMESPACE).parts}
    assert (told.spent, told.idle) == (str(bill_amount(whole.total)), parts[IDLE])
    assert told.month_so_far == told.spent


def test_the_period_before_is_told_where_the_bills_go_back_so_far(saw: Seat) -> None:
    """The machine came an hour ago: half an hour has one before it, and a day has not."""
    half = money_report(saw, saw.picture(), 24.0, NOW - 1800)
    assert (half.spent, half.before) == ("0.050000", "0.050000")
    assert money_report(saw, saw.picture(), 24.0).before == ""


def test_a_range_is_as_long_as_it_is_said_and_the_month_is_of_now(saw: Seat) -> None:
    quarter = money_report(saw, saw.picture(), 24.0, NOW - 1800, NOW - 900)
    whole = money_report(saw, saw.picture(), 24.0)
    assert (quarter.since, quarter.until, quarter.spent) == (NOW - 1800, NOW - 900, "0.025000")
    assert f"{sum(bucket.spent for bucket in quarter.buckets):.6f}" == quarter.spent
    assert (quarter.price_per_hour, quarter.month_so_far) == (whole.price_per_hour, whole.spent)
    with pytest.raises(GivenError, match="before"):
        money_report(saw, saw.picture(), 24.0, NOW + 60)


def test_decisions_of_a_time(saw: Seat) -> None:
    for each in (BUY, EMPTY, RELEASE):
        saw.chronicle._decisions.append(each)
    saw.chronicle.has_looked_back = True
    told = decision_page(saw, saw.picture(), since=NOW - 3700, until=NOW - 3600)
    assert ([item.kind for item in told.items], told.counts) == (["drain"], {"drain": 1})


def test_what_would_have_been_saved_is_one_sum_on_both_pages(seat: Seat) -> None:
    """Decisions told of the nodes emptied on the way, Recommended of what was really spent, and both said saved."""
    seat.mode = RECOMMEND
    savings = Savings(NOW - 7200, NOW, real=Course(9 * 10**12, 3 * 10**8), with_htas=Course(2 * 10**12, 10**8))
    seat.observe(Seen(SNAPSHOT, Plan(NOW), savings=savings))
    picture = seat.picture()
    decided = decision_page(seat, picture)
    told = recommendation_report(picture.savings, picture.plan, ())
    assert (decided.is_advice, decided.saved, decided.saving_per_hour) == (True, told.saved, "0.20")


@pytest.mark.parametrize("reason", [*Kept, *Unplaced, *ProposalReason])
def test_each_reason_is_told_in_a_sentence(reason: str) -> None:
    assert meaning(reason).says.endswith(".")
