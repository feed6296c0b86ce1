"""What of a plan, a search or a simulation is a decision: names, counts, codes, money and times, and no sentence.

Each decision is one flat document, a line of the corpus. Its first key says what kind it is. Money is in the currency
to a millionth (an hour, where nothing else is said), times are seconds since the plan's instant, to a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from htas.model.money import NANOS
from htas.model.moves import Move
from htas.model.plan import Plan
from htas.model.proposals import Launch, Proposal
from htas.model.rearrangement import Rearrangement
from htas.model.snapshot import Memory
from htas.planning.what_if.answer import WhatIfAnswer
from htas.planning.what_if.arranging import Arrangement

Document = dict[str, Any]


def decisions_of(plan: Plan) -> list[Document]:
    """Each decision of a plan, those of a kind sorted; moves keep their order, since they are carried out in it."""
    cost = plan.cost
    return [
        {"cost": money(cost.before_nanos), "after": money(cost.after_nanos), "given": money(cost.beside_nanos)},
        *_sorted({"bind": each.pod, "node": each.node, "deletionCost": each.deletion_cost} for each in plan.bind),
        *_sorted({"nominate": each.pod, "node": each.node, "reason": each.reason.value} for each in plan.nominate),
        *_sorted(map(_launch, plan.launch)),
        *(line for proposal in plan.proposals for line in _proposal(proposal)),
        *_sorted({"optimize": pod} for pod in plan.optimize),
        *(_move("step", step) for step in plan.carry.steps),
        *([{"cancel": plan.carry.cancel.value}] if plan.carry.cancel is not None else []),
        *_sorted(
            {"unplaced": each.pod, "reason": each.reason.value, "refusals": sorted(each.nodes.values())}
            for each in plan.unplaced
        ),
        *_sorted({"kept": each.node, "reason": each.reason.value} for each in plan.kept),
        *({"failed": each.search.value, "error": each.error.partition(":")[0]} for each in plan.failures),
        *([{"lacking": plan.lacking.pods, "of": plan.lacking.of}] if plan.lacking.pods else []),
        *_remembered(plan.memory, plan.taken_at),
    ]


def found(searches: Mapping[str, Rearrangement]) -> list[Document]:
    """The rearrangement that each engine of the optimiser finds."""
    lines: list[Document] = []
    for engine, rearrangement in searches.items():
        of: list[Document] = [{"search": engine, "status": rearrangement.status.value}]
        of += [
            {"tier": tier.priority, **_without(msgspec.to_builtins(tier), "priority")} for tier in rearrangement.tiers
        ]
        of += [_move("move", move) for move in rearrangement.moves]
        of += [{"place": seat.pod, "node": seat.node} for seat in rearrangement.seats]
        lines += [of[0], *({**line, "by": engine} for line in of[1:])]
    return lines


def answered(way: str, answer: WhatIfAnswer) -> list[Document]:
    """What `htas simulate` answers: its arrangements, then a line for each rule, node, budget and flavour."""
    arrangements = ("now", "packed", "anew", "free", "free_packed", "offered")
    lines: list[Document] = [
        {"bound": money(answer.bound_nanos), "ifFree": money(answer.free_bound_nanos)},
        {key: getattr(answer, key) for key in ("pods", "waiting", "seated", "opted_in", "annotated_when_lifted")},
        *(_arrangement(name, getattr(answer, name)) for name in arrangements),
        *({"rule": each.rule, **_figures(each)} for each in answer.rules),
        *({"together": list(each.rules), **_figures(each)} for each in answer.sets),
        *({"held": each.node, "by": each.rule, "pods": list(each.pods)} for each in answer.held),
        *({"budget": each.name, "allows": each.allows, "pods": each.pods} for each in answer.budgets),
        *({"worthOf": each.name, **_figures(each)} for each in answer.worths),
        *({"choice": list(each.flavours), **_figures(each)} for each in answer.choices),
        {"takes": "saving", **_plain(answer.told)},
        *({key: value} for key in _OTHERS if (value := _plain(getattr(answer, key)))),
    ]
    return [{"answer": way}, *({**_said(line), "way": way} for line in lines)]


_OTHERS = ("unpriced", "few", "whole", "diskless", "gangs", "zones", "tainted", "agents", "lacking")
_NUMBERS = ("pods", "nodes", "in_mix", "is_needed", "dominated_by", "stuck")


def _arrangement(name: str, found: Arrangement) -> Document:
    return {
        "arrangement": name,
        "flavours": dict(sorted(found.flavours.items())),
        "price": money(found.nanos_per_hour),
        "hourly": money(found.hourly_nanos),
        "bought": found.bought,
        "moved": sorted(found.moved),
    }


def _figures(item: msgspec.Struct) -> Document:
    """Amounts and counts of an item."""
    values = {field.name: getattr(item, field.name) for field in msgspec.structs.fields(item)}
    amounts = {
        name.replace("nanos_per_hour", "price").removesuffix("_nanos"): money(value)
        for name, value in values.items()
        if "nanos" in name
    }
    return {**amounts, **{name: value for name, value in values.items() if name in _NUMBERS}}


def money(nanos: int, per: int = NANOS) -> float:
    """An amount in the currency, to a millionth."""
    return round(nanos / per, 6)


def _sorted(lines: Iterable[Document]) -> list[Document]:
    """Without what says nothing, in the order of their text."""
    return sorted(map(_said, lines), key=msgspec.json.encode)


def _said(line: Document) -> Document:
    """A line without keys that are none, empty, 0 or false; its first key stays."""
    first = next(iter(line))
    return {key: value for key, value in line.items() if key == first or value or (key in _ZEROS and value is not None)}


_ZEROS = frozenset({"at", "until", "deletionCost"})
"""Keys of which 0 says something."""


def _without(document: Document, key: str) -> Document:
    return {each: value for each, value in document.items() if each != key}


def _launch(launch: Launch) -> Document:
    return {
        "launch": launch.claim,
        "group": launch.group,
        "flavour": launch.flavour,
        "zone": launch.zone,
        "price": money(launch.nanos_per_hour),
        "replaces": sorted(launch.replaces),
        "for": sorted(launch.pods),
    }


def _move(kind: str, move: Move) -> Document:
    return _said(
        {
            kind: move.pod,
            "from": move.source,
            "to": move.target,
            "method": move.method.value,
            "reason": move.reason.value,
            "for": move.beneficiary,
        }
    )


def _proposal(proposal: Proposal) -> Iterator[Document]:
    """A line for it, and one for each machine, move, seat and release of it."""
    yield _said(
        {"propose": proposal.reason.value, "saves": money(proposal.value), "isSecondHalf": proposal.is_second_half}
    )
    yield from _sorted(map(_launch, proposal.launches))
    yield from (_move("move", move) for move in proposal.moves)
    yield from _sorted({"place": seat.pod, "node": seat.node} for seat in proposal.seats)
    yield from _sorted({"release": each.node, "claim": each.claim} for each in proposal.releases)


def _remembered(memory: Memory, now: float) -> Iterator[Document]:
    """What the next plan is told: reservations, since when nodes are empty, what came of replacements.

    Without what became of launches, which names owners by digests of all that their pods ask of nodes.
    """
    yield from _sorted(
        {"reserve": pod, "claim": each.claim, "at": _ago(each.since, now)} for pod, each in memory.reservations.items()
    )
    for kind, since in (
        ("emptySince", memory.empty_since),
        ("underusedSince", memory.underutilized_since),
        ("consolidatedAt", memory.consolidated_at),
    ):
        yield from _sorted({kind: name, "at": _ago(at, now)} for name, at in since.items())
    for kind, instant in (("queueEmptySince", memory.queue_empty_since), ("cleanedAt", memory.cleaned_at)):
        if instant is not None:
            yield {kind: _ago(instant, now)}
    yield from _sorted(
        {"roomMade": node, "cost": money(each.cost, 3600 * NANOS), "saved": money(each.saved, 3600 * NANOS)}
        | {"price": money(each.nanos_per_hour), "at": _ago(each.since, now), "until": _ago(each.until, now)}
        for node, each in memory.room_made.items()
    )
    yield from _sorted(
        {"lapsed": node, "at": _ago(each.at, now), "times": each.times} for node, each in memory.lapses.items()
    )
    yield from _sorted({"statesCosts": each} for each in memory.states_costs)


def _ago(instant: float, now: float) -> float | int:
    since = round(instant - now, 3)
    return int(since) if since.is_integer() else since


def _plain(value: Any) -> Any:
    """As JSON has it, without what is empty."""
    if isinstance(value, msgspec.Struct):
        fields = ((field.name, _plain(getattr(value, field.name))) for field in msgspec.structs.fields(value))
        return {name: each for name, each in fields if each}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value
