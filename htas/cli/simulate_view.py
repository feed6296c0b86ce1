"""A simulation for people: what it costs, what stands in the way of less, and which flavours to offer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from htas.cli.bars import bar
from htas.cli.simulate import Simulated
from htas.cli.simulate_document import presumed
from htas.cli.simulate_notes import MANY, ROWS, notes
from htas.cli.tables import Bullet, table
from htas.documents.words import (
    NOTHING_AS_IT_IS,
    NOTHING_FOUND,
    NOTHING_TO_SAVE,
    WOULD_SAVE,
    a_month,
    cents,
    counted,
    hourly,
    of_lacking_requests,
    saving,
    share,
    some,
)
from htas.model.plan_document import instant_text
from htas.planning.what_if.answer import HeldNode, RuleCost, WhatIfAnswer
from htas.planning.what_if.combining import RuleSet
from htas.planning.what_if.offering import FlavourWorth
from htas.planning.what_if.pinning import PINNED

WIDE = 110
"""From so many columns on there is room for bars."""


def simulation_view(simulated: Simulated, width: int) -> RenderableType:
    answer = simulated.answer
    parts: list[RenderableType] = [
        _headline(simulated),
        _stages(answer, is_wide=width >= WIDE),
        _machines(answer),
        *_blocking(answer),
        *_worths(answer),
        *_choices(answer),
        notes(simulated),
    ]
    return Group(*parts)


def _headline(simulated: Simulated) -> RenderableType:
    answer = simulated.answer
    unpriced = sum(answer.unpriced.values())
    nodes = counted(answer.now.nodes + unpriced, "node") + (f" ({unpriced} without a price)" if unpriced else "")
    there = f"{nodes}, {counted(answer.pods, 'pod')}, {instant_text(answer.taken_at)}"
    title, doubts = Text(there, style="bold"), simulated.doubts
    is_whole = all(gap.may_be_none for gap in simulated.gaps)
    found = [*_answered(answer, is_doubted=bool(doubts), is_whole=is_whole), *_pinned(answer)]
    if lacking := of_lacking_requests(answer.lacking):
        found.append(Text(lacking, style="yellow"))
    if not doubts:
        return Group(title, *found, *_lacking(simulated))
    warned = [Text(f"Do not trust these figures: {doubt}", style="bold red") for doubt in doubts]
    return Group(title, *warned, *_lacking(simulated), *found)


def _lacking(simulated: Simulated) -> Iterable[RenderableType]:
    if any(not gap.may_be_none for gap in simulated.gaps):
        yield Text("The dump does not have everything, so that some of this is assumed:", style="yellow")
        yield from (Bullet(f"it has {gap.lacks}: {gap.assumed}", 2, "yellow") for gap in simulated.gaps)
        if simulated.the_rest:
            yield Text(f"  {simulated.the_rest_told}", style="yellow")


def _answered(answer: WhatIfAnswer, *, is_doubted: bool, is_whole: bool) -> Iterable[RenderableType]:
    """What would be saved, as things are or with rules lifted, and what that presumes."""
    if is_doubted:
        yield Text("If the dump were complete:", style="bold")
    lift, saved = answer.best_lift, answer.saved_nanos
    if saved <= 0 and lift is None:
        yield Text(NOTHING_TO_SAVE if is_whole else NOTHING_FOUND)
        return
    text = Text(WOULD_SAVE)
    if saved <= 0 and lift is not None:
        saved = answer.now.nanos_per_hour - lift.after_nanos
        text = Text(f"{NOTHING_AS_IT_IS}. With {_named(lift)} lifted (see below) it would save ")
    amount, rest = saving(saved, answer.now.nanos_per_hour, answer.currency)
    text.append(amount, style="bold green").append(rest)
    provided = presumed(answer)
    yield text.append(", provided that" if provided else "")
    yield from (Bullet(each, indent=2) for each in provided)
    yield from _lifted(answer, lift) if lift is not None else ()


def _pinned(answer: WhatIfAnswer) -> Iterable[Text]:
    """Nodes that stay since pods on them name them; no machine would do instead, however cheap."""
    tied = [held for held in answer.held if held.pinned]
    if not tied:
        return
    alone = sum(held.rule == PINNED for held in tied)
    others = "" if alone == len(tied) else f", {alone} of them by nothing else" if alone else ", with other rules"
    nodes = f"{counted(len(tied), 'node')} {'is' if len(tied) == 1 else 'are'}"
    them = "it" if len(tied) == 1 else "them"
    pods = some([pod for held in tied for pod in held.pinned], MANY)
    yield Text(f"{nodes} kept by pods pinned to {them} by hostname ({pods}){others}")


def _lifted(answer: WhatIfAnswer, lift: RuleCost | RuleSet) -> Iterable[Text]:
    """What the best lift saves beyond the rules as they are, and how far the first small set goes."""
    if answer.saved_nanos > 0:
        more = answer.consolidated.nanos_per_hour - lift.after_nanos
        annotated = answer.annotated_when_lifted
        pods = f" and {counted(annotated, 'pod')} annotated in all" if annotated > len(answer.told.annotated) else ""
        yield Text(f"With {_named(lift)} lifted (see below){pods}, {cents(a_month(more))} a month more")
    small = next((each for each in answer.sets if len(each.rules) < MANY), None)
    if small is not None and isinstance(lift, RuleSet) and len(lift.rules) > MANY:
        some_of_it = answer.consolidated.nanos_per_hour - small.after_nanos
        if some_of_it > 0:
            yield Text(f"Of that, {cents(a_month(some_of_it))} a month with {_named(small)} alone")


def _named(lift: RuleCost | RuleSet) -> str:
    if isinstance(lift, RuleCost):
        return lift.rule
    *first, last = lift.rules
    return f"{', '.join(first)} and {last}" if len(first) < MANY else f"{len(lift.rules)} rules"


def _stages(answer: WhatIfAnswer, *, is_wide: bool) -> Table:
    figures = ("nodes", "moved", "per hour", "per month", "saves/month", "less by")
    columns = ("", *figures, " ") if is_wide else ("", *figures)
    view = table(*columns, title=f"\nWhat it costs, in {answer.currency}", right=figures, unfolded=(*figures, ""))
    now = answer.now.nanos_per_hour
    for name, mix in (
        ("now", answer.now),
        ("after packing", answer.packed),
        ("after consolidation", answer.consolidated),
    ):
        saved = now - mix.nanos_per_hour
        row = [name, str(mix.nodes), str(mix.moves) if mix is not answer.now else "", *_priced(mix.nanos_per_hour)]
        row += [cents(a_month(saved)), share(saved, now)] if mix is not answer.now else ["", ""]
        view.add_row(*row, *_bars(mix.nanos_per_hour, now, is_wide), style="bold" if "cons" in name else "")
    least = ["lower bound", "", "", *_priced(answer.bound_nanos), "", share(now - answer.bound_nanos, now)]
    view.add_row(*least, *_bars(answer.bound_nanos, now, is_wide), style="dim")
    for name, free in (("no rules, packed", answer.free_packed), ("no rules, new machines", answer.free)):
        if answer.held:
            saved = now - free.nanos_per_hour
            row = [name, str(free.nodes), str(free.moves), *_priced(free.nanos_per_hour)]
            row += [cents(a_month(saved)), share(saved, now)]
            view.add_row(*row, *_bars(free.nanos_per_hour, now, is_wide), style="dim")
    if answer.held:
        bound = ["no rules, lower bound", "", "", *_priced(answer.free_bound_nanos)]
        bound += ["", share(now - answer.free_bound_nanos, now)]
        view.add_row(*bound, *_bars(answer.free_bound_nanos, now, is_wide), style="dim")
    return view


def _priced(nanos: int) -> tuple[str, str]:
    return hourly(nanos), cents(a_month(nanos))


def _bars(nanos: int, of: int, is_wide: bool) -> list[str]:
    return [bar(nanos / of if of else 0.0, 24)] if is_wide else []


def _machines(answer: WhatIfAnswer) -> Table:
    stages = (answer.now, answer.packed, answer.consolidated, answer.free)
    figures = ("price/h", "now", "packed", "consolidated", "no rules, new machines")
    view = table("flavour", *figures, "to do", title="\nMachines", right=figures, unfolded=(*figures, "flavour"))
    worths = {worth.name: worth for worth in answer.worths}
    for flavour in sorted(
        {name for mix in stages for name in mix.flavours}, key=lambda name: (worths[name].nanos_per_hour, name)
    ):
        counts = [mix.flavours.get(flavour, 0) for mix in stages]
        view.add_row(
            flavour,
            _price(worths[flavour]),
            *(str(n) if n else "·" for n in counts),
            _change(counts[0], counts[2]),
        )
    return view


def _price(worth: FlavourWorth) -> str:
    """Of a flavour whose zones have different prices, the lowest and the highest."""
    lowest, highest = hourly(worth.nanos_per_hour), hourly(worth.dearest_nanos)
    return lowest if lowest == highest else f"{lowest}-{highest}"


def _change(before: int, after: int) -> str:
    if after > before:
        return f"launch {after - before}"
    if after < before:
        return f"delete {before - after}"
    return "keep" if after else ""


def _blocking(answer: WhatIfAnswer) -> list[RenderableType]:
    parts: list[RenderableType] = [_rules(answer)] if answer.rules else []
    if answer.sets:
        parts.append(_sets(answer))
    if answer.rules:
        parts.append(_remedies(answer))
    return [*parts, _held(answer)] if answer.held else parts


LIFTED = ("pods", "nodes", "packed/h", "new/h", "saves/month")


def _rules(answer: WhatIfAnswer) -> Table:
    """Prices rather than savings of packing and of buying: what is saved has one base, the cheaper of both today."""
    title = "\nWhat each rule costs: the price without it, and what that saves"
    view = table("rule", *LIFTED, "such as", title=title, right=LIFTED, unfolded=(*LIFTED, "rule"))
    view.add_row("none lifted", "", "", *_both(answer.packed.nanos_per_hour, answer.anew.nanos_per_hour), "", "")
    for rule in answer.rules:
        counts = str(rule.pods) if rule.pods else "·", str(rule.nodes) if rule.nodes else "·"
        figures, is_idle = _figures(answer, rule), not (rule.packing_nanos or rule.anew_nanos)
        view.add_row(rule.rule, *counts, *figures, rule.such_as, style="dim" if is_idle else "")
    if len(answer.rules) > 1:
        prices = _both(answer.free_packed.nanos_per_hour, answer.free.nanos_per_hour)
        more = answer.consolidated.nanos_per_hour - answer.free.nanos_per_hour
        view.add_row("all of them", "", "", *prices, cents(a_month(more)), "", style="bold")
    return view


def _both(packed: int, anew: int) -> tuple[str, str]:
    return hourly(packed), hourly(anew)


def _figures(answer: WhatIfAnswer, lifted: RuleCost | RuleSet) -> tuple[str, str, str]:
    """What it costs packed and bought anew, where that is less than with the rules as they are, and what is saved."""
    packed, anew = answer.packed.nanos_per_hour, answer.anew.nanos_per_hour
    more = answer.consolidated.nanos_per_hour - lifted.after_nanos
    return (
        hourly(packed - lifted.packing_nanos) if lifted.packing_nanos else "·",
        hourly(anew - lifted.anew_nanos) if lifted.anew_nanos else "·",
        cents(a_month(more)) if more else "·",
    )


def _remedies(answer: WhatIfAnswer) -> RenderableType:
    """How each rule is lifted; under the tables, since annotations are too long for a column of them."""
    return Group(
        Text("\nHow each is lifted"), *(Bullet(f"{rule.rule}: {rule.remedy}", style="dim") for rule in answer.rules)
    )


def _sets(answer: WhatIfAnswer) -> Table:
    title = "\nWhat rules cost together: the price without a set of them; no smaller set saves as much"
    view = table("rules", *LIFTED, title=title, right=LIFTED, unfolded=LIFTED)
    for each in answer.sets:
        view.add_row(" + ".join(each.rules), str(each.pods), str(each.nodes), *_figures(answer, each))
    return view


def _held(answer: WhatIfAnswer) -> Table:
    figures = ("price/h", "pods")
    total = sum(held.nanos_per_hour for held in answer.held)
    title = f"\nNodes of today that are kept besides new machines: {hourly(total)} {answer.currency}/h"
    view = table("node", "flavour", *figures, "because", title=title, right=figures, unfolded=figures)
    _limited(view, [_held_row(held) for held in answer.held], "-o json lists all")
    return view


def _held_row(held: HeldNode) -> tuple[str, ...]:
    first, *others = held.rule.split()
    price = hourly(held.nanos_per_hour) if held.nanos_per_hour else "-"
    told = [f"{rule} ({some(held.pinned, 1)})" if rule == PINNED else rule for rule in others]
    also = f"; also {', '.join(told)}" if told else ""
    return held.node, held.flavour or "-", price, str(len(held.pods) or "·"), f"{first}: {held.message}{also}"


def _limited(table: Table, rows: Sequence[tuple[str, ...]], how: str) -> None:
    for row in rows[:ROWS]:
        table.add_row(*row)
    if len(rows) > ROWS:
        table.add_row("…", *[""] * (len(table.columns) - 2), f"and {len(rows) - ROWS} more ({how})")


def _worths(answer: WhatIfAnswer) -> Iterable[RenderableType]:
    """Of the flavours that the mix has; the others are worth nothing, and are named only."""
    used = [worth for worth in answer.worths if worth.in_mix]
    if not used:
        return
    figures = ("price/h", "in the mix", "mix without it/h", "saves/h", "saves/month")
    title = "\nWhat each flavour saves: the cheapest mix with it and without it, without rules"
    view = table("flavour", *figures, title=title, right=figures, unfolded=(*figures, "flavour"))
    for worth in used:
        figures_of = str(worth.in_mix), hourly(worth.without_nanos), *_worth(worth, answer)
        is_dim = not (worth.worth_nanos or worth.is_needed)
        view.add_row(worth.name, _price(worth), *figures_of, style="dim" if is_dim else "")
    yield view
    error = used[0].error_nanos
    if any(_is_lost(worth, answer) for worth in used):
        said = f"<{hourly(error)}: with all flavours, the search finds so much less than the best"
        yield Text(f"{said}, so a smaller difference has no meaning", style="dim")
    if any(worth.is_needed for worth in used):
        yield Text("needed: some pods fit no other flavour; without it, their nodes of today stay", style="dim")
    others = [_superfluous(worth) for worth in answer.worths if not worth.in_mix]
    if others:
        yield Text(f"Not in the mix: {some(others, ROWS)}", style="dim")


def _worth(worth: FlavourWorth, answer: WhatIfAnswer) -> tuple[str, str]:
    if worth.is_needed:
        return "needed", cents(a_month(worth.worth_nanos)) if worth.worth_nanos > 0 else "·"
    if worth.worth_nanos:
        return hourly(worth.worth_nanos), cents(a_month(worth.worth_nanos))
    return (f"<{hourly(worth.error_nanos)}" if _is_lost(worth, answer) else "·"), "·"


def _is_lost(worth: FlavourWorth, answer: WhatIfAnswer) -> bool:
    """Whether a difference is there, and too small to tell from the search's error."""
    return 0 < worth.without_nanos - answer.offered.nanos_per_hour <= worth.error_nanos


