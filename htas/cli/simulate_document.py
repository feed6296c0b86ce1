"""An answer of `htas simulate` for programs: as a document, and in lines.

Prices are decimals as text: those of an hour exact, those of a month to a hundredth of a cent.

`saves` is against now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor
from typing import Any

import msgspec

from htas.cli.simulate import Simulated
from htas.documents.words import a_month, of_lacking_requests, some, taint_text
from htas.model.billing import HOURS_A_MONTH
from htas.model.money import price_text
from htas.model.plan_document import instant_text, lacking_document
from htas.model.pods import MAY_MIGRATE, RUNTIME
from htas.planning.what_if.answer import HeldNode, RuleCost, WhatIfAnswer
from htas.planning.what_if.arranging import Arrangement
from htas.planning.what_if.combining import RuleSet
from htas.planning.what_if.offering import Choice, FlavourWorth
from htas.planning.what_if.presuming import Told
from htas.planning.what_if.recognising import Recognised


def document(simulated: Simulated) -> dict[str, Any]:
    """The answer as a document, with every node and rule."""
    answer = simulated.answer
    now = answer.now.nanos_per_hour
    return {
        "apiVersion": "htas.io/v1alpha1",
        "kind": "Simulation",
        "takenAt": instant_text(answer.taken_at),
        "datedBy": simulated.dated_by,
        "doubts": simulated.doubts,
        "currency": answer.currency,
        "hoursAMonth": HOURS_A_MONTH,
        "now": _stage(answer.now, now),
        "packed": _stage(answer.packed, now),
        "consolidated": _stage(answer.consolidated, now),
        "boughtAnew": _stage(answer.anew, now),
        "nothingHeld": _stage(answer.free, now),
        "nothingHeldPacked": _stage(answer.free_packed, now),
        "lowerBoundPerHour": price_text(answer.bound_nanos),
        "pods": answer.pods,
        "podsWaiting": answer.waiting,
        "podsWaitingThatCount": answer.seated,
        "podsWithoutRequests": lacking_document(answer.lacking),
        "servicesTakenToBeMovable": answer.opted_in,
        "servicesToAnnotate": list(answer.told.annotated),
        "nodesEmptied": list(answer.told.emptied),
        "nodesEmptyToday": list(answer.told.empty),
        "nodesWithoutPrice": dict(answer.unpriced),
        "nodesUnlikeTheirFlavour": [
            {"node": each.node, "flavour": each.flavour, "has": each.has, "flavourHas": each.flavour_has}
            for each in simulated.unlike
        ],
        "flavoursWithoutReserved": list(answer.whole),
        "flavoursWithoutEphemeralStorage": list(answer.diskless.flavours),
        "nodesRecognised": [_recognised(each) for each in simulated.recognised],
        "assumed": [
            {"lacks": gap.lacks, "assumed": gap.assumed, "kubectlGet": list(gap.resources)} for gap in simulated.gaps
        ],
        "flavoursTakenToBeTainted": {
            name: [taint_text(taint) for taint in taints] for name, taints in answer.tainted.items()
        },
        "podGroups": dict(answer.gangs),
        "comeWithTheirNode": [
            {"namespace": each.namespace, "kind": each.kind, "pods": each.pods} for each in answer.agents
        ],
        "presumes": list(presumed(answer)),
        "rules": [_rule(rule, answer) for rule in answer.rules],
        "ruleSets": [_rule_set(each, answer) for each in answer.sets],
        "nodesHeld": [_held(held) for held in answer.held],
        "disruptionBudgets": [
            {"budget": budget.name, "allows": budget.allows, "pods": budget.pods} for budget in answer.budgets
        ],
        "flavours": [_worth(worth) for worth in answer.worths],
        "bestFew": [_choice(choice, now) for choice in answer.choices],
    }


def _stage(mix: Arrangement, now: int) -> dict[str, Any]:
    return {
        "nodes": mix.nodes,
        "flavours": dict(mix.flavours),
        "podsMoved": mix.moves,
        "pricePerHour": price_text(mix.nanos_per_hour),
        "pricePerMonth": price_text(a_month(mix.nanos_per_hour)),
        "savesPerHour": price_text(now - mix.nanos_per_hour),
        "savesPerMonth": price_text(a_month(now - mix.nanos_per_hour)),
    }


def _rule(rule: RuleCost, answer: WhatIfAnswer) -> dict[str, Any]:
    return {
        "rule": rule.rule,
        "remedy": rule.remedy,
        **_lifted(rule, answer),
    }


def _rule_set(each: RuleSet, answer: WhatIfAnswer) -> dict[str, Any]:
    return {"rules": list(each.rules), **_lifted(each, answer)}


def _lifted(each: RuleCost | RuleSet, answer: WhatIfAnswer) -> dict[str, Any]:
    """Whom that lets go, what the cluster costs then, in the cheaper of both ways, and how much less than after
    consolidation.
    """
    saves = answer.consolidated.nanos_per_hour - each.after_nanos
    return {
        "pods": each.pods,
        "nodes": each.nodes,
        "liftedPackingSavesPerHour": price_text(each.packing_nanos),
        "liftedBuyingAnewSavesPerHour": price_text(each.anew_nanos),
        "pricePerHour": price_text(each.after_nanos),
        "savesMorePerHour": price_text(saves),
        "savesMorePerMonth": price_text(a_month(saves)),
    }


def _recognised(each: Recognised) -> dict[str, Any]:
    by = "stated" if each.is_stated else "size"
    return {"node": each.node, "flavour": each.flavour, "by": by, "otherwise": list(each.others)}


def presumed(answer: WhatIfAnswer) -> Sequence[str]:
    """What has to be so for the best saving that was found to come true; nothing that it does not need."""
    found, told = answer.told, list[str]()
    if found.is_bought_anew:
        told += _consolidation(answer)
    if answer.few and found.is_bought_anew:
        told.append(f"only the flavours {', '.join(answer.few)} are offered: with all of them it finds less")
    if found.annotated:
        count, names = len(found.annotated), some(list(found.annotated), 2)
        pods = "1 pod of a service that moves is" if count == 1 else f"{count:,} pods of services that move are"
        told.append(f'{pods} annotated {MAY_MIGRATE}: "true" ({names})')
    if found.of_unknown_length:
        count, names = len(found.of_unknown_length), some(list(found.of_unknown_length), 2)
        jobs = "1 job that moves" if count == 1 else f"each of {count:,} jobs that move"
        told.append(f"{jobs} completes first ({names}), or states its run length ({RUNTIME}), which is unknown")
    if found.zoneless:
        names, zones = some(list(found.zoneless), 3), ", ".join(answer.zones)
        told.append(f"flavours without zones ({names}) are sold in every zone there is: give them `zones: [{zones}]`")
    told += _lent(found)
    told += _pools(found)
    told += _given_back(found)
    return told


def _consolidation(answer: WhatIfAnswer) -> Iterator[str]:
    """What the daemon needs to get from the packed nodes to the new mix."""
    rules, found = answer.consolidation, answer.told
    if not found.is_buying:
        yield "pods are moved by hand where draining nodes does not do it: HTAS consolidates only by launching machines"
        return
    if not rules.enabled:
        yield "consolidation is switched on (cleaning.consolidation.enabled: true)"
    refusing = (("ratio", rules.ratio, found.ratio), ("minSaving", rules.min_saving, found.min_saving))
    for name, now, least in refusing:
        if least is not None:
            yield (
                f"cleaning.consolidation.{name} is at most {floor(1000 * least) / 1000:g} (now {now:g}): else HTAS"
                " replaces fewer nodes and saves less"
            )


def _lent(found: Told) -> Iterator[str]:
    """Flavours with the same labels in one line each."""
    for labels in sorted(set(found.lent.values())):
        names = [name for name, its in found.lent.items() if its == labels]
        register = "registers" if len(names) == 1 else "register"
        yield (
            f"{some(names, 3)}, without nodes so far, {register} with {', '.join(labels)} as all nodes of today"
            " do, because pods select by it: nodeGroups[].labels must add it"
        )


def _pools(found: Told) -> Iterator[str]:
    """Labels and taints that new machines need, and which nothing gives them yet."""
    for pool in found.pools:
        labels = ", ".join(f"{key}={value}" for key, value in pool.labels.items())
        taints = f" and the taint {', '.join(map(taint_text, pool.taints))}" if pool.taints else ""
        yield (
            f"new machines for the pool {labels} get its labels{taints}: no node group adds them yet,"
            " nodeGroups[].labels and nodeGroups[].taints must"
        )


def _given_back(found: Told) -> Iterator[str]:
    """Which nodes go that HTAS has not bought, and who takes them away."""
    if found.emptied:
        nodes = "1 node is" if len(found.emptied) == 1 else f"{len(found.emptied):,} nodes are"
        names = some(list(found.emptied), NAMED)
        if found.is_buying:
            yield f"{nodes} replaced, in time, by machines that HTAS launches: it deletes no others ({names})"
        else:
            yield f"{nodes} drained and deleted by hand: HTAS deletes only what it launched ({names})"
    if found.empty:
        count, names = len(found.empty), some(list(found.empty), NAMED)
        nodes = "1 node that is empty is" if count == 1 else f"{count:,} nodes that are empty are"
        yield f"{nodes} deleted by hand: HTAS deletes only what it launched ({names})"


NAMED = 6
"""Nodes that are named in a line of text; documents name all."""


def _held(held: HeldNode) -> dict[str, Any]:
    return {
        "node": held.node,
        "flavour": held.flavour,
        "pricePerHour": price_text(held.nanos_per_hour),
        "rule": held.rule,
        "pods": list(held.pods),
        "podsPinned": list(held.pinned),
        "message": held.message,
    }


def _worth(worth: FlavourWorth) -> dict[str, Any]:
    return {
        "flavour": worth.name,
        "pricePerHour": price_text(worth.nanos_per_hour),
        "dearestPricePerHour": price_text(worth.dearest_nanos),
        "inMix": worth.in_mix,
        "mixWithoutItPerHour": price_text(worth.without_nanos),
        "worthPerHour": price_text(worth.worth_nanos),
        "worthPerMonth": price_text(a_month(worth.worth_nanos)),
        "worthKnownToPerHour": price_text(worth.error_nanos),
        "dominatedBy": worth.dominated_by,
        "isNeeded": worth.is_needed,
    }


def _choice(choice: Choice, now: int) -> dict[str, Any]:
    return {
        "flavours": list(choice.flavours),
        "nodes": choice.nodes,
        "nodesOfTodayLeft": choice.stuck,
        "pricePerHour": price_text(choice.nanos_per_hour),
        "savesPerHour": price_text(now - choice.nanos_per_hour),
        "savesPerMonth": price_text(a_month(now - choice.nanos_per_hour)),
    }


class SimulationLine(msgspec.Struct, frozen=True):
    """One line of an export: a stage, a flavour, a choice of few, a rule or several, a node that is held, a node whose
    flavour was recognised, or something the dump lacks.

    `price_per_hour` is the cluster's (of a flavour: without it; of a rule: once lifted; of a node: its own), and
    `saves_per_hour` what that saves against now (of a flavour: what it is worth; of a rule: what it costs).
    """

    section: str
    name: str
    nodes: int
    pods: int
    price_per_hour: str
    saves_per_hour: str
    saves_per_month: str
    currency: str
    detail: str


def lines(simulated: Simulated) -> Sequence[SimulationLine]:
    answer = simulated.answer
    now, best = answer.now.nanos_per_hour, answer.consolidated.nanos_per_hour

    def line(section: str, name: str, nodes: int, pods: int, price: int, saves: int, detail: str) -> SimulationLine:
        texts = price_text(price), price_text(saves), price_text(a_month(saves))
        return SimulationLine(section, name, nodes, pods, *texts, answer.currency, detail)

    stages = {
        "now": answer.now,
        "packed": answer.packed,
        "consolidated": answer.consolidated,
        "bought-anew": answer.anew,
        "nothing-held": answer.free,
        "nothing-held-packed": answer.free_packed,
    }
    found = []
    for name, mix in stages.items():
        told = " ".join(f"{flavour}={count}" for flavour, count in mix.flavours.items())
        found.append(line("stage", name, mix.nodes, mix.moves, mix.nanos_per_hour, now - mix.nanos_per_hour, told))
    found.append(line("stage", "lower-bound", 0, 0, answer.bound_nanos, now - answer.bound_nanos, ""))
    for worth in answer.worths:
        beside = f"price={price_text(worth.nanos_per_hour)} dominatedBy={worth.dominated_by or ''}"
        found.append(line("flavour", worth.name, worth.in_mix, 0, worth.without_nanos, worth.worth_nanos, beside))
    for choice in answer.choices:
        price = choice.nanos_per_hour
        found.append(line("best-few", " ".join(choice.flavours), choice.nodes, 0, price, now - price, ""))
    for rule in answer.rules:
        price = rule.after_nanos
        found.append(line("rule", rule.rule, rule.nodes, rule.pods, price, best - price, rule.remedy))
    for each in answer.sets:
        price = each.after_nanos
        found.append(line("rule-set", " ".join(each.rules), each.nodes, each.pods, price, best - price, ""))
    for held in answer.held:
        told = f"{held.rule}: {held.message}"
        found.append(line("held-node", held.node, 1, len(held.pods), held.nanos_per_hour, 0, told))
    found += [line("recognised-node", each.node, 1, 0, 0, 0, _recognition(each)) for each in simulated.recognised]
    lacking = ((" ".join(gap.resources), f"the dump has {gap.lacks}: {gap.assumed}") for gap in simulated.gaps)
    found += [line("doubt", "", 0, 0, 0, 0, doubt) for doubt in simulated.doubts]
    found += [line("assumed", resources, 0, 0, 0, 0, text) for resources, text in lacking]
    if lacks := of_lacking_requests(answer.lacking):
        found.append(line("assumed", "requests", 0, answer.lacking.pods, 0, 0, lacks))
    found += [line("presumed", "", 0, 0, 0, 0, text) for text in presumed(answer)]
    return found


def _recognition(each: Recognised) -> str:
    if each.is_stated:
        return f"{each.flavour} (stated)"
    as_large = f"; as large: {' '.join(each.others)}" if each.others else ""
    return f"{each.flavour} (by its size{as_large})"
