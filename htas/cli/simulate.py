"""`htas simulate`: what a cluster would cost under HTAS, worked out from a dump. Nothing is contacted or changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from htas.cli.console import InputError, err
from htas.cli.planning import instant_in, read_view
from htas.config.loader import load_catalogue, load_configuration
from htas.model.money import price_text
from htas.model.plan_document import instant_text
from htas.model.policy import NodeGroup, Policy
from htas.planning.what_if.answer import Answer, HeldNode, NothingPricedError, RuleCost, what_if
from htas.planning.what_if.arranging import Arrangement
from htas.planning.what_if.offering import Choice, FlavourWorth

HOURS_A_MONTH = 730
"""As clouds count: 8,760 hours a year ÷ 12."""


def simulate(dump: Path, flavours: Path | None, config: Path | None, at: str | None, as_annotated: bool) -> Answer:
    """Answer for a dump. Raises InputError and ConfigurationError."""
    policy = _policy(flavours, config)
    view = read_view(dump)
    with err.status("reading", spinner="dots") as status:
        try:
            return what_if(
                view,
                policy,
                instant_in(at, view),
                as_annotated=as_annotated,
                tell=lambda step: status.update(f"working out {step}"),
            )
        except NothingPricedError as error:
            raise InputError(f"{dump}: {error}; name its types in the price file") from None


def _policy(flavours: Path | None, config: Path | None) -> Policy:
    """The configuration's policy with the prices of a file; without a configuration one group that buys everything."""
    if config is None:
        if flavours is None:
            raise InputError("--flavours: name a price file, or a configuration that has one (--config)")
        return Policy("simulated", load_catalogue(flavours), (NodeGroup("nodes"),))
    policy = load_configuration(config).policy
    if flavours is None:
        return policy
    policy = msgspec.structs.replace(policy, catalogue=load_catalogue(flavours))
    if not any(policy.flavours_of(group) for group in policy.groups):
        raise InputError(f"--flavours: no node group of {config} may buy any flavour of {flavours}")
    return policy


# For programs. Prices are decimals as text, exact; `saves` is against now.


def a_month(nanos_per_hour: int) -> int:
    return nanos_per_hour * HOURS_A_MONTH


def document(answer: Answer) -> dict[str, Any]:
    """The answer as a document, with every node and rule."""
    now = answer.now.nanos_per_hour
    return {
        "apiVersion": "htas.io/v1alpha1",
        "kind": "Simulation",
        "takenAt": instant_text(answer.taken_at),
        "currency": answer.currency,
        "hoursAMonth": HOURS_A_MONTH,
        "now": _stage(answer.now, now),
        "packed": _stage(answer.packed, now),
        "consolidated": _stage(answer.consolidated, now),
        "boughtAnew": _stage(answer.anew, now),
        "nothingHeld": _stage(answer.free, now),
        "lowerBoundPerHour": price_text(answer.bound_nanos),
        "pods": answer.pods,
        "podsWaiting": answer.waiting,
        "servicesTakenToBeMovable": answer.opted_in,
        "nodesWithoutPrice": dict(answer.unpriced),
        "rules": [_rule(rule) for rule in answer.rules],
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


def _rule(rule: RuleCost) -> dict[str, Any]:
    return {
        "rule": rule.rule,
        "remedy": rule.remedy,
        "pods": rule.pods,
        "nodes": rule.nodes,
        "liftedPackingSavesPerHour": price_text(rule.packing_nanos),
        "liftedBuyingAnewSavesPerHour": price_text(rule.anew_nanos),
    }


def _held(held: HeldNode) -> dict[str, Any]:
    return {
        "node": held.node,
        "flavour": held.flavour,
        "pricePerHour": price_text(held.nanos_per_hour),
        "rule": held.rule,
        "pods": list(held.pods),
        "message": held.message,
    }


def _worth(worth: FlavourWorth) -> dict[str, Any]:
    return {
        "flavour": worth.name,
        "pricePerHour": price_text(worth.nanos_per_hour),
        "inMix": worth.in_mix,
        "mixWithoutItPerHour": price_text(worth.without_nanos),
        "worthPerHour": price_text(worth.worth_nanos),
        "worthPerMonth": price_text(a_month(worth.worth_nanos)),
        "dominatedBy": worth.dominated_by,
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
    """One line of an export: a stage, a flavour, a choice of few, a rule, or a node that is held.

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


def lines(answer: Answer) -> Sequence[SimulationLine]:
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
        saves = rule.most_nanos
        found.append(line("rule", rule.rule, rule.nodes, rule.pods, best - saves, saves, rule.remedy))
    for held in answer.held:
        told = f"{held.rule}: {held.message}"
        found.append(line("held-node", held.node, 1, len(held.pods), held.nanos_per_hour, 0, told))
    return found