def _superfluous(worth: FlavourWorth) -> str:
    return f"{worth.name} ({worth.dominated_by} is as large for no more)" if worth.dominated_by else worth.name


def _choices(answer: WhatIfAnswer) -> Iterable[RenderableType]:
    if not answer.choices:
        return
    figures = ("nodes", "per hour", "saves/month", "above all")
    title = "\nIf you offered only …, without rules"
    view = table("flavours", *figures, "", title=title, right=figures, unfolded=figures)
    for choice in answer.choices:
        above = choice.nanos_per_hour - answer.offered.nanos_per_hour
        saved = answer.now.nanos_per_hour - choice.nanos_per_hour
        view.add_row(
            ", ".join(choice.flavours),
            str(choice.nodes),
            hourly(choice.nanos_per_hour),
            cents(a_month(saved)),
            share(above, answer.offered.nanos_per_hour),
            _stuck(choice.stuck),
        )
    count, all_of_them = len(answer.worths), answer.offered
    saved = answer.now.nanos_per_hour - all_of_them.nanos_per_hour
    row = str(all_of_them.nodes), hourly(all_of_them.nanos_per_hour), cents(a_month(saved))
    view.add_row(f"all {count}", *row, _stuck(answer.offered_stuck), style="dim")
    yield view


def _stuck(nodes: int) -> str:
    if not nodes:
        return ""
    return f"with {counted(nodes, 'node')} of today, {'whose' if nodes == 1 else 'some of whose'} pods fit none"
