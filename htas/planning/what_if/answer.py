"""The answer to "what would my cluster cost under HTAS", in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from htas.model.constraints import Taint
from htas.model.nodes import Node
from htas.model.policy import Consolidation, Policy
from htas.model.reasons import Blocking
from htas.model.resources import LackingRequests
from htas.model.snapshot import ClusterView
from htas.planning.cluster.local_storage import UnstatedStorage, unstated_storage
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.what_if.adopting import AdoptedCluster, adopt
from htas.planning.what_if.agents import Agents
from htas.planning.what_if.arranging import Arrangement, Shelves, as_it_is, cheapest, packed
from htas.planning.what_if.bounding import bound_nanos
from htas.planning.what_if.combining import LiftedOutcome, Lifting, RuleSet, rule_sets
from htas.planning.what_if.lifting import (
    THRESHOLD,
    Held,
    all_lifted,
    holding,
    lifts,
    pinned,
    pins_of,
    raised_threshold,
    slowed,
)
from htas.planning.what_if.offering import Choice, FlavourWorth, Offering
from htas.planning.what_if.pending import with_pending
from htas.planning.what_if.pinning import PINNED, told
from htas.planning.what_if.presuming import Told, what_it_takes
from htas.planning.what_if.reusing import reusing


def untold(step: str, done: float) -> None:
    """Report no progress."""


class HeldNode(msgspec.Struct, frozen=True):
    """A node of today that stays, and what holds it: pods of one rule, or the node itself (no pods)."""

    node: str
    flavour: str
    nanos_per_hour: int
    rule: str
    pods: tuple[str, ...]
    message: str
    pinned: tuple[str, ...] = ()
    """Of the pods, those that may run on no other node, as they name it."""


class RuleCost(msgspec.Struct, frozen=True):
    """A rule that holds pods, and what would be saved an hour if it alone did not: after packing, and bought anew, each
    against the same way with the rules as they are.

    `after_nanos` is what the cluster would cost then, in the cheaper of both ways.
    """

    rule: str
    remedy: str
    pods: int
    nodes: int
    such_as: str
    packing_nanos: int
    anew_nanos: int
    after_nanos: int


class CoveringBudget(msgspec.Struct, frozen=True):
    """A disruption budget that covers pods on nodes that could go."""

    name: str
    allows: int
    pods: int


class WhatIfAnswer(msgspec.Struct, frozen=True):
    """Prices in billionths an hour. `anew` is the mix that the planner would buy for the work beside what is held;
    `consolidated` is that, or `packed` where it is not cheaper. `bound_nanos`: no arrangement costs less that leaves
    alone what is held, whatever labels and taints new machines are given. `free` is the cheapest found were
    nothing held, by buying or by any other way; `offered` is the cheapest mix bought then, by which the worth of
    flavours is judged, since a half-empty node that must stay makes every flavour look superfluous.
    """

    taken_at: float
    currency: str
    now: Arrangement
    packed: Arrangement
    anew: Arrangement
    free: Arrangement
    free_packed: Arrangement
    """The work on fewer of the present nodes, were nothing held."""
    offered: Arrangement
    offered_stuck: int
    """Nodes of today that stay then, since no flavour would hold their pods."""
    bound_nanos: int
    pods: int
    waiting: int
    """Pending pods for which no node of today has room: they are left out."""
    seated: int
    """Pending pods that count as work on today's nodes."""
    opted_in: int
    """Pods of services that were taken to be movable."""
    told: Told
    annotated_when_lifted: int
    """Pods of services that are moved, and nobody has opted in, with the best of the rules lifted."""
    consolidation: Consolidation
    """The configuration's rules for it, which buying anew takes."""
    unpriced: Mapping[str, int]
    rules: tuple[RuleCost, ...]
    sets: tuple[RuleSet, ...]
    held: tuple[HeldNode, ...]
    budgets: tuple[CoveringBudget, ...]
    worths: tuple[FlavourWorth, ...]
    choices: tuple[Choice, ...]
    best_lift: RuleCost | RuleSet | None = None
    """The rules whose end brings the bill down most, the fewest of them; None: none would."""
    few: tuple[str, ...] = ()
    """The flavours alone of which `anew` was bought; empty: nothing cheaper was found than with all of them."""
    free_bound_nanos: int = 0
    """No arrangement costs less, were nothing held."""
    whole: tuple[str, ...] = ()
    """Flavours in some mix of which neither the price file nor a node says what is left for pods: all of it, then."""
    diskless: UnstatedStorage = UnstatedStorage()
    """Flavours of which nobody says what local disk they have, where pods ask for some."""
    gangs: Mapping[str, int] = {}
    """Groups whose pods start together, and how many pods of each could be moved, whatever holds them now."""
    zones: tuple[str, ...] = ()
    """Where flavours without any were taken to be sold, if some of the work goes by zones."""
    tainted: Mapping[str, tuple[Taint, ...]] = {}
    """Flavours that no node shows, with the taints taken for theirs, which all nodes with their devices bear."""
    agents: tuple[Agents, ...] = ()
    """Pods of custom controllers, one on each node, that count as what comes with a node."""
    lacking: LackingRequests = LackingRequests()
    """Running pods without requests: the savings rest on an assumption about them."""

    @property
    def consolidated(self) -> Arrangement:
        return self.anew if self.anew.hourly_nanos < self.packed.hourly_nanos else self.packed

    @property
    def saved_nanos(self) -> int:
        """What is saved with all rules as they are; below 0 where only monthly caps make it dearer."""
        return self.now.nanos_per_hour - self.consolidated.nanos_per_hour


