"""A simulation for people: what it costs, what stands in the way of less, and which flavours to offer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from htas.cli.bars import bar
from htas.cli.simulate import HOURS_A_MONTH, a_month
from htas.model.money import NANOS, price_text
from htas.model.plan_document import instant_text
from htas.model.pods import MAY_MIGRATE
from htas.planning.what_if.answer import Answer, HeldNode

ROWS = 12
"""Rows of a table before the rest is counted only."""
WIDE = 110
"""From so many columns on there is room for bars."""


def simulation_view(answer: Answer, width: int) -> RenderableType:
    parts: list[RenderableType] = [
        _headline(answer),
        _stages(answer, is_wide=width >= WIDE),
        _machines(answer),
        *_blocking(answer),
        _worths(answer),
        _choices(answer),
        _notes(answer),
    ]
    return Group(*parts)


def _headline(answer: Answer) -> Text:
    saved = answer.now.nanos_per_hour - answer.consolidated.nanos_per_hour
    text = Text()
    text.append(f"{answer.now.nodes} nodes, {answer.pods} pods, {instant_text(answer.taken_at)}", style="bold")
    if saved > 0:
        share = _share(saved, answer.now.nanos_per_hour)
        text.append("\nHTAS would save ")
        text.append(f"{_hourly(saved)} {answer.currency}/h", style="bold green")
        text.append(f", {_cents(a_month(saved))} a month, {share} of what these nodes cost")
    elif (more := answer.now.nanos_per_hour - answer.free.nanos_per_hour) > 0 and answer.held:
        text.append("\nHTAS would save nothing: ")
        text.append(
            f"{_nodes(len(answer.held))} must stay. Were nothing held, {_hourly(more)} {answer.currency}/h less"
        )
    else:
        text.append("\nHTAS finds nothing to save: it knows no cheaper way to hold this work")
    return text


def _titled(title: str, *columns: str, right: Iterable[str] = (), names: Iterable[str] = ()) -> Table:
    """A table with a title; the columns in `right` are figures, those in `names` are not folded."""
    made = Table(
        title=f"\n{title}", title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False
    )
    for column in columns:
        is_figure = column in right
        made.add_column(
            column,
            justify="right" if is_figure else "left",
            no_wrap=is_figure or column in names,
            overflow="fold",
        )
    return made


def _stages(answer: Answer, *, is_wide: bool) -> Table:
    figures = ("nodes", "moved", "per hour", "per month", "saves/month", "less by")
    columns = ("", *figures, " ") if is_wide else ("", *figures)
    table = _titled(f"What it costs, in {answer.currency}", *columns, right=figures, names=("",))
    now = answer.now.nanos_per_hour
    for name, mix in (
        ("now", answer.now),
        ("after packing", answer.packed),
        ("after consolidation", answer.consolidated),
    ):
        saved = now - mix.nanos_per_hour
        row = [name, str(mix.nodes), str(mix.moves) if mix is not answer.now else "", *_priced(mix.nanos_per_hour)]
        row += [_cents(a_month(saved)), _share(saved, now)] if mix is not answer.now else ["", ""]
        table.add_row(*row, *_bars(mix.nanos_per_hour, now, is_wide), style="bold" if "cons" in name else "")
    least = ["lower bound", "", "", *_priced(answer.bound_nanos), "", _share(now - answer.bound_nanos, now)]
    table.add_row(*least, *_bars(answer.bound_nanos, now, is_wide), style="dim")
    if answer.held:
        saved, free = now - answer.free.nanos_per_hour, answer.free
        row = ["were nothing held", str(free.nodes), str(free.moves), *_priced(free.nanos_per_hour)]
        row += [_cents(a_month(saved)), _share(saved, now)]
        table.add_row(*row, *_bars(free.nanos_per_hour, now, is_wide), style="dim")
    return table


def _priced(nanos: int) -> tuple[str, str]:
    return _hourly(nanos), _cents(a_month(nanos))


def _bars(nanos: int, of: int, is_wide: bool) -> list[str]:
    return [bar(nanos / of if of else 0.0, 24)] if is_wide else []


def _machines(answer: Answer) -> Table:
    stages = (answer.now, answer.packed, answer.consolidated, answer.free)
    figures = ("price/h", "now", "packed", "consolidated", "nothing held")
    table = _titled("Machines", "flavour", *figures, "to do", right=figures, names=("flavour",))
    prices = {worth.name: worth.nanos_per_hour for worth in answer.worths}
    for flavour in sorted({name for mix in stages for name in mix.flavours}, key=lambda name: (prices[name], name)):
        counts = [mix.flavours.get(flavour, 0) for mix in stages]
        table.add_row(
            flavour,
            _hourly(prices[flavour]),
            *(str(n) if n else "·" for n in counts),
            _change(counts[0], counts[2]),
        )
    return table


def _change(before: int, after: int) -> str:
    if after > before:
        return f"buy {after - before}"
    if after < before:
        return f"give back {before - after}"
    return "keep" if after else ""


def _blocking(answer: Answer) -> list[RenderableType]:
    parts: list[RenderableType] = [_rules(answer), _remedies(answer)] if answer.rules else []
    return [*parts, _held(answer)] if answer.held else parts


def _rules(answer: Answer) -> Table:
    figures = ("pods", "nodes", "packing/h", "anew/h")
    title = "What each rule costs: saved more an hour were it alone lifted"
    table = _titled(title, "rule", *figures, "such as", right=figures, names=("rule",))
    for rule in answer.rules:
        counts = str(rule.pods) if rule.pods else "·", str(rule.nodes) if rule.nodes else "·"
        table.add_row(rule.rule, *counts, _saving(rule.packing_nanos), _saving(rule.anew_nanos), rule.such_as)
    if len(answer.rules) > 1:
        packing = answer.packed.nanos_per_hour - answer.free_packed_nanos
        together = answer.anew.nanos_per_hour - answer.free.nanos_per_hour
        table.add_row("all of them", "", "", _saving(packing), _saving(together), "", style="bold")
    return table


def _remedies(answer: Answer) -> RenderableType:
    """How each rule is lifted; under the table, since annotations are too long for a column of it."""
    return Group(*(Text(f"· {rule.rule}: {rule.remedy}", style="dim") for rule in answer.rules))


def _saving(nanos: int) -> str:
    return _hourly(nanos) if nanos else "·"


def _held(answer: Answer) -> Table:
    figures = ("price/h", "pods")
    total = sum(held.nanos_per_hour for held in answer.held)
    title = f"Nodes of today that would stay beside what is bought anew: {_hourly(total)} {answer.currency}/h"
    table = _titled(title, "node", "flavour", *figures, "because", right=figures)
    _limited(table, [_held_row(held) for held in answer.held], "-o json lists all")
    return table


def _held_row(held: HeldNode) -> tuple[str, ...]:
    more = f" (and {len(held.pods) - 1} more)" if len(held.pods) > 1 else ""
    price = _hourly(held.nanos_per_hour) if held.nanos_per_hour else "-"
    return held.node, held.flavour or "-", price, str(len(held.pods) or "·"), held.message + more


def _limited(table: Table, rows: Sequence[tuple[str, ...]], how: str) -> None:
    for row in rows[:ROWS]:
        table.add_row(*row)
    if len(rows) > ROWS:
        table.add_row(f"… and {len(rows) - ROWS} more ({how})")


def _worths(answer: Answer) -> Table:
    figures = ("price/h", "in the mix", "mix without it/h", "worth/h", "worth/month")
    title = "What each flavour is worth: the cheapest mix with it and without it, were nothing held"
    table = _titled(title, "flavour", *figures, "", right=figures, names=("flavour",))
    for worth in answer.worths:
        note = f"{worth.dominated_by} is as large for no more" if worth.dominated_by else ""
        if worth.in_mix:
            prices = _hourly(worth.without_nanos), _hourly(worth.worth_nanos), _cents(a_month(worth.worth_nanos))
            table.add_row(worth.name, _hourly(worth.nanos_per_hour), str(worth.in_mix), *prices, note)
        else:
            table.add_row(worth.name, _hourly(worth.nanos_per_hour), *("·" * 4), note, style="dim")
    return table


def _choices(answer: Answer) -> Table:
    figures = ("nodes", "per hour", "saves/month", "above all")
    table = _titled("If you offered only …, were nothing held", "flavours", *figures, "", right=figures)
    for choice in answer.choices:
        above = choice.nanos_per_hour - answer.free.nanos_per_hour
        saved = answer.now.nanos_per_hour - choice.nanos_per_hour
        stuck = f"{_nodes(choice.stuck)} of today would hold what fits none" if choice.stuck else ""
        table.add_row(
            ", ".join(choice.flavours),
            str(choice.nodes),
            _hourly(choice.nanos_per_hour),
            _cents(a_month(saved)),
            _share(above, answer.free.nanos_per_hour),
            stuck,
        )
    count, all_of_them = len(answer.worths), answer.free
    saved = answer.now.nanos_per_hour - all_of_them.nanos_per_hour
    row = str(all_of_them.nodes), _hourly(all_of_them.nanos_per_hour), _cents(a_month(saved))
    table.add_row(f"all {count}", *row, "", style="dim")
    return table


def _notes(answer: Answer) -> RenderableType:
    lines = [*_left_out(answer), *_taken(answer), *_budgets(answer)]
    lines.append(
        f"A month is {HOURS_A_MONTH} hours. The lower bound: the least that any machines cost for this work beside the"
        " nodes that are held."
    )
    return Padding(Group(*(Text(f"· {line}", style="dim") for line in lines)), (1, 0, 0, 0))


def _left_out(answer: Answer) -> Iterable[str]:
    if answer.unpriced:
        there = ", ".join(f"{name or '(no label)'} ({count})" for name, count in answer.unpriced.items())
        what = _nodes(sum(answer.unpriced.values()))
        yield f"Without a price: {what}, {there}. Such nodes count in no sum, stay as they are, and take no more work."
    if answer.waiting:
        yield f"{_pods(answer.waiting)} without a node: left out, nothing is bought for what waits."
    if answer.anew.nanos_per_hour >= answer.packed.nanos_per_hour:
        yield (
            f"Bought anew, the work would cost {_hourly(answer.anew.nanos_per_hour)} an hour: the packed nodes are"
            " no dearer, so they stay."
        )


def _taken(answer: Answer) -> Iterable[str]:
    if answer.opted_in:
        yield (
            f"{_pods(answer.opted_in)} of services are taken to be movable; HTAS moves them once they are annotated"
            f' {MAY_MIGRATE}: "true" (--as-annotated: only those that are).'
        )
    is_beaten = any(choice.nanos_per_hour < answer.free.nanos_per_hour for choice in answer.choices)
    if is_beaten or any(worth.worth_nanos < 0 for worth in answer.worths):
        yield "Figures below 0: the purchase is a heuristic, and happens to do better without some flavours."


def _budgets(answer: Answer) -> Iterable[str]:
    for budget in answer.budgets[:ROWS]:
        allows = "none at all" if budget.allows == 0 else f"{budget.allows} at a time, each taken to recover"
        yield f"Disruption budget {budget.name} covers {_pods(budget.pods)} and lets go {allows}."
    if len(answer.budgets) > ROWS:
        yield f"… and {len(answer.budgets) - ROWS} budgets more (-o json lists all)."


def _hourly(nanos: int) -> str:
    """An exact price with four places at least, so that a column of them stands in line."""
    whole, _, places = price_text(nanos).partition(".")
    return f"{whole}.{places:0<4}"


def _cents(nanos: int) -> str:
    return f"{(Decimal(nanos) / NANOS).quantize(Decimal('0.01'), rounding=ROUND_HALF_EVEN):,}"


def _share(part: int, of: int) -> str:
    return f"{(Decimal(part) / of * 100).quantize(Decimal('0.1')) + 0:f} %" if of else "-"  # + 0: no -0.0


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
