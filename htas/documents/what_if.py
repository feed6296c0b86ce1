"""What the cluster would cost with a rule lifted, another price, a flavour more, or a service that grows. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Annotated

import msgspec

from htas.documents.afterwards import carried_out
from htas.documents.least import Least
from htas.documents.remedies import meaning
from htas.documents.replicas import services_of, with_replicas
from htas.documents.words import (
    NOTHING_AS_IT_IS,
    NOTHING_FOUND,
    NOTHING_TO_SAVE,
    WOULD_SAVE,
    counted,
    did_you_mean,
    of_lacking_requests,
    saving,
)
from htas.model.contradictions import out_of_reach, told
from htas.model.flavours import Catalogue, Flavour
from htas.model.money import DEAREST, PriceError, parse_price, price_text
from htas.model.plan import Plan
from htas.model.policy import NodeGroup, Policy
from htas.model.quantity import QuantityError, parse_quantity, to_milli, to_units
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory
from htas.planning.planner import plan
from htas.planning.what_if.adopting import AdoptedCluster, adopt
from htas.planning.what_if.arranging import Arrangement, Shelves, as_it_is, cheapest, cheapest_anew, packed
from htas.planning.what_if.bounding import bound_nanos
from htas.planning.what_if.combining import LiftedOutcome, Lifting
from htas.planning.what_if.lifting import Held, holding, lifts, pinned, without
from htas.planning.what_if.monthly import by_the_month
from htas.ports import MOST_TOLD, GivenError, first_told

ALL_CHOICES = 3
"""Of so many lifted rules each choice is asked."""
MOST_ANEW = 4_000
"""Pods added, times how often besides all are placed anew: 10,000 pods and 20 flavours took 24 s on 16 nodes."""
MOST_CORES_M, MOST_MEMORY = 10_000_000, 2**50
"""Of a flavour that is made up: five times the largest machine that anybody sells."""
PODS_ON_A_NODE = 110
"""Of a flavour that is made up, as kubelets have it."""

Short = Annotated[str, msgspec.Meta(max_length=253)]


class NewFlavour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A flavour that is not on sale: cores and bytes as Kubernetes quantities, the price an hour a decimal."""

    name: Short
    cpu: Short
    memory: Short
    price: Short


class Changes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be different: rules lifted, prices an hour by flavour, flavours added, replicas by service
    (`shop/Deployment/web`, over all its ReplicaSets).
    """

    lift: Annotated[tuple[Short, ...], msgspec.Meta(max_length=50)] = ()
    prices: Mapping[Short, Short] = {}
    flavours: Annotated[tuple[NewFlavour, ...], msgspec.Meta(max_length=20)] = ()
    replicas: Mapping[Short, int] = {}


class Mix(msgspec.Struct, frozen=True):
    """Machines that hold the work: how many of each flavour, their price an hour, and how many pods would move."""

    nodes: int
    price_per_hour: str
    flavours: Mapping[str, int]
    moves: int


class Lifted(msgspec.Struct, frozen=True):
    """A rule that holds nodes: how many pods on how many nodes, one of these, and what would lift it."""

    rule: str
    remedy: str
    pods: int
    nodes: int
    such_as: str = ""


class Service(msgspec.Struct, frozen=True):
    """Pods that are counted together, and what each asks for."""

    name: str
    replicas: int
    cpu_m: int
    memory_bytes: int


class OnSale(msgspec.Struct, frozen=True):
    """A flavour and how many of the nodes are of it."""

    name: str
    cpu_m: int
    memory_bytes: int
    price_per_hour: str
    nodes: int


class Waits(msgspec.Struct, frozen=True):
    """Pods that no machine would be bought for: why, in the plan's words of most of them, and what would change it."""

    reason: str
    pods: int
    message: str
    remedy: str


class Unchanged(msgspec.Struct, frozen=True):
    """The same moment without the change: as it stands, and the cheapest that was found."""

    now: Mix
    best: Mix


