"""Which flavours are worth offering: what each saves beside the others, and how far few of them go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from htas.model.flavours import Flavour, dominating
from htas.model.policy import NodeGroup, Policy, Workload
from htas.planning.what_if.adopting import AdoptedCluster
from htas.planning.what_if.arranging import Arrangement, Shelves, bought_anew, cheapest, packed
from htas.planning.what_if.estimating import Estimates

MOST = 3
"""So many flavours are chosen one after another: the first few save nearly everything."""


class FlavourWorth(msgspec.Struct, frozen=True):
    """A flavour of the price file: how many the cheapest mix has, and what that mix would cost without it.

    `without_nanos` is never below the mix's price: a cheaper mix that is found without a flavour becomes the cheapest.
    """

    name: str
    nanos_per_hour: int
    in_mix: int
    without_nanos: int
    worth_nanos: int
    dominated_by: str | None = None
    error_nanos: int = 0
    """By so much the search is known to err: a smaller difference counts as none."""
    dearest_nanos: int = 0
    """Its price in its dearest zone; `nanos_per_hour` is that of its cheapest."""
    is_needed: bool = False
    """Some pods fit no other flavour."""


class Choice(msgspec.Struct, frozen=True):
    """The best few flavours: the one added to those before, and what the work costs on them alone."""

    flavours: tuple[str, ...]
    nanos_per_hour: int
    nodes: int
    stuck: int
    """Nodes of today that stay since none of these flavours would hold their pods."""


def _beyond(nanos: int, error: int) -> int:
    """A difference that is more than the search errs by: asked with all flavours, it found so much less than the best.

    What is smaller says nothing of a flavour, but which way the search happened to go.
    """
    return nanos if nanos > error else 0


def _on_sale(policy: Policy) -> list[tuple[NodeGroup, Flavour]]:
    """What each group would buy, with the labels and taints that its nodes are given."""
    return [
        (
            group,
            msgspec.structs.replace(
                flavour,
                labels={**flavour.labels, **group.labels},
                taints=tuple(dict.fromkeys((*flavour.taints, *group.taints))),
            ),
        )
        for group in policy.groups
        if group.is_elastic
        for flavour in policy.flavours_of(group)
    ]


def dominated(policy: Policy) -> dict[str, str | None]:
    """By flavour the cheapest other that would do instead in every group that buys it; None: there is none.

    A spot machine of the same size does not do instead of another where its group taints it.
    """
    sales = _on_sale(policy)
    found: dict[str, str | None] = {}
    for flavour in policy.catalogue.flavours:
        instead = [
            {each.name for its, each in sales if _takes_as_much(its, group) and dominating(sold, [each]) is not None}
            for group, sold in sales
            if sold.name == flavour.name
        ]
        names = set[str].intersection(*instead) if instead else set[str]()
        better = [each for each in policy.catalogue.flavours if each.name in names]
        cheapest_one = min(better, key=lambda each: (each.nanos_per_hour, each.name), default=None)
        found[flavour.name] = cheapest_one.name if cheapest_one is not None else None
    return found


def _takes_as_much(group: NodeGroup, other: NodeGroup) -> bool:
    return group.workload in (Workload.ANY, other.workload)


class Offering:
    """Buys the same work anew with different sets of flavours; each set is asked once.

    `packed` is the same work on fewer of the nodes that are there, for which no flavour is needed at all: no set comes
    to more than that, and none is missed by more.
    """

    def __init__(
        self, present: AdoptedCluster, pinned: Collection[str], asked: Callable[[int], None] = lambda _: None
    ) -> None:
        self._asked = asked
        self._present = present
        self._pinned = frozenset(pinned)
        self._known: dict[frozenset[str], Arrangement] = {}
        self._estimated: dict[int, Estimates] = {}
        self.packed = packed(present)
        self.names = tuple(flavour.name for flavour in present.policy.catalogue.flavours)
        self._dominated = dominated(present.policy)
        sold = {flavour.name for _, flavour in _on_sale(present.policy)}
        self.sensible = tuple(name for name in self.names if name in sold and self._dominated[name] is None)
        """Those that some group buys and no other makes superfluous."""

    def best(self) -> Arrangement:
        """The cheapest found with any of the flavours, or with none bought; of equal mixes that of the most."""
        return cheapest(self.bought(), self.packed)

    def bought(self) -> Arrangement:
        """The cheapest mix found that is bought, of any of the flavours."""
        return self._best_of(self.names)

    def shelves(self) -> Shelves:
        """All flavours, and the few with which a cheaper mix was found that holds no less."""
        of_all = self._with(self.names)
        few = min(self._known, key=lambda key: (self._known[key].hourly_nanos, -len(key), sorted(key)))
        few |= self._of_today(self._known[few].kept.keys() - of_all.kept.keys())
        mix = self._with(few)
        is_better = mix.hourly_nanos < of_all.hourly_nanos and mix.kept.keys() <= of_all.kept.keys()
        return (None, few) if is_better else (None,)

    def alone(
        self, present: AdoptedCluster, pinned: Collection[str], below: int
    ) -> list[tuple[Arrangement, frozenset[str]]]:
        """What is bought for some work of each flavour alone, the cheapest first; only what may cost less than
        `below`."""
        mixes: list[tuple[Arrangement, frozenset[str]]] = []
        for name in self._promising(present, [frozenset((name,)) for name in self.sensible]):
            if self._estimate(present, name) >= min([below, *(mix.hourly_nanos for mix, _ in mixes)]):
                break
            mixes.append((self.bought_anew(present, pinned, name), name))
        return sorted(mixes, key=lambda item: (item[0].hourly_nanos, sorted(item[1])))

    def _promising(self, present: AdoptedCluster, sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
        """Sets of flavours, that of the lowest estimate first."""
        return sorted(sets, key=lambda names: (self._estimate(present, names), sorted(names)))

    def _estimate(self, present: AdoptedCluster, names: frozenset[str]) -> int:
        """What the work costs on these flavours at least, where it fills them; nodes with pods that none holds stay."""
        return self._estimates(present).least(names)

    def _expected(self, names: frozenset[str]) -> int:
        """What a purchase of these flavours comes to at least. Much work fills all choices about as well: no choice
        comes nearer to its estimate than the nearest so far."""
        estimates = self._estimates(self._present)
        least = estimates.least(names)
        known = [(mix.hourly_nanos, estimates.least(key)) for key, mix in self._known.items()]
        nearest = min((found / estimate for found, estimate in known if estimate), default=1.0)
        return int(least * max(nearest, 1.0)) if estimates.is_large else least

    def _estimates(self, present: AdoptedCluster) -> Estimates:
        if id(present) not in self._estimated:
            self._estimated[id(present)] = Estimates(present)
        return self._estimated[id(present)]

    def _of_today(self, nodes: Collection[str]) -> frozenset[str]:
        """The flavours on offer that some of the present nodes are of."""
        mine = {node.flavour for node in self._present.snapshot.cluster.nodes if node.name in nodes}
        return frozenset(name for name in self.names if name in mine)

    def _best_of(self, names: Collection[str]) -> Arrangement:
        """What is bought of some of these flavours can be bought of all of them: no mix counts as dearer than that."""
        mine = frozenset(names)
        mix = self._with(mine)
        smaller = [key for key in self._known if key < mine]
        return cheapest(mix, *(self._known[key] for key in sorted(smaller, key=lambda key: (-len(key), sorted(key)))))

    def _with(self, names: Collection[str]) -> Arrangement:
        key = frozenset(names)
        if key not in self._known:
            self._asked(len(self._known))
            self._known[key] = self._bought_anew(self._present, self._pinned, key)
        return self._known[key]

    def bought_anew(
        self, present: AdoptedCluster, pinned: Collection[str], names: Collection[str] | None
    ) -> Arrangement:
        """What is bought of these flavours (None: of all) for the same work under other rules.

        Rules only decide which nodes stay. Where the same nodes stay as here, the same is bought.
        """
        sold = frozenset(self.names if names is None else names)
        is_same = self._pinned == set(pinned) and _ask_for_the_same_nodes(present, self._present)
        return self._with(sold) if is_same else self._bought_anew(present, pinned, sold)

    def _bought_anew(self, present: AdoptedCluster, pinned: Collection[str], names: frozenset[str]) -> Arrangement:
        """Nodes whose pods are too large for the flavours stay at once: they need not be found out by a plan."""
        return bought_anew(present, pinned, names, self._estimates(present).too_large_for(names))

    def worths(self) -> tuple[FlavourWorth, ...]:
        """Every flavour, the most useful first. One that the mix does not have is missed by nobody: it is worth 0."""
        settled = self._settled()
        error = max(0, self._with(self.names).hourly_nanos - settled.hourly_nanos)
        best = cheapest(settled, self.packed)
        bought = self._bought(best) if best is settled else {}
        flavours = self._present.policy.catalogue.flavours
        sold = {flavour.name: flavour for flavour in self._present.monthly.flavours}
        worths = []
        for flavour in flavours:
            count = bought.get(flavour.name, 0)
            others = self._best_without(flavour.name) if count and len(flavours) > 1 else best
            without = cheapest(others, self.packed) if count else best
            worths.append(
                FlavourWorth(
                    flavour.name,
                    sold[flavour.name].nanos_per_hour,
                    count,
                    without.nanos_per_hour,
                    _beyond(without.nanos_per_hour - best.nanos_per_hour, error),
                    self._dominated[flavour.name],
                    error,
                    dearest_nanos=max(
                        (each.nanos_per_hour for each in sold[flavour.name].prices),
                        default=sold[flavour.name].nanos_per_hour,
                    ),
                    is_needed=bool(count) and self._is_needed(flavour.name),
                )
            )
        return tuple(sorted(worths, key=lambda worth: (-worth.worth_nanos, -worth.in_mix, worth.name)))

    def _settled(self) -> Arrangement:
        """The best mix that is bought, once none is found that does better without one of its flavours."""
        while True:
            best = self._best_of(self.names)
            if len(self.names) > 1:
                for name in self._bought(best):
                    self._best_without(name)
            if self._best_of(self.names) is best:
                return best

    def _best_without(self, name: str) -> Arrangement:
        return self._best_of([each for each in self.names if each != name])

    def _is_needed(self, name: str) -> bool:
        """Whether nodes of today stay without a flavour since no other would hold their pods."""
        others = self._with([each for each in self.names if each != name])
        return not others.kept.keys() <= self._with(self.names).kept.keys()

    def _bought(self, mix: Arrangement) -> Mapping[str, int]:
        """The flavours of a mix less the nodes of today in it."""
        counts = dict(mix.flavours)
        for node in self._present.snapshot.cluster.nodes:
            if node.name in mix.kept and node.flavour in counts:
                counts[node.flavour] -= 1
        return counts

    def stays(self) -> Mapping[str, str]:
        """Nodes of today that stay with all flavours on offer, with the reason of those whose pods none would hold."""
        return self._with(self.names).kept

    def stuck(self) -> int:
        """Nodes of today with pods that no flavour at all would hold."""
        return self._stuck(self._with(self.names))

    def _stuck(self, mix: Arrangement) -> int:
        return len(mix.kept.keys() - self._pinned)

    def choices(self, most: int = MOST) -> tuple[Choice, ...]:
        """The best flavour alone, the best beside it, and so on; ends where another one is not bought or saves nothing.

        Greedy: the best pair need not contain the best single flavour, but to try all pairs of 40 flavours is to buy
        780 times. None are told where nothing bought is cheaper than what is there, packed; nor is one of them dearer.
        """
        if self.best() is self.packed:
            return ()
        open_names = list(self.sensible)
        chosen: tuple[str, ...] = ()
        choices: list[Choice] = []
        least: int | None = None
        while open_names and len(choices) < most:
            mixes: list[tuple[Arrangement, str]] = []
            sets = {frozenset((*chosen, name)): name for name in open_names}
            for names in self._promising(self._present, sets):
                best_found = min((mix.hourly_nanos for mix, _ in mixes), default=None)
                if best_found is not None and self._expected(names) >= best_found:
                    break
                mixes.append((self._best_of(names), sets[names]))
            bought = [(mix, name) for mix, name in mixes if self._bought(mix).get(name)]
            best = min(bought, key=lambda item: (item[0].hourly_nanos, item[0].nodes, item[1]), default=None)
            if best is None or (least is not None and best[0].hourly_nanos >= least):
                break
            mix, name = best
            chosen, least = (*chosen, name), mix.hourly_nanos
            open_names.remove(name)
            told = cheapest(mix, self.packed)
            choices.append(Choice(chosen, told.nanos_per_hour, told.nodes, self._stuck(mix) if told is mix else 0))
        return tuple(choices)


def _ask_for_the_same_nodes(one: AdoptedCluster, other: AdoptedCluster) -> bool:
    """Whether no pod of two clusters with the same pods may run elsewhere in one of them."""
    pods = zip(one.snapshot.cluster.pods, other.snapshot.cluster.pods, strict=True)
    return all(pod.constraints == its.constraints for pod, its in pods)
