"""htas top: what is shown, in which order, and how it fits a terminal; and how history tells times."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from htas.cli.main import app
from htas.cli.top import reasons_of, screen, upcoming_of
from htas.cli.watching import DOWN, PAGE_DOWN, UP, Watching
from htas.config.loader import load_configuration
from htas.daemon.wiring.stores import open_store
from htas.documents.forms import Sorted
from htas.documents.nodes import PresentCluster, Reasons, present_of
from htas.documents.words import ago, length
from htas.model.nodes import Node
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.plan_document import instant_text
from htas.model.record import CycleRecord
from htas.model.snapshot import ClusterView
from tests.builders import NOW, make_pod, make_policy, make_snapshot, owned_node, running
from tests.unit.config.files import GOOD

LONG_NAME = "production-batch-0123456789"


def node(name: str, flavour: str, age_s: float, **more: Any) -> Node:
    return owned_node(name, flavour=flavour, cpu="4", memory="8Gi", created_at=NOW - age_s, **more)


VIEW = ClusterView(
    (
        node("a", "m1.large", 60.0),
        node(LONG_NAME, "t3.xsmall", 7500.0),
        node("c", "m1.medium", 86_400.0 * 3, is_ready=False),
        node("d", "unpriced", 5.0),
    ),
    (
        running(make_pod("p1", "3", "1Gi"), "a"),
        running(make_pod("p2", "1", "6Gi"), LONG_NAME),
        running(make_pod("p3", "100m", "128Mi"), "c"),
        make_pod("waiting"),
    ),
)


def present(sort: Sorted) -> PresentCluster:
    return present_of(VIEW, NOW, make_policy(), sort)


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        (Sorted.NAME, ["a", "c", "d", LONG_NAME]),
        (Sorted.CPU, ["a", LONG_NAME, "c", "d"]),
        (Sorted.MEMORY, [LONG_NAME, "a", "c", "d"]),
        (Sorted.AGE, ["c", LONG_NAME, "a", "d"]),
        (Sorted.PRICE, ["a", "c", LONG_NAME, "d"]),
    ],
)
def test_nodes_are_sorted(sort: Sorted, names: list[str]) -> None:
    assert [line.node for line in present(sort).lines] == names


def test_a_node_is_told_by_cpu_and_memory_age_and_price() -> None:
    (line,) = [line for line in present(Sorted.NAME).lines if line.node == "a"]
    assert (line.cpu, line.memory, line.pods, line.age_s, line.price_per_hour) == (0.75, 0.125, 1, 60, "0.2746")
    assert line.created == instant_text(NOW - 60)


def printed(width: int, *, is_terminal: bool = True) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=False, highlight=False)
    with console.capture() as captured:
        console.print(screen(present(Sorted.NAME), width, is_terminal=is_terminal))
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize(
    ("width", "columns", "bar"),
    [
        pytest.param(60, "node flavour cpu memory age price/h", "", id="60 columns"),
        pytest.param(80, "node flavour cpu memory age price/h state", "", id="80 columns"),
        pytest.param(100, "node group flavour cpu memory pods age price/h state", "███░  75%", id="100 columns"),
        pytest.param(
            140, "node group flavour zone cpu memory pods age price/h state", "██████░░  75%", id="140 columns"
        ),
    ],
)
def test_the_table_fits_the_terminal_one_line_a_node(width: int, columns: str, bar: str) -> None:
    lines = printed(width)
    first = next(i for i, line in enumerate(lines) if line.startswith("node "))
    names, *rows = lines[first:]
    assert lines[0].endswith("4 nodes, 1 not ready  1 pod pending")
    assert lines[1] == "0.4315 USD/h, 315.00 a month"
    if width >= 80:
        assert names.split() == columns.split()
        assert [row.split()[0] for row in rows] == ["a", "c", "d", LONG_NAME, "total"]
        assert bar in rows[0]
        assert "26%" in rows[-1]  # 4.1 of 16 cores
        assert "0.4315" in rows[-1]
        assert max(map(len, rows)) <= width


def chosen(*keys: str) -> list[str]:
    """The nodes that are shown after some keys, on a terminal that has room for three."""
    choice = Watching(Sorted.NAME)
    for key in keys:
        choice = choice.pressed(key, present(Sorted.NAME).lines, 3)
    return [line.node for line in choice.chosen(present(Sorted.NAME).lines, 3)]


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        pytest.param("", ["a", "c", "d"], id="no key yet"),
        pytest.param(["s"], ["a", LONG_NAME, "c"], id="sorted by the next: cpu"),
        pytest.param([*"sssss"], ["a", "c", "d"], id="sorted by name again"),
        pytest.param([DOWN], ["c", "d", LONG_NAME], id="down"),
        pytest.param([DOWN] * 9, ["c", "d", LONG_NAME], id="down beyond the end"),
        pytest.param([*[DOWN] * 9, UP], ["a", "c", "d"], id="and up again"),
        pytest.param([DOWN, UP, UP], ["a", "c", "d"], id="up beyond the beginning"),
        pytest.param([PAGE_DOWN], ["c", "d", LONG_NAME], id="a page down"),
        pytest.param([*"/M1.", "\r"], ["a", "c"], id="those of a flavour"),
        pytest.param([*"/not ready"], ["c"], id="those in a state, while it is typed"),
        pytest.param([*"/ax", "\x7f", "\r", "s"], ["a", LONG_NAME, "c"], id="a letter taken back"),
        pytest.param([*"/not", "\x1b"], ["a", "c", "d"], id="the filter cleared"),
        pytest.param([*"/sq", "\r"], [], id="letters of a filter are no commands"),
    ],
)
def test_keys_sort_filter_and_scroll(keys: list[str], names: list[str]) -> None:
    assert chosen(*keys) == names


@pytest.mark.parametrize(
    ("keys", "is_over"), [(["q"], True), (["\x03"], True), ([*"/q"], False), ([*"/q", "\x03"], True)]
)
def test_q_ends_it_unless_it_is_part_of_a_filter(keys: list[str], is_over: bool) -> None:
    choice = Watching(Sorted.NAME)
    for key in keys:
        choice = choice.pressed(key, (), 3)
    assert choice.is_over is is_over


def test_r_hides_the_reasons() -> None:
    status = "pods: {unschedulable: {NoFlavourFits: 2}}\n"
    seen = present_of(VIEW, NOW, make_policy(), Sorted.NAME, reasons=reasons_of(status))
    console = Console(width=80, color_system=None, highlight=False)
    for choice in (Watching(Sorted.NAME), Watching(Sorted.NAME).pressed("r", (), 3)):
        with console.capture() as captured:
            console.print(screen(seen, 80, is_terminal=True, has_reasons=choice.has_reasons))
        assert ("NoFlavourFits" in captured.get()) is choice.has_reasons


def test_when_each_kind_of_cycle_is_due_stands_under_the_head_line() -> None:
    status = "time: x\nnext:\n  scheduling: '2026-01-01T00:00:12Z'\n  cleaning: '2026-01-01T00:05:00Z'\n  autoscaling: '2025-12-31T23:59:59Z'\n"
    at = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    told = screen(present_of(VIEW, at, make_policy(), Sorted.NAME, upcoming_of(status)), 100, is_terminal=True)
    console = Console(width=100, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(told)
    assert (
        captured.get().splitlines()[2].rstrip() == "next by period: autoscaling now, scheduling in 12s, cleaning in 5m"
    )


def test_why_nodes_are_kept_and_pods_are_pending_stands_above_the_table() -> None:
    status = "pods: {unschedulable: {NoFlavourFits: 2}}\nkept: {NotUnderutilized: 1, BlockedByPod: 3}\n"
    told = screen(present_of(VIEW, NOW, make_policy(), Sorted.NAME, reasons=reasons_of(status)), 80, is_terminal=True)
    console = Console(width=80, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(told)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    assert lines[2:4] == ["nodes kept: 3 BlockedByPod, 1 NotUnderutilized", "pods pending: 2 NoFlavourFits"]


@pytest.mark.parametrize("status", ["", "kept: 3", "kept: [x]\npods: 1", "kept: {x: y}", "a: &a [*a]"])
def test_a_status_without_reasons_has_none(status: str) -> None:
    assert reasons_of(status) == Reasons()


@pytest.mark.parametrize(
    "status",
    [
        pytest.param("", id="nothing-published"),
        pytest.param("time: 2026-01-01T00:00:00Z\n", id="by-an-older-version"),
        pytest.param("next: soon\n", id="no-times"),
        pytest.param("next: {sleeping: '2026-01-01T00:00:12Z'}\n", id="no-stage-of-ours"),
        pytest.param("next: {scheduling: 12}\n", id="no-instant"),
        pytest.param("{", id="no-document"),
    ],
)
def test_a_status_without_times_tells_none(status: str) -> None:
    assert upcoming_of(status) == {}


def test_nothing_but_text_goes_into_a_pipe() -> None:
    assert "█" not in "".join(printed(1000, is_terminal=False))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (60, "1m"), (200, "3m20s"), (600, "10m"), (7500, "2h5m"), (36_060, "10h"), (90_000, "1d1h"), (900_000, "10d")],
)  # fmt: skip
def test_lengths_of_time(seconds: float, text: str) -> None:
    assert length(seconds) == text


def test_instants() -> None:
    assert instant_text(0.0) == "1970-01-01T00:00:00Z"
    assert ago(100.0, 300.0) == "3m20s ago"
    assert ago(300.0, 100.0) == "1970-01-01T00:05:00Z"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A sandbox's store with one cycle: two binds that went well, one that failed, and a launch."""
    (file := tmp_path / "htas.yaml").write_text(GOOD)
    done, failed = OutcomeStatus.DONE, OutcomeStatus.FAILED
    outcomes = (
        Outcome(Action.BIND, "shop/one", done, "n1"),
        Outcome(Action.BIND, "shop/two", done, "n1"),
        Outcome(Action.BIND, "shop/three", failed, "node n1 is gone"),
        Outcome(Action.LAUNCH, "test-any-1", done, f"a reason of {'many ' * 60}words"),
    )
    store = open_store(load_configuration(file))
    made = Plan(taken_at=NOW)
    store.add_cycle(CycleRecord(id=0, at=NOW, stages=(), snapshot=make_snapshot(), plan=made, outcomes=outcomes))
    store.close()
    return file