class Simulated(msgspec.Struct, frozen=True):
    """The cluster as it would be: as it stands, packed onto fewer of its nodes, and bought anew where that is cheaper.
    `least_per_hour` is the lower bound of `htas simulate` with these rules lifted: no arrangement costs less.
    `unpriced` nodes are in none of the figures.

    `bought` are machines for pods that wait, `waiting` pods that no machine would be bought for, by reason. Where
    services grow or flavours are added all figures have those machines and their pods (`counts_bought`), else none.
    """

    currency: str
    now: Mix
    packed: Mix
    best: Mix
    least_per_hour: str
    bought: Mapping[str, int]
    waiting: Mapping[str, int]
    rules: Sequence[Lifted]
    unpriced: int = 0
    headline: str = ""
    """As `htas simulate --as-annotated` begins, with the same figures."""
    counts_bought: bool = False
    as_is: Unchanged | None = None
    """What a change is compared with; None: nothing was changed."""
    lacking: str = ""
    """How many pods state no requests, and what counts for them; empty: all state them."""
    why_waiting: Sequence[Waits] = ()
    """The same as `waiting`, with what forbids it."""
    least_is_reachable: bool = False
    """Whether the lower bound is near enough to the best found to say something of it."""


class Levers(msgspec.Struct, frozen=True):
    """What can be changed, and the cluster as it is."""

    as_is: Simulated
    services: Sequence[Service]
    flavours: Sequence[OnSale]


def levers(view: ClusterView, policy: Policy, as_is: Simulated) -> Levers:
    """Rules, services (the largest first) and flavours that `simulated` takes."""
    counts = Counter(node.flavour for node in view.nodes)
    on_sale = [
        OnSale(
            each.name,
            each.allocatable.cpu_m,
            each.allocatable.memory_bytes,
            price_text(each.nanos_per_hour),
            counts[each.name],
        )
        for each in policy.catalogue.flavours
    ]
    return Levers(as_is, _services(view), on_sale)


def _services(view: ClusterView) -> list[Service]:
    found = [
        Service(name, len(pods), pods[0].requests.cpu_m, pods[0].requests.memory_bytes)
        for name, pods in services_of(view).items()
    ]
    return sorted(found, key=lambda each: (-each.cpu_m * each.replicas, each.name))


def decides_who_waits(change: Changes) -> bool:
    """Whether pods may come, or be bought for, that without it would not be: they are counted then, on both sides."""
    return bool(change.replicas or change.flavours)


def compared(found: Simulated, as_is: Simulated) -> Simulated:
    """With what it is compared with: the same moment, unchanged, and of the same pods."""
    return msgspec.structs.replace(found, as_is=Unchanged(as_is.now, as_is.best))


def simulated(
    view: ClusterView, policy: Policy, now: float, change: Changes, *, counts_bought: bool | None = None
) -> Simulated:
    """Whether what waiting pods are bought counts goes by the change, unless it is said.

    Raises GivenError with what is wrong with a change.
    """
    counts = decides_who_waits(change) if counts_bought is None else counts_bought
    today, (grown, policy) = policy, changed(view, policy, change)
    _refuse_too_much(view, grown, change)
    made = plan(
        ClusterSnapshot(now, grown, memory=Memory.of_long_ago(view.nodes, now), expects_more=False), policy, now
    )
    after = carried_out(grown, made, policy) if counts else view
    present = adopt(after, policy, now, as_annotated=True)
    held = holding(present)
    rules = _rules(present, held)
    known = [each.rule for each in rules]
    for rule in change.lift:
        if rule not in known:
            raise GivenError(f"lift: no rule {rule!r} keeps a node{did_you_mean(rule, known)}")
    shelves = _shelves(policy, change)
    start, found = as_it_is(present), _relaxed(present, held, change.lift, shelves)
    best, lifted = found.best, without(present, change.lift, held)
    if _only_lowers(today, change):
        best = cheapest(best, _at_the_prices_of(today, after, policy, now, change))
    stay = pinned(lifted, holding(lifted))
    least = Least(min(bound_nanos(lifted, stay), best.nanos_per_hour))
    return Simulated(
        policy.catalogue.currency,
        _mix(start),
        _mix(found.packed),
        _mix(best),
        price_text(least.nanos),
        dict(Counter(item.flavour for item in made.launches)),
        dict(Counter(item.reason.value for item in made.unplaced)),
        rules,
        sum(present.unpriced.values()),
        _headline(start.nanos_per_hour, best.nanos_per_hour, policy.catalogue.currency, rules, out_of_reach(view)),
        counts,
        lacking=of_lacking_requests(present.lacking),
        why_waiting=_why_waiting(made),
        least_is_reachable=least.is_reachable_from(best.nanos_per_hour),
    )