class NothingPricedError(ValueError):
    """No node's instance type is in the price file: there is nothing to compare."""


Steps = Callable[[str, float], None]
"""Called with what is worked out next, and the share of the work that is done, 0 to 1."""


def what_if(
    view: ClusterView,
    policy: Policy,
    now: float,
    *,
    as_annotated: bool = False,
    tell: Steps = untold,
) -> WhatIfAnswer:
    """What a cluster costs now, packed, and bought anew with the policy's flavours; what stands in the way of less.

    Reads nothing but its arguments. Raises NothingPricedError.
    """
    view, seated = with_pending(view, policy, now)
    present = adopt(view, policy, now, as_annotated=as_annotated)
    start = as_it_is(present)
    if not start.nodes:
        raise NothingPricedError(_nothing_priced(present))
    held = holding(present)
    pins = pinned(present, held)
    tell("packing", 0.0)
    after_packing = packed(present)
    tell("the value of each flavour", 0.05)
    freed = all_lifted(present)
    # Nearly all time goes into purchases for choices of flavours: some three for each flavour.
    most = max(1, 3 * len(policy.catalogue.flavours))
    offering = Offering(
        freed,
        pinned(freed, holding(freed)),
        lambda asked: tell("the value of each flavour", 0.05 + 0.65 * min(1.0, asked / most)),
    )
    choices, worths = offering.choices(), offering.worths()
    tell("new machines", 0.7)
    anew, shelves = _anew(present, pins, offering)
    anew = reusing(present, anew)
    lifting = Lifting(present, tuple(held), LiftedOutcome(after_packing, anew), shelves, (offering.bought(),))
    tell("the price of each rule", 0.8)
    rules = _rules(lifting)
    tell("sets of rules", 0.9)
    sets = rule_sets(lifting, [_as_set(rule) for rule in rules])
    free_packed = cheapest(offering.packed, after_packing, *(each.packed for each in lifting.known.values()))
    free = cheapest(offering.best(), free_packed, anew, *(each.anew for each in lifting.known.values()))
    free = reusing(freed, free)
    best = _best_lift((*rules, *sets), lifting)
    lifted = lifting.reusing(frozenset(_rules_of(best))) if best is not None else lifting.as_is
    as_is = lifting.as_is if lifting.as_is.nanos_per_hour < start.nanos_per_hour else lifted
    return WhatIfAnswer(
        taken_at=now,
        currency=policy.catalogue.currency,
        now=start,
        packed=after_packing,
        anew=anew,
        free=free,
        free_packed=free_packed,
        offered=offering.best(),
        offered_stuck=offering.stuck(),
        bound_nanos=bound_nanos(present, pins),
        pods=sum(pod.node is not None for pod in present.snapshot.cluster.pods) - seated,
        waiting=present.waiting,
        seated=seated,
        opted_in=len(present.opted_in),
        told=what_it_takes(present, as_is),
        annotated_when_lifted=len(lifted.best.moved & present.opted_in),
        free_bound_nanos=bound_nanos(freed, pinned(freed, holding(freed))),
        whole=_whole(present, anew, free),
        diskless=_diskless(present),
        consolidation=present.rules.consolidation,
        unpriced=present.unpriced,
        rules=rules,
        sets=sets,
        held=_held_nodes(present, held, pins, anew),
        budgets=_budgets(present),
        worths=tuple(_in_use(worth, free) for worth in worths),
        choices=choices,
        few=tuple(sorted(shelves[-1] or ())),
        gangs=_gangs(present),
        best_lift=best,
        zones=present.zones,
        tainted=present.tainted,
        agents=present.agents,
        lacking=present.lacking,
    )


