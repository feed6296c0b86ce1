"""Notices of what happens in a world: told once when it begins, and again only after an hour."""

from __future__ import annotations

import msgspec
import pytest

from htas.daemon.noticing import Noticing, Spending
from htas.documents.month import looked_at, month_of
from htas.model.billing import Billing
from htas.model.notices import Notice, Occasion
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Cycles, Limits
from htas.model.record import Bill
from htas.sandbox.cloud import Chances
from tests.builders import batch_group, make_policy
from tests.stories.play import Story, job

USD = 10**9
HOUR_S, DAY_S = 3600.0, 86_400.0
NOVEMBER = 1_793_491_200.0  # 2026-11-01T00:00:00Z


def told(story: Story, until_s: float) -> list[Notice]:
    """What a story gives reason to tell."""
    noticing = Noticing("main")
    found: list[Notice] = []
    story.daemon.listeners.append(lambda result: found.extend(noticing.of_cycle(result)))
    story.play(until_s)
    return found


def test_work_that_waits_for_a_limit_is_told_once_an_hour_with_how_often_it_was_seen() -> None:
    policy = make_policy([batch_group()], limits=Limits(max_nodes=0), cycles=Cycles(cleaning_s=60.0))
    found = told(Story(policy, job("a"), job("b")), 1.5 * HOUR_S)
    assert [(each.occasion, each.key) for each in found] == [(Occasion.LIMIT_REACHED, "LimitReached")] * 2
    first, again = found
    assert again.at - first.at >= HOUR_S
    assert again.times > 10
    assert "pods are pending: a limit of the configuration is reached" in again.title
    assert "such as default/" in again.text


def test_a_purchase_that_fails_is_told_by_its_flavour() -> None:
    story = Story(make_policy([batch_group()]), job("a"), chances=Chances(out_of_stock=1.0))
    failed = [each for each in told(story, 300.0) if each.occasion is Occasion.LAUNCH_FAILED]
    assert failed
    assert {each.key for each in failed} <= {each.name for each in story.policy.catalogue.flavours}
    assert all(each.title.startswith("A launch failed: ") and "group batch" in each.title for each in failed)


def test_a_drain_that_was_undone_is_told_with_its_reason() -> None:
    story = Story(make_policy([batch_group()]), job("a")).play(120.0)
    undone = Outcome(Action.UNDO_DRAIN, "node-1", OutcomeStatus.DONE, "a pod came")
    result = story.seen[-1]
    noticing = Noticing("main")
    (first,) = noticing.of_cycle(type(result)(result.snapshot, result.plan, (undone,), 0.0))
    assert (first.occasion, first.key, first.text) == (Occasion.DRAIN_UNDONE, "node-1", "a pod came")
    assert noticing.of_cycle(type(result)(result.snapshot, result.plan, (undone,), 0.0)) == []


def spending(so_far: float, forecast: float) -> Spending:
    """Of a budget of 100 USD."""
    spent, expected, budget = (round(each * USD * 3600) for each in (so_far, forecast, 100))
    return Spending(spent, expected, budget, "USD")


@pytest.mark.parametrize(
    ("so_far", "forecast", "titles"),
    [
        pytest.param(10, 90, [], id="all is well"),
        pytest.param(10, 101, ["2026-11 will cost more than its budget"], id="the forecast passes it"),
        pytest.param(80, 95, ["80 % of the budget of 2026-11 is spent"], id="four fifths are spent"),
        pytest.param(100, 130, ["100 % of the budget of 2026-11 is spent"], id="all of it is spent"),
    ],
)
def test_the_budget_of_a_month(so_far: float, forecast: float, titles: list[str]) -> None:
    noticing = Noticing("main")
    assert [each.title for each in noticing.of_month(NOVEMBER + DAY_S, spending(so_far, forecast))] == titles
    assert noticing.of_month(NOVEMBER + 9 * DAY_S, spending(so_far, forecast)) == []  # once a month
    assert len(noticing.of_month(NOVEMBER + 31 * DAY_S, spending(so_far, forecast))) == len(titles)


def test_a_month_is_what_was_spent_and_the_rest_of_it_at_the_last_days_mean() -> None:
    now = NOVEMBER + 10 * DAY_S
    bill = Bill("c", "batch", "m1", 2 * USD, started_at=NOVEMBER - DAY_S, ended_at=None)
    gone = Bill("d", "batch", "m1", 5 * USD, started_at=NOVEMBER + DAY_S, ended_at=NOVEMBER + 2 * DAY_S)
    month = month_of([bill, gone], Billing(), now)
    assert (month.name, looked_at(now)) == ("2026-11", NOVEMBER)
    assert month.so_far == (2 * 10 + 5) * 24 * 3600 * USD
    assert month.mean == 2 * USD
    assert month.forecast == month.so_far + 2 * USD * 20 * 24 * 3600
    assert looked_at(NOVEMBER + HOUR_S) == NOVEMBER - 23 * HOUR_S


def test_what_is_kept_in_mind_is_bounded() -> None:
    noticing = Noticing("main")
    many = [Notice(Occasion.DRAIN_UNDONE, str(i), "t", "x", NOVEMBER + i) for i in range(3_000)]
    assert len(list(noticing._new(many))) == 3_000
    assert len(noticing._told_at) <= 1_000
    assert msgspec.json.decode(msgspec.json.encode(many[0]), type=Notice) == many[0]