def _why_waiting(made: Plan) -> list[Waits]:
    told = defaultdict[str, Counter[str]](Counter)
    for item in made.unplaced:
        told[item.reason][item.message.partition("; ")[0]] += 1  # what follows tells of each node
    return [
        Waits(str(reason), words.total(), words.most_common(1)[0][0], meaning(reason).remedy)
        for reason, words in told.items()
    ]


def _headline(before: int, after: int, currency: str, rules: Sequence[Lifted], contradicted: Mapping[str, str]) -> str:
    if after < before:
        return WOULD_SAVE + "".join(saving(before - after, before, currency))
    if contradicted:
        return f"{NOTHING_FOUND}: {told(contradicted)}"
    return NOTHING_AS_IT_IS if rules else NOTHING_TO_SAVE


def _shelves(policy: Policy, change: Changes) -> Shelves:
    """All flavours, and besides those of today with each first few of the added: an offer more never makes the answer
    dearer, though the purchase, a heuristic, may do better with fewer.
    """
    added = [new.name for new in change.flavours]
    names = {flavour.name for flavour in policy.catalogue.flavours}
    return (None, *(frozenset(names.difference(added[size:])) for size in range(len(added))))


def _only_lowers(policy: Policy, change: Changes) -> bool:
    """Whether prices are changed, and none goes up."""
    before = {flavour.name: flavour.nanos_per_hour for flavour in policy.catalogue.flavours}
    return bool(change.prices) and all(parse_price(text) <= before[name] for name, text in change.prices.items())


def _at_the_prices_of(today: Policy, view: ClusterView, policy: Policy, now: float, change: Changes) -> Arrangement:
    """The best at today's prices, at the lower ones of `policy`: it holds as well, and may be the better find."""
    unpriced = msgspec.structs.replace(change, prices={}, replicas={})
    present = adopt(view, changed(view, today, unpriced)[1], now, as_annotated=True)
    held = holding(present)
    found = _relaxed(present, held, change.lift, _shelves(policy, change))
    best = found.best
    own = Counter(node.flavour for node in view.nodes if today.has_own_price(node))

    def less(before: Catalogue, after: Catalogue) -> int:
        falls = ((name, before.named(name), after.named(name)) for name in change.prices)
        return sum(
            (best.flavours.get(name, 0) - own[name]) * (was.nanos_per_hour - now.nanos_per_hour)
            for name, was, now in falls
            if was is not None and now is not None
        )

    catalogues = today.catalogue, policy.catalogue
    return msgspec.structs.replace(
        best,
        nanos_per_hour=best.nanos_per_hour - less(*map(by_the_month, catalogues)),
        hourly_nanos=best.hourly_nanos - less(*catalogues),
    )


def _relaxed(present: AdoptedCluster, held: Sequence[Held], lift: Sequence[str], shelves: Shelves) -> LiftedOutcome:
    """The work with these rules lifted; never dearer than with fewer of them, where what was found holds just as well.

    Asked besides are every choice of the first three, and from there on one rule more at a time, as somebody lifts
    them: with all choices of eight rules the answer would take 256 plans.
    """
    as_is = LiftedOutcome(packed(present), cheapest_anew(present, pinned(present, held), shelves))
    lifting = Lifting(present, tuple(held), as_is, shelves, known={frozenset(): as_is})
    for each in _choices(lift):
        lifting.without(frozenset(each))
    return lifting.reusing(frozenset(lift))


def _choices(lift: Sequence[str]) -> list[tuple[str, ...]]:
    rules = tuple(dict.fromkeys(lift))
    few = rules[:ALL_CHOICES]
    choices = [each for size in range(1, len(few) + 1) for each in combinations(few, size)]
    return choices + [rules[:size] for size in range(ALL_CHOICES + 1, len(rules) + 1)]


def _refuse_too_much(view: ClusterView, grown: ClusterView, change: Changes) -> None:
    """Raises GivenError: all pods are placed anew for each flavour that is added and each choice of rules, and of
    prices that fall, for those of today, too.
    """
    come = len({pod.key for pod in grown.pods}.difference(pod.key for pod in view.pods))
    more = (1 + len(change.flavours)) * (1 + len(_choices(change.lift))) - 1
    more *= 2 if change.prices else 1
    if come * more > MOST_ANEW:
        raise GivenError(
            f"replicas: {come:,} pods more, with {counted(len(change.flavours), 'flavour')} added and"
            f" {counted(len(change.lift), 'rule')} lifted, are too much at once; with those at most"
            f" {MOST_ANEW // more:,} pods more are tried"
        )


