"""Sets of rules: where no rule alone frees a node, which few of them together would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from htas.planning.what_if.adopting import AdoptedCluster
from htas.planning.what_if.arranging import Arrangement, Shelves, cheapest, cheapest_anew, packed
from htas.planning.what_if.lifting import Held, Lift, holding, pinned, without
from htas.planning.what_if.reusing import reusing

TRIED_FIRST = 8
"""So many sets are tried of those that free some node, the smallest first."""
STEPS = 4
"""From the best of them on, so often what frees more nodes is added."""
TOLD = 2
"""Of each size so many."""


class RuleSet(msgspec.Struct, frozen=True):
    """Rules, and what would be saved an hour if all of them were lifted: after packing, and bought anew, each against
    the same way with the rules as they are.

    `nodes` are those that nothing but these rules holds, `pods` those that some of them holds there.
    """

    rules: tuple[str, ...]
    pods: int
    nodes: int
    packing_nanos: int
    anew_nanos: int
    after_nanos: int
    """What the cluster would cost then, in the cheaper of both ways."""


@dataclass(frozen=True, slots=True)
class LiftedOutcome:
    """The work with some rules lifted: on fewer of the present nodes, and bought anew."""

    packed: Arrangement
    anew: Arrangement

    @property
    def best(self) -> Arrangement:
        return cheapest(self.packed, self.anew)

    @property
    def nanos_per_hour(self) -> int:
        """In the way that is cheaper as the daemon compares."""
        return self.best.nanos_per_hour


@dataclass(slots=True)
class Lifting:
    """Lifts sets of rules; each set is asked once.

    Packing and buying are heuristics, and may find less where they are free to do more. So nothing counts as dearer
    than what was found with fewer of its rules lifted: no rule saves less than nothing.
    """

    present: AdoptedCluster
    held: tuple[Held, ...]
    as_is: LiftedOutcome
    shelves: Shelves = (None,)
    unheld: tuple[Arrangement, ...] = ()
    """What was found, with any choice of flavours, to be bought anew where nothing holds a node that could go."""
    known: dict[frozenset[str], LiftedOutcome] = field(default_factory=dict)

    def of(self, lift: Lift) -> LiftedOutcome:
        """With one rule lifted."""
        return self._asked(frozenset((lift.rule,)), lift.lifted)

    def without(self, rules: frozenset[str]) -> LiftedOutcome:
        if rules in self.known:
            return self.known[rules]
        return self._asked(rules, without(self.present, rules, self.held))

    def reusing(self, rules: frozenset[str]) -> LiftedOutcome:
        """Without these rules, and with nodes of today where they do for machines that would be bought."""
        found, free = self.without(rules), without(self.present, rules, self.held)
        return LiftedOutcome(found.packed, reusing(free, found.anew))

    def _asked(self, rules: frozenset[str], free: AdoptedCluster) -> LiftedOutcome:
        inside = [self.as_is, *(found for key, found in self.known.items() if key < rules)]
        held = holding(free)
        pins = pinned(free, held)
        known = [each.anew for each in inside] if held else [*self.unheld, *(each.anew for each in inside)]
        if pins.keys() != pinned(self.present, self.held).keys():  # where the same nodes stay, the same is bought
            known.insert(0, cheapest_anew(free, pins, self.shelves))
        self.known[rules] = LiftedOutcome(
            cheapest(packed(free), *(each.packed for each in inside)), cheapest(known[0], *known[1:])
        )
        return self.known[rules]


def rule_sets(lifting: Lifting, alone: Iterable[RuleSet]) -> tuple[RuleSet, ...]:
    """The smallest sets of several rules that save what no rule in them saves without the others; small ones first.

    A node goes when all the rules that hold it are lifted, so these are the sets to try; beside them, what several of
    these come to together, since the pods of one node alone may find no room elsewhere. `alone` is what single rules
    were found to save.
    """
    search = _Search(lifting, {frozenset(each.rules): each for each in alone})
    search.smallest()
    search.larger()
    return search.least()


@dataclass(slots=True)
class _Search:
    lifting: Lifting
    known: dict[frozenset[str], RuleSet] = field(default_factory=dict)

    def smallest(self) -> None:
        """What each node would take; smaller sets first."""
        families = [rules for rules in self._families() if len(rules) > 1]
        for rules in families[:TRIED_FIRST]:
            self._lifted(rules)

    def larger(self) -> None:
        """From the best set on, each time with what frees the dearest nodes for the fewest rules more."""
        if not self.known:
            return
        best = min(self.known.values(), key=lambda each: (each.after_nanos, len(each.rules)))
        lifted, families = frozenset(best.rules), self._families()
        for _ in range(STEPS):
            more = [(rules - lifted, price) for rules, price in families.items() if not rules <= lifted]
            if not more:
                return
            added, _price = min(more, key=lambda item: (len(item[0]), -item[1], sorted(item[0])))
            lifted |= added
            self._lifted(lifted)

    def least(self) -> tuple[RuleSet, ...]:
        """Those to tell, once each of them was asked without each of its rules, and so on: none has a rule too many."""
        while True:
            told = _telling(self.known.values(), self.lifting.as_is.nanos_per_hour)
            less = {frozenset(each.rules) - {rule} for each in told for rule in each.rules}
            unasked = sorted((rules for rules in less if rules not in self.known), key=sorted)
            if not unasked:
                return told
            for rules in unasked:
                self._lifted(rules)

    def _families(self) -> Mapping[frozenset[str], int]:
        """The rules that hold a node, and the price of all nodes held by just these; the fewest rules first."""
        by_node: dict[str, set[str]] = {}
        for each in self.lifting.held:
            by_node.setdefault(each.node, set()).add(each.rule)
        prices = {node.name: self.lifting.present.price(node) for node in self.lifting.present.snapshot.cluster.nodes}
        families: dict[frozenset[str], int] = {}
        for node, rules in by_node.items():
            families[frozenset(rules)] = families.get(frozenset(rules), 0) + prices[node]
        return dict(sorted(families.items(), key=lambda item: (len(item[0]), -item[1], sorted(item[0]))))

    def _lifted(self, rules: frozenset[str]) -> RuleSet:
        if rules not in self.known:
            found, as_is, freed = self.lifting.without(rules), self.lifting.as_is, self._freed(rules)
            self.known[rules] = RuleSet(
                tuple(sorted(rules)),
                len({each.pod for each in self.lifting.held if each.node in freed and each.pod}),
                len(freed),
                as_is.packed.nanos_per_hour - found.packed.nanos_per_hour,
                as_is.anew.nanos_per_hour - found.anew.nanos_per_hour,
                found.nanos_per_hour,
            )
        return self.known[rules]

    def _freed(self, rules: frozenset[str]) -> set[str]:
        """Nodes that these rules hold and no other."""
        mine = {each.node for each in self.lifting.held if each.rule in rules}
        return mine - {each.node for each in self.lifting.held if each.rule not in rules}


def _telling(tried: Iterable[RuleSet], as_is_nanos: int) -> tuple[RuleSet, ...]:
    """Of the sets tried those of several rules that save more than every smaller one within them."""
    told: list[RuleSet] = []
    for each in sorted(tried, key=lambda each: (len(each.rules), each.after_nanos, each.rules)):
        inside = [other.after_nanos for other in told if set(other.rules) <= set(each.rules)]
        if each.after_nanos < min(inside, default=as_is_nanos):
            told.append(each)
    by_size: dict[int, list[RuleSet]] = {}
    for each in told:
        by_size.setdefault(len(each.rules), []).append(each)
    return tuple(each for size, several in sorted(by_size.items()) if size > 1 for each in several[:TOLD])
