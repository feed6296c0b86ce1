"""The demo's day behind the pages: it waits for its reader where it asks."""

from __future__ import annotations

from htas.cli.ui import ASKING_H
from htas.cli.ui_day import Played
from htas.model.approvals import ApprovalState
from htas.model.modes import Approval


def test_the_demo_that_asks_stands_still_while_it_is_read() -> None:
    day = Played(1, ASKING_H, 0.0, Approval())
    day.play()
    assert day.stands_still()
    assert day.seat.approvals is not None
    for asked in day.seat.approvals.asked():
        if asked.state is ApprovalState.WAITING:
            day.seat.approvals.say((asked.question.id,), "a reader", is_approved=True, currency="USD")
    assert not day.stands_still(), "what was approved is seen to happen"