def _mix(found: Arrangement) -> Mix:
    return Mix(found.nodes, price_text(found.nanos_per_hour), found.flavours, found.moves)


def _rules(present: AdoptedCluster, held: Sequence[Held]) -> list[Lifted]:
    pods, nodes = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for each in held:
        pods[each.rule].add(each.pod)
        nodes[each.rule].add(each.node)
    found = [
        Lifted(lift.rule, lift.remedy, len(pods[lift.rule]), len(nodes[lift.rule]), min(pods[lift.rule], default=""))
        for lift in lifts(present, held)
    ]
    return sorted(found, key=lambda each: (-each.nodes, each.rule))


def changed(view: ClusterView, policy: Policy, change: Changes) -> tuple[ClusterView, Policy]:
    """With other replicas, other prices and more flavours, which every node group may buy.

    Raises GivenError with all that is wrong, a line each: who mends one thing would else be told of the next. What was
    meant is looked for as long as it is told.
    """
    faults: list[str] = []
    grown, known = view, {flavour.name: flavour for flavour in policy.catalogue.flavours}
    flavours = dict(known)
    for name, text in change.prices.items():
        with _noted(faults):
            nanos = _price(text, f"prices.{name}")
            if name not in known:
                meant = did_you_mean(name, list(known)) if len(faults) < MOST_TOLD else ""
                raise GivenError(f"prices.{name}: there is no flavour {name!r}{meant}")
            flavours[name] = _at(known[name], nanos)
    for new in change.flavours:
        with _noted(faults):
            if new.name in flavours:
                raise GivenError(
                    f"flavours.{new.name}: there is a flavour {new.name!r} already; change its price instead"
                )
            flavours[new.name] = _made_up(new)
    with _noted(faults):
        grown = with_replicas(view, change.replicas)
    if faults:
        raise GivenError(first_told(faults))
    groups = tuple(_may_buy(group, [new.name for new in change.flavours]) for group in policy.groups)
    catalogue = msgspec.structs.replace(policy.catalogue, flavours=tuple(flavours.values()))
    return grown, msgspec.structs.replace(policy, catalogue=catalogue, groups=groups)


@contextmanager
def _noted(faults: list[str]) -> Iterator[None]:
    try:
        yield
    except GivenError as error:
        faults.extend(str(error).splitlines())


def _may_buy(group: NodeGroup, names: Sequence[str]) -> NodeGroup:
    return msgspec.structs.replace(group, flavours=(*group.flavours, *names)) if group.is_elastic else group


def _at(flavour: Flavour, nanos: int) -> Flavour:
    """A flavour at another price, which is that of all its zones."""
    prices = tuple(msgspec.structs.replace(each, nanos_per_hour=nanos) for each in flavour.prices)
    return msgspec.structs.replace(flavour, nanos_per_hour=nanos, prices=prices)


def _made_up(new: NewFlavour) -> Flavour:
    if not new.name:
        raise GivenError("flavours: name the flavour that is added")
    try:
        cpu, memory = to_milli(parse_quantity(new.cpu)), to_units(parse_quantity(new.memory))
    except QuantityError as error:
        raise GivenError(f"flavours.{new.name}: {error}") from None
    if cpu <= 0 or memory <= 0:
        raise GivenError(f"flavours.{new.name}: has no cores or no memory; write such as cpu 8, memory 32Gi")
    if cpu > MOST_CORES_M or memory > MOST_MEMORY:
        raise GivenError(f"flavours.{new.name}: at most 10,000 cores and 1Pi of memory are tried")
    price = _price(new.price, f"flavours.{new.name}.price")
    return Flavour(new.name, Resources(cpu, memory, 0, PODS_ON_A_NODE), price)


def _price(text: str, where: str) -> int:
    try:
        nanos = parse_price(text)
    except PriceError as error:
        raise GivenError(f"{where}: {error}") from None
    if nanos > DEAREST:
        raise GivenError(f"{where}: {text!r} is above a million an hour")
    return nanos