def _anew(present: AdoptedCluster, pins: Collection[str], offering: Offering) -> tuple[Arrangement, Shelves]:
    """(the cheapest that is bought of any flavours, the choices of flavours that led to it)."""
    shelves = offering.shelves()
    bought = [offering.bought_anew(present, pins, shelf) for shelf in shelves]
    alone = offering.alone(present, pins, below=cheapest(*bought).hourly_nanos)[:1]
    anew = cheapest(*bought, *(mix for mix, _ in alone))
    if anew is bought[0]:
        shelves = (None,)
    elif anew not in bought:
        shelves = (None, *(shelf for _, shelf in alone))
    return anew, shelves


def _best_lift(lifts: Iterable[RuleCost | RuleSet], lifting: Lifting) -> RuleCost | RuleSet | None:
    best = min(lifts, key=lambda each: each.after_nanos, default=None)
    return best if best is not None and best.after_nanos < lifting.as_is.nanos_per_hour else None


def _rules_of(lift: RuleCost | RuleSet) -> tuple[str, ...]:
    return lift.rules if isinstance(lift, RuleSet) else (lift.rule,)


def _whole(present: AdoptedCluster, *mixes: Arrangement) -> tuple[str, ...]:
    """Flavours that nobody has seen and that keep nothing for the system: a machine will offer less to pods."""
    used = {name for mix in mixes for name in mix.flavours}
    return tuple(
        flavour.name
        for flavour in present.policy.catalogue.flavours
        if flavour.name in used and flavour.name not in present.snapshot.learned and not flavour.reserved.memory_bytes
    )


def _diskless(present: AdoptedCluster) -> UnstatedStorage:
    cluster = present.snapshot.cluster
    return unstated_storage(present.policy.catalogue, cluster.pods, present.snapshot.learned)


def _in_use(worth: FlavourWorth, mix: Arrangement) -> FlavourWorth:
    """A flavour that the mix that is told does not have is worth nothing."""
    return worth if mix.flavours.get(worth.name) else msgspec.structs.replace(worth, worth_nanos=0)


def _as_set(rule: RuleCost) -> RuleSet:
    return RuleSet((rule.rule,), rule.pods, rule.nodes, rule.packing_nanos, rule.anew_nanos, rule.after_nanos)


def _nothing_priced(present: AdoptedCluster) -> str:
    sold = ", ".join(flavour.name for flavour in present.policy.catalogue.flavours)
    if not present.unpriced:
        return "there are no nodes, and nothing to price"
    there = ", ".join(
        f"{name or '(no label)'} ({count} {'node' if count == 1 else 'nodes'})"
        for name, count in present.unpriced.items()
    )
    return (
        f"no node's instance type has a price: the nodes are {there}, the price file has {sold}; name its types in the"
        " price file, or state the type of nodes: --type 'worker-*=FLAVOUR'"
    )


