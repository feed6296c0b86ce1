"""How the demo looks: a live view for terminals from 80 columns up, plain lines elsewhere, and the summary."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from htas.adapters.kubernetes.dump import COMMAND
from htas.cli.bars import bar, column
from htas.cli.demo_state import DemoState, NodeLine
from htas.documents.alternatives import Alternative, compared
from htas.documents.words import counted
from htas.model.money import NANOS, bill_amount

STYLE = {"ready": "green", "coming": "yellow", "draining": "magenta"}
NEXT = f"""
Next, for a cluster of yours, changing nothing:
  {COMMAND} > dump.json
  htas plan --config config/htas.yaml --from dump.json"""
NARROW = 110
"""Below so many columns the panels stand under one another."""


def demo_view(state: DemoState, width: int) -> RenderableType:
    inner = width - 4 if width < NARROW else width // 2 - 4
    left = Group(_nodes(state, inner), _queue(state))
    right = Group(_money(state), _events(state, inner))
    body: RenderableType
    if width < NARROW:
        body = Group(left, right)
    else:
        grid = Table.grid(expand=True)
        grid.add_column(ratio=1)
        grid.add_column(ratio=1)
        grid.add_row(left, right)
        body = grid
    return Group(_head(state), body)


def _clock(state: DemoState) -> str:
    passed = int(state.now - state.start)
    days, rest = divmod(passed, 86_400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}"
    return f"day {days + 1} {text}" if state.length_s > 86_400 else text


def _head(state: DemoState) -> RenderableType:
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_column(no_wrap=True)
    grid.add_row(
        Text(f"HTAS  {state.title}", style="bold"),
        ProgressBar(total=1.0, completed=state.progress),
        Text(_clock(state), style="bold cyan"),
    )
    return grid


def _nodes(state: DemoState, width: int) -> RenderableType:
    """Each group by flavour, with one column per node as high as the node is full; long rows are folded."""
    lines = state.nodes()
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column(overflow="fold", width=max(16, width - 18))
    for group in state.policy.groups:
        mine = [line for line in lines if line.group == group.name]
        table.add_row(Text(group.name, style="bold"), str(len(mine)), _mean(mine))
        flavours = Counter(line.flavour for line in mine)
        for flavour, count in sorted(flavours.items()):
            columns = Text()
            for line in (line for line in mine if line.flavour == flavour):
                columns.append(column(max(line.share, 0.07)), style=STYLE[line.state])
            table.add_row(f" {flavour}", str(count), columns)
    legend = Text("ready ", style="green")
    legend.append("starting ", style="yellow")
    legend.append("draining", style="magenta")
    return Panel(Group(table, legend), title="nodes", title_align="left", border_style="dim")


def _mean(lines: list[NodeLine]) -> str:
    ready = [line.share for line in lines if line.state == "ready"]
    mean = sum(ready) / len(ready) if ready else 0.0
    return f"{bar(mean, 10)} {mean:4.0%}" if ready else "no nodes"


def _queue(state: DemoState) -> RenderableType:
    waiting = state.waiting
    kinds = Counter(pod.kind.value for pod in waiting)
    reasons = Counter(item.reason.value for item in state.result.plan.unplaced) if state.result is not None else {}
    ledger = state.world.ledger
    text = Text()
    text.append(f"{counted(len(waiting), 'pod')} pending", style="bold")
    if waiting:
        text.append("  " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())), style="dim")
    for reason, count in sorted(reasons.items()):
        text.append(f"\n  {count} {reason}", style="yellow")
    text.append(f"\n{ledger.finished} of {ledger.arrived} tasks that arrived have ended, {ledger.lost} lost")
    text.append(
        f"\npending {ledger.mean_wait_s():.0f} s (mean), 99th percentile {ledger.wait_percentile_s(0.99):.0f} s"
    )
    return Panel(text, title="queue", title_align="left", border_style="dim")


def _money(state: DemoState) -> RenderableType:
    """Spent so far; what the same work would have cost otherwise is known when it is over."""
    currency = state.policy.catalogue.currency
    spent = Text(f"{bill_amount(state.spent_nano_seconds()):.2f} {currency}", style="bold green")
    cost = state.result.plan.cost if state.result is not None else None
    now = ""
    if cost is not None:
        now = f"now {cost.after_nanos / NANOS:.2f} {currency}/h"
    return Panel(Group(spent, Text(now, style="dim")), title="money spent", title_align="left", border_style="dim")


def _events(state: DemoState, width: int) -> RenderableType:
    text = Text(no_wrap=True, overflow="ellipsis")
    for at, verb, what in list(state.events)[-8:]:
        when = datetime.fromtimestamp(at, UTC).strftime("%H:%M")
        text.append(f"{when} ", style="dim")
        text.append(f"{verb:<8}", style="green" if verb == "launch" else "magenta")
        text.append(f"{what}\n")
    return Panel(text, title="launched and deleted", title_align="left", border_style="dim")


def plain_line(state: DemoState) -> str:
    """One line for a log."""
    ledger = state.world.ledger
    nodes = Counter(line.state for line in state.nodes())
    return (
        f"{_clock(state)}  nodes {nodes['ready']} (+{nodes['coming']} starting)  pending {len(state.waiting)}  "
        f"ended {ledger.finished}/{ledger.arrived}  spent {bill_amount(state.spent_nano_seconds()):.2f} "
        f"{state.policy.catalogue.currency}"
    )


def summary_view(state: DemoState, other: Alternative | str) -> RenderableType:
    """What it came to, how it compares, and where to go next."""
    ledger, currency = state.world.ledger, state.policy.catalogue.currency
    spent = state.spent_nano_seconds()
    table = Table.grid(padding=(0, 2))
    table.add_row("tasks", f"{ledger.finished} of {ledger.arrived} ended, {ledger.lost} lost, {_unfit(state)}")
    table.add_row(
        "pending", f"mean {ledger.mean_wait_s():.1f} s, 99th percentile {ledger.wait_percentile_s(0.99):.1f} s"
    )
    launched = f"{len(ledger.rentals)} launched, {ledger.running_machines()} still run, {state.peak_nodes} at most"
    table.add_row("machines", f"{launched}, {ledger.machine_hours(state.now):.1f} machine-hours")
    moved = f"{ledger.migrations} by checkpoint, {ledger.evictions} evicted, {ledger.work_lost_s:.0f} s of work lost"
    if ledger.migrations:
        moved += f", {ledger.work_repeated_s:.0f} s repeated"
    table.add_row("moved", moved)
    mean_ms, most_ms = 1000 * state.planning_s / max(1, state.cycles), 1000 * state.longest_plan_s
    table.add_row("planning", f"{state.cycles} plans, {mean_ms:.1f} ms on average, {most_ms:.0f} ms at most")
    table.add_row("HTAS", f"{bill_amount(spent):.2f} {currency}", style="bold green")
    line = other if isinstance(other, str) else compared(other, spent, currency)
    compared_with = [Text(line, style="bold")] if line else []
    if isinstance(other, Alternative):
        compared_with += [Text(f"  {assumed}", style="dim") for assumed in other.assumes]
    return Group(Text("\nSummary", style="bold"), table, *compared_with, Text(NEXT, style="dim"))


def _unfit(state: DemoState) -> str:
    ledger = state.world.ledger
    left = ledger.arrived - ledger.finished - ledger.lost
    fit = f", {len(state.never_fits)} fit no flavour" if state.never_fits else ""
    return f"{left} under way at the end{fit}"
