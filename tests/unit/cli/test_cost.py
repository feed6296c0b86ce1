"""Whose the money was, while it is still being spent."""

from __future__ import annotations

import math
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from htas.adapters.sqlite.store import SqliteStore
from htas.cli.cost import cost_view
from htas.documents.books import Books, stays_within
from htas.documents.costs import cost_report
from htas.documents.forms import CostBy
from htas.model.nodes import CLAIM_LABEL
from htas.model.plan import Plan
from htas.model.record import Bill, CycleRecord
from htas.planning.namespaces.pins import Pinned
from htas.profiler.accounts import ALWAYS, Window
from htas.profiler.stays import stay_of
from tests.builders import NOW, make_flavour, make_job, make_node, make_policy, make_snapshot, running

NODE = make_node("a", labels={CLAIM_LABEL: "a"})
JOB, OTHER = running(make_job("j", 100), "a", 30), running(make_job("other", 100), "a", 10)


@pytest.mark.parametrize(
    ("window", "ended", "want"),
    [
        pytest.param(ALWAYS, None, [("j", -30, 500), ("other", -10, 500)], id="what the newest cycle saw goes on until now"),
        pytest.param(ALWAYS, 40.0, [("j", -30, 40), ("other", -10, 500)], id="one is known to be over"),
        pytest.param(Window(NOW + 100, math.inf), 40.0, [("other", 100, 500)], id="it was over before the window"),
        pytest.param(Window(NOW - 20, NOW + 10), 40.0, [("j", -20, 10), ("other", -10, 10)], id="cut to the window at both ends"),
        pytest.param(Window(0.0, NOW - 20), None, [("j", -30, -20)], id="one came after the window"),
    ],
)  # fmt: skip
def test_stays_within_a_window(window: Window, ended: float | None, want: list[tuple[str, float, float]]) -> None:
    store = SqliteStore(":memory:")
    seen = make_snapshot([NODE], [JOB, OTHER])
    store.add_cycle(CycleRecord(0, NOW, (), seen, Plan(NOW)))
    if ended is not None:
        store.add_runs([msgspec.structs.replace(stay_of(JOB, NODE, NOW), ended_at=NOW + ended)])
    found = sorted(stays_within(store, window, NOW + 500, seen), key=lambda run: run.pod)
    assert [(run.pod, run.came_at - NOW, run.ended_at - NOW) for run in found] == want
    store.close()


def books(pinned: dict[str, Pinned]) -> Books:
    flavour = make_flavour("big", "8", "32Gi", "0.40")
    bill = Bill("c", "any", "big", flavour.nanos_per_hour, NOW - 3600)
    run = msgspec.structs.replace(stay_of(JOB, NODE, NOW), came_at=NOW - 3600, ended_at=NOW, claim="c")
    return Books(make_policy(flavours=[flavour]), [bill], lambda: [run], NOW, ALWAYS, pinned)


def told(pinned: dict[str, Pinned], by: CostBy) -> list[str]:
    console = Console(width=100, record=True, file=StringIO())
    console.print(cost_view(cost_report(books(pinned), by, None)))
    return console.export_text().splitlines()


def test_who_pins_pods_and_for_how_much_is_told() -> None:
    pinned = {
        "ml": Pinned(3, 250_000_000, NOW - 7200, 2),
        "shop": Pinned(1, 0, NOW - 60, 0),
        "web": Pinned(0, 0, NOW, 4),
    }
    lines = told(pinned, CostBy.NAMESPACE)
    rows = [line.split() for line in lines[-3:]]
    assert rows == [
        ["ml", "3", "0.25", "2h", "2"],
        [
            "shop",
            "1",
            "0.00",
            "60s",
        ],
        ["web", "0", "0.00", "4"],
    ]
    (short,) = told(pinned, CostBy.FLAVOUR)[-1:]
    assert short == "4 pods of 3 namespaces are pinned, for 0.25 USD/h: see --by namespace"
    assert not [line for line in told({}, CostBy.NAMESPACE) if "pinned" in line]


def test_what_is_no_more_than_believed_is_told_beside_the_sums() -> None:
    sure = books({})
    guess = Bill("g", "any", "special", 100, NOW - 60, NOW, is_price_unknown=True)
    ended = Bill("e", "any", "big", 100, NOW - 60, NOW, is_provisional=True)
    report = cost_report(msgspec.structs.replace(sure, bills=[*sure.bills, guess, ended]), CostBy.FLAVOUR)
    assert report.doubts == (
        "1 bill of special: at the price of the launched flavour, or 0 where that is unknown;"
        " the price file lacks special",
        "the cloud's usage has not confirmed the end of 1 bill yet",
    )
    assert cost_report(sure, CostBy.FLAVOUR).doubts == ()