def _rules(lifting: Lifting) -> tuple[RuleCost, ...]:
    """Every rule that holds something or whose end would save something, dearest first."""
    held, as_is = lifting.held, lifting.as_is
    by_rule: dict[str, list[Held]] = {}
    for each in held:
        by_rule.setdefault(each.rule, []).append(each)
    costs = []
    for lift in lifts(lifting.present, held):
        mine = by_rule.get(lift.rule, [])
        found = lifting.of(lift)
        saved = (
            as_is.packed.nanos_per_hour - found.packed.nanos_per_hour,
            as_is.anew.nanos_per_hour - found.anew.nanos_per_hour,
        )
        if mine or any(saved):
            mine = mine or (slowed(lifting.present) if lift.rule == Blocking.NOT_ENOUGH_PDB else [])
            example = (mine[0].pod or mine[0].node) if mine else ""
            counts = sum(bool(each.pod) for each in mine), len({each.node for each in mine})
            remedy = raised_threshold(lifting.present, found.packed) if lift.rule == THRESHOLD else lift.remedy
            costs.append(RuleCost(lift.rule, remedy, *counts, example, *saved, found.nanos_per_hour))
    return tuple(sorted(costs, key=lambda cost: (cost.after_nanos, cost.rule)))


def _held_nodes(
    present: AdoptedCluster, held: Iterable[Held], pins: Mapping[str, str], anew: Arrangement
) -> tuple[HeldNode, ...]:
    """The nodes of today that stay when all else is bought anew, dearest first."""
    holders: dict[str, list[Held]] = {}
    for each in held:
        holders.setdefault(each.node, []).append(each)
    must = pins.keys() | {name for name, why in anew.kept.items() if why}  # not those that serve like a bought one
    nodes = [node for node in present.snapshot.cluster.nodes if node.name in must]
    named = _naming_nodes(present)
    found = [
        _held_node(present, node, holders.get(node.name, ()), anew.kept.get(node.name, ""), named) for node in nodes
    ]
    return tuple(sorted(found, key=lambda each: (-each.nanos_per_hour, each.node)))


def _naming_nodes(present: AdoptedCluster) -> dict[str, str]:
    """Pods that may run on nodes of today alone, with why in words."""
    pins = pins_of(present)
    found = ((pod, pins.of(pod)) for pod in present.snapshot.cluster.pods)
    return {pod.key: told(pod, pin) for pod, pin in found if pin is not None}


def _held_node(
    present: AdoptedCluster, node: Node, held: Iterable[Held], stuck: str, naming_nodes: Mapping[str, str]
) -> HeldNode:
    held = list(held)
    pods, first = tuple(dict.fromkeys(each.pod for each in held if each.pod)), next(iter(held), None)
    flavour, price = node.flavour or "", present.price(node)
    if first is not None:
        rules = " ".join(dict.fromkeys(each.rule for each in held))
        pinned_here = tuple(each.pod for each in held if each.rule == PINNED)
        return HeldNode(node.name, flavour, price, rules, pods, first.message, pinned_here)
    if node.name in present.fixed:
        stays = present.fixed[node.name]
        return HeldNode(node.name, flavour, price, str(stays.rule), (), stays.message)
    pod = stuck.partition(":")[0]
    if pod in naming_nodes:
        return HeldNode(node.name, flavour, price, PINNED, (pod,), naming_nodes[pod], (pod,))
    return HeldNode(node.name, flavour, price, "NoFlavourFits", (pod,), stuck.partition("; 0/")[0])


def _gangs(present: AdoptedCluster) -> dict[str, int]:
    """On nodes that could go."""
    pods = (pod for pod in present.snapshot.cluster.pods if pod.gang and pod.node is not None)
    counts = Counter(f"{pod.namespace}/{pod.gang}" for pod in pods if pod.node not in present.fixed)
    return dict(sorted(counts.items()))


def _budgets(present: AdoptedCluster) -> tuple[CoveringBudget, ...]:
    """The budgets that pods on nodes that could go are charged to, the strictest first.

    A pod that is not Ready may go without any; one that two budgets cover does not go, whatever they allow: it is held.
    """
    counts: Counter[int] = Counter()
    ledger = BudgetLedger(present.snapshot.cluster.budgets)
    budgets = ledger.budgets
    for pod in present.snapshot.cluster.pods:
        charged = ledger.charged(pod) if pod.node not in present.fixed and not pod.is_daemon else []
        if pod.node is not None and len(charged) == 1:
            counts.update(charged)
    found = [
        CoveringBudget(f"{budgets[i].namespace}/{budgets[i].name}", max(0, budgets[i].disruptions_allowed), count)
        for i, count in counts.items()
    ]
    return tuple(sorted(found, key=lambda budget: (budget.allows, budget.name)))