def history(config: Path, *words: str) -> list[str]:
    said = CliRunner().invoke(app, ["history", "--config", str(config), *words])
    assert said.exit_code == 0, said.output
    return said.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "subjects", "last"),
    [
        pytest.param((), ["shop/three", "test-any-1"], "2 binds are left out; --binds shows them", id="decisions, and binds that failed"),
        pytest.param(("--binds",), ["shop/one", "shop/two", "shop/three", "test-any-1"], None, id="all"),
        pytest.param(("--verb", "bind"), ["shop/one", "shop/two", "shop/three"], None, id="binds are asked for by name"),
    ],
)  # fmt: skip
def test_history_tells_decisions_and_binds_on_request(
    config: Path, words: tuple[str, ...], subjects: list[str], last: str | None
) -> None:
    _, *rows = history(config, *words)
    if last is not None:
        assert rows.pop() == last
    assert [row.split()[3] for row in rows] == subjects


def test_off_a_terminal_an_entry_is_one_line_with_its_instant(config: Path) -> None:
    (row,) = [row for row in history(config) if " launch " in row]
    assert re.search(rf"\b{re.escape(instant_text(NOW))}\b.*{'many ' * 60}words$", row)


def test_an_export_has_every_bind(config: Path) -> None:
    assert sum(",bind," in line for line in history(config, "-o", "csv")) == 3


def test_the_present_is_exported_in_the_order_asked_for(config: Path) -> None:
    said = CliRunner().invoke(app, ["top", "--config", str(config), "--sort", "price", "-o", "csv"])
    assert (said.exit_code, said.stdout.splitlines()) == (
        0,
        ["node,group,flavour,zone,cpu,memory,pods,created,age_s,price_per_hour,state"],
    )
    refused = CliRunner().invoke(app, ["top", "--config", str(config), "--watch", "-o", "csv"])
    assert (refused.exit_code, "leave out --watch" in refused.stderr) == (2, True)
