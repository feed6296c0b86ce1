"""What stands below the tables of `htas simulate`: what was taken to be, recognised, and left out."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding

from htas.cli.recognising import guesses
from htas.cli.simulate import Simulated
from htas.cli.tables import Bullet
from htas.documents.words import counted, hourly, of_unstated_storage, some, taint_text
from htas.model.billing import HOURS_A_MONTH
from htas.model.pods import DAEMONSET_POD
from htas.planning.what_if.answer import WhatIfAnswer

ROWS = 12
"""Rows of a table before the rest is counted only."""
MANY = 3
"""More rules than these are counted in a sentence."""


def notes(simulated: Simulated) -> RenderableType:
    answer = simulated.answer
    lines = [
        *_perhaps_none(simulated),
        *guesses(simulated.recognised),
        *_unlike(simulated),
        *_left_out(simulated),
        *_taken(answer),
        *_budgets(answer),
    ]
    if simulated.dated_by:
        lines.append(f"Its present is the newest instant in the dump, of {simulated.dated_by}; --at sets another.")
    if simulated.capped:
        lines.append(
            f"A monthlyCap counts: an hour of {some(simulated.capped, ROWS)} costs what a whole month costs, ÷"
            f" {HOURS_A_MONTH}. HTAS compares hourly prices, without caps: what it replaces may cost more by the"
            " month."
        )
    lines.append(
        f"A month is {HOURS_A_MONTH} hours. The lower bound: the least that any machines cost for these pods, with the"
        " nodes of today that are kept. Nodes that are always kept, such as the control plane, are in every sum."
    )
    return Padding(Group(*(Bullet(line, style="dim") for line in lines)), (1, 0, 0, 0))


def _perhaps_none(simulated: Simulated) -> Iterable[str]:
    """What the cluster may simply have none of, where the dump has all the rest."""
    if all(gap.may_be_none for gap in simulated.gaps):
        for gap in simulated.gaps:
            yield f"The dump has {gap.lacks}: {gap.assumed}. To be sure: {simulated.the_rest}"


def _unlike(simulated: Simulated) -> Iterable[str]:
    """Nodes that do not look like their flavour."""
    if simulated.unlike:
        first, count = simulated.unlike[0], len(simulated.unlike)
        yield (
            f"{counted(count, 'node')} {'does' if count == 1 else 'do'} not look like"
            f" {'its' if count == 1 else 'their'} flavour, whose price counts: {first.node} has {first.has},"
            f" {first.flavour} has {first.flavour_has}."
        )


def _left_out(simulated: Simulated) -> Iterable[str]:
    answer = simulated.answer
    if answer.unpriced:
        there = ", ".join(f"{name or '(no label)'} ({count})" for name, count in answer.unpriced.items())
        what = counted(sum(answer.unpriced.values()), "node")
        yield (
            f"Without a price: {what}, {there}. Such nodes count in no sum, stay as they are, and get no more pods."
            " Name their types in the price file, or set their flavour: --type 'PATTERN=FLAVOUR'."
            f" {'; '.join(simulated.sizes)}."
        )
    if answer.seated:
        yield f"{counted(answer.seated, 'pending pod')} that today's nodes have room for: counted as if running there."
    if answer.waiting:
        yield (
            f"{counted(answer.waiting, 'pending pod')} that no node of today has room for: left out, with the machines"
            " that HTAS would launch."
        )
    if answer.consolidated is answer.packed:
        compared = (
            "" if answer.anew.nanos_per_hour >= answer.packed.nanos_per_hour else ", compared without monthly caps"
        )
        yield (
            f"On new machines the pods would cost {hourly(answer.anew.nanos_per_hour)} an hour: the packed nodes are"
            f" no dearer{compared}, so they are kept."
        )


def _taken(answer: WhatIfAnswer) -> Iterable[str]:
    for each in answer.agents:
        yield (
            f"{counted(each.pods, 'pod')} of {each.kind} in {each.namespace}, one on each of as many nodes, come with"
            " their node and end with it, as a DaemonSet's: no budget is to be changed for them. The daemon takes them"
            f' for that once they are annotated {DAEMONSET_POD}: "true"; what they store must be elsewhere, too.'
        )
    if answer.whole:
        have = "has" if len(answer.whole) == 1 else "have"
        yield (
            f"{some(list(answer.whole), ROWS)} {have} no `reserved` in the price file, and no node of such a flavour"
            " shows what is left for pods: all cores and memory are taken to be free for them."
        )
    if answer.diskless.pods:
        yield of_unstated_storage(answer.diskless)
    yield from _tainted(answer)
    if answer.gangs:
        pods = counted(sum(answer.gangs.values()), "pod")
        yield (
            f"{pods} of {counted(len(answer.gangs), 'group')} that {'is' if len(answer.gangs) == 1 else 'are each'}"
            f" scheduled as one ({some(list(answer.gangs), MANY)}):"
            " evicting one pod of a group commonly restarts all of it."
        )
    if answer.opted_in:
        yield "Services are assumed to be movable; --as-annotated moves only those that opted in."
    if answer.free.nanos_per_hour < answer.offered.nanos_per_hour:
        yield (
            f"Without rules, new machines would cost {hourly(answer.offered.nanos_per_hour)} an hour:"
            " another mix that was found is cheaper, so it is shown."
        )


def _tainted(answer: WhatIfAnswer) -> Iterable[str]:
    """Flavours with the same taints, in one line each."""
    texts = {name: ", ".join(map(taint_text, taints)) for name, taints in answer.tainted.items()}
    for text in sorted(set(texts.values())):
        names = [name for name, its in texts.items() if its == text]
        yield (
            f"{some(names, MANY)} {'is' if len(names) == 1 else 'are'} taken to bear the taint {text}, as all nodes"
            " with such devices do: no node shows it. `taints` in the price file changes that."
        )


def _budgets(answer: WhatIfAnswer) -> Iterable[str]:
    """Those that let nobody go one by one; of the others, which a move waits for, how many there are."""
    strict = [budget for budget in answer.budgets if not budget.allows]
    if strict:
        names = some([budget.name for budget in strict], ROWS)
        let = "lets" if len(strict) == 1 else "let"
        yield f"{counted(len(strict), 'disruption budget')} {let} no pod be evicted: {names}."
    others = answer.budgets[len(strict) :]
    if others:
        pods = counted(sum(budget.pods for budget in others), "pod")
        allow = "lets" if len(others) == 1 else "let"
        yield f"{counted(len(others), 'disruption budget')} {allow} {pods} be evicted a few at a time."
