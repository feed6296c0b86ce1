"""Greedy autoscaling: machines with the best cost-efficiency score until the waiting pods have room.

Source: HTAS paper Algorithm 3. The paper subtracts capacities from summed requests; here each purchase is followed by
simulated placement, so that fragmentation, spread, anti-affinity and DaemonSet overhead correct it at once: what is
still without room is the demand of the next choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from htas.model.policy import Policy
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Ints
from htas.planning.cluster.feasibility.resources import exceeds
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.demand import Demand
from htas.planning.place.placing import Placer, fill, order_of
from htas.planning.provision.cost_efficiency import SAMPLE, Trials, Unit, coverage, score_of_use
from htas.planning.provision.levelling import placed_since, take_off
from htas.planning.provision.limits import UNLIMITED, Allowance
from htas.planning.provision.namespace_limits import machines_left
from htas.planning.provision.offers import Kind, Offer
from htas.planning.provision.parts import Floats, Part, later_than, parts_of
from htas.planning.provision.steady import NOT_STEADY, Steady, worth_in_turn, worth_when_full
from htas.planning.rental.new_machines import ExpectedRental


@dataclass(frozen=True, slots=True)
class Batch:
    """Machines of one offer added to the simulation together."""

    offer: Offer
    rows: range


class Way(Enum):
    """How machines are judged. None is best for all work: some are tried, and the lowest expected rental is bought."""

    TOGETHER = "with what is bought for afterwards, which fills them, too"
    ALONE = "by the part of the work that they are bought for"
    BY_WORK = "as TOGETHER, cpu and memory being worth what the work asks for of them"
    BALANCED = "by pods that match what a machine has left (`balanced.py`)"
    BY_HOLD = "as ALONE, the parts being told apart by how long they hold a machine, too"


CHUNK = 128
"""Demands tried between two looks at whether the room left on new machines is enough for any more of them."""

AS_GOOD = 0.99
"""Scores so near the best are as good: of those one that what waits fills goes first, then the cheapest machine.

Work still to come ends at times of its own, and a larger machine is held by whichever ends last. An m1.medium of the
HTAS paper's Table 7 is 0.1 % cheaper a GiB than an m3.small; bought for jobs of 4 GiB to come, it cost days with a
night run of jobs 2 to 5 % more.
"""

LEVELLED = 8
"""So often at most a part is bought for again since some had counted on domains without those bought last."""

LEVELLED_OFFERS = 8
"""So many kinds of machines are tried then for each one bought."""


class GreedyProvisioner:
    """Adds machines to a simulation until the demands it is given are placed, or nothing may be bought."""

    def __init__(
        self,
        sim: Simulation,
        policy: Policy,
        offers: Sequence[Offer],
        allowance: Allowance,
        placer: Placer,
        steady: Steady = NOT_STEADY,
        way: Way = Way.TOGETHER,
        rental: ExpectedRental | None = None,
    ) -> None:
        self.sim = sim
        self.placer = placer
        self.policy = policy
        self.offers = offers
        self.allowance = allowance
        self.batches: list[Batch] = []
        self._unit = Unit.of(policy.catalogue)
        self._steady = steady
        self._worth: dict[Kind, float] = {}
        self._lasting: dict[Kind, float] = {}
        self._orders = {group.name: order_of(group.packing) for group in policy.groups}
        self._ordinal = 0
        self._mark = len(sim.log)
        self._way = way
        self._hold = rental.hold if rental is not None and way is Way.BY_HOLD else None
        self._later: Sequence[Demand] = ()
        self._all_work, self._at_hand = Trials(), Trials()
        self.has_judged_together = False
        """Whether some machine was judged with work that other parts ask for; see `later_than`."""

    def buy_for(self, demands: Sequence[Demand]) -> None:
        """Reduce the demands' counts to what could not be given room. Demands are in placing order."""
        if self._way is Way.BY_WORK:
            self._unit = Unit.of_work(demands)
        parts = parts_of(demands, self.offers, self._hold)
        is_together = self._way in (Way.TOGETHER, Way.BY_WORK)
        for number, part in enumerate(parts):
            self._later = later_than(parts[number + 1 :]) if is_together else ()
            self._all_work, self._at_hand = Trials(), Trials()
            self.has_judged_together |= bool(self._later)
            self._use_what_is_bought(part)
            self._buy_for_part(part)

    def worth(self, offer: Offer) -> float:
        """The score of a machine once work that comes steadily has filled it; 0: no such work comes."""
        if offer.kind not in self._worth:
            self._worth[offer.kind] = worth_when_full(offer, self._steady.at_once, self._unit)
        return self._worth[offer.kind]

    def lasting(self, offer: Offer) -> float:
        """The score of a machine that stays as full as the batch work there is keeps it; 0: none comes steadily."""
        if offer.kind not in self._lasting:
            self._lasting[offer.kind] = worth_in_turn(offer, self._steady, self._unit)
        return self._lasting[offer.kind]

    def add(self, offer: Offer, count: int) -> range:
        """Add machines of an offer, counted against the limits."""
        nodes = [offer.node(self.policy, f"bought-{self._ordinal + i}") for i in range(count)]
        self._ordinal += count
        rows = self.sim.add_nodes(nodes)
        self.allowance.take(offer, count)
        self.batches.append(Batch(offer, rows))
        return rows

    def _use_what_opened(self, part: Part) -> None:
        """Once a machine has taken a pod, spread or affinity may let others onto nodes that refused them before.

        Each of them may open further ones: of three zones each lets one more pod in once the other two have theirs.
        """
        before = None
        while part.may_open_nodes and before != part.waiting:
            before = part.waiting
            opened = part.let_in_by_others
            for demand in opened.left:
                demand.count -= self.placer.place(self.sim, demand.cls, demand.count)
            self._use_what_is_bought(opened)

    def _use_what_is_bought(self, part: Part) -> None:
        """Machines bought one after another in one group are one run of rows: a pod goes to the best of them all."""
        rows: range | None = None
        group = ""
        for batch in self.batches:
            if batch.offer not in part.offers:
                continue
            if rows is not None and rows.stop == batch.rows.start and group == batch.offer.group.name:
                rows = range(rows.start, batch.rows.stop)
                continue
            if rows is not None:
                self._place(part, rows, group)
            rows, group = batch.rows, batch.offer.group.name
        if rows is not None:
            self._place(part, rows, group)

    def _buy_for_part(self, part: Part) -> None:
        """Buy for all; then, where some had counted on domains without the machines bought last, level and buy on."""
        bought = len(self.batches)
        self._buy_until_done(part, is_level=True)
        for turn in range(LEVELLED if part.spreads else 0):
            waiting = part.waiting
            self._level(part)
            if part.waiting == waiting:
                return
            if turn == 0 and len(self.batches) > bought:
                self._sell_last(part)  # it was chosen for those that were left, and is what the others must not exceed
            self._buy_until_done(part, is_level=False)

    def _sell_last(self, part: Part) -> None:
        """Undo the last purchase: its pods are left again."""
        batch = self.batches.pop()
        self.allowance.take(batch.offer, -len(batch.rows))
        demands = {id(demand.cls): demand for demand in part.demands}
        for cls, row, count in placed_since(self.sim, self._mark).values():
            if row in batch.rows:
                self.sim.place(cls, row, -count)
                demands[id(cls)].count += count
        for row in batch.rows:
            self.sim.give_up(row)
        self._use_what_is_bought(part)

    def _buy_until_done(self, part: Part, *, is_level: bool) -> None:
        """Buy until nobody is left or nothing helps. Unless `is_level`, all are levelled with each machine bought."""
        useless: set[int] = set()
        while left := part.left:
            offer = self._best_offer(part, left, useless) if is_level else self._best_levelled(part, left, useless)
            if offer is None:
                return
            if self._buy_in_best_zone(offer, part, useless, is_level=is_level):
                useless.clear()
            else:
                useless.add(id(offer))

    def _best_levelled(self, part: Part, left: Sequence[Demand], useless: set[int]) -> Offer | None:
        """Of the best scores the machine that gives most pods room for its price once all are levelled with it.

        The score takes it to be filled by those left: five of 25 by a small one, beside which 20 may not stay.
        """
        tried, best, most = set(useless), None, 0.0
        for _ in range(LEVELLED_OFFERS):
            offer = self._best_offer(part, left, tried)
            if offer is None:
                break
            tried |= {id(each) for each in part.offers if _is_alike(each, offer)}
            gave, _ = self._buy(offer, part, is_level=False, keep=lambda _: False)
            if gave > most * offer.price:
                best, most = offer, gave / max(offer.price, 1)
        return best or self._best_offer(part, left, useless)

    def _buy_in_best_zone(self, offer: Offer, part: Part, useless: set[int], *, is_level: bool) -> bool:
        """Buy an offer; where work spreads, zones are not alike: in the zone where a machine gives most pods room.

        With (5, 3, 3) pods in three zones and a skew of 2, a machine in the first one gets nobody, in another one two.
        """
        zones = self._other_zones(offer, part, useless)
        if not zones:
            return self._buy(offer, part, is_level=is_level)[1]
        most = 0, offer
        for each in (offer, *zones):
            gave, is_kept = self._buy(each, part, is_level=is_level, keep=lambda rows: self._is_full(rows, part))
            if is_kept:
                return True
            if each is offer and not gave:
                return False
            if gave > most[0]:
                most = gave, each
        return self._buy(most[1], part, is_level=is_level)[1]

    def _other_zones(self, offer: Offer, part: Part, useless: set[int]) -> list[Offer]:
        if not part.may_open_nodes:
            return []
        same = [each for each in part.offers if _is_alike(each, offer) and each is not offer]
        zones = [each for each in same if id(each) not in useless and self._allowed(each, part) > 0]
        return sorted(zones, key=lambda each: (self.allowance.in_zone(each), each.zone or ""))

    def _buy(
        self, offer: Offer, part: Part, *, is_level: bool, keep: Callable[[range], bool] = lambda _: True
    ) -> tuple[int, bool]:
        """(how many pods more have room with machines of an offer and what opens with them, whether they are kept).

        They are kept where they give room to anybody and `keep`, asked about their rows, agrees.
        """
        count = min(self._whole_machines(offer, part), self._allowed(offer, part))
        counts = [demand.count for demand in part.demands]
        with self.sim.fork() as branch:
            rows = self.add(offer, count)
            if self._place(part, rows, offer.group.name):
                self._use_what_opened(part)
            if not is_level:
                self._level(part)
            gave = sum(counts) - part.waiting
            if gave > 0 and keep(rows):
                branch.commit()
        if not branch.is_committed:
            self._give_back(offer, count, part, counts)
        return max(gave, 0), branch.is_committed

    def _allowed(self, offer: Offer, part: Part) -> int:
        """How many machines of an offer may still be bought for a part."""
        count = self.allowance.bound(offer).count
        return min(count, machines_left(self.sim, offer, part.limited_to)) if part.limited_to else count

    def _is_full(self, rows: range, part: Part) -> bool:
        """Whether machines would have room for none of those left even if they let them in."""
        room = self._room(slice(rows.start, rows.stop))
        return all(exceeds(demand.cls.requests, room) for demand in part.left)

    def _give_back(self, offer: Offer, count: int, part: Part, counts: Sequence[int]) -> None:
        """Take back what a fork that was dropped leaves: the machines added last, and who was placed."""
        del self.batches[-1]
        self.allowance.take(offer, -count)
        for demand, before in zip(part.demands, counts, strict=True):
            demand.count = before

    def _level(self, part: Part) -> None:
        """Place anew those whom machines bought after theirs forbid to stay; some may be without room then."""
        demands = {id(demand.cls): demand for demand in part.demands if demand.cls.constraints.spread}
        placed = [each for each in placed_since(self.sim, self._mark).values() if id(each[0]) in demands]
        for cls, count in take_off(self.sim, placed):
            demands[id(cls)].count += count
        if part.left:
            self._use_what_is_bought(part)
            self._use_what_opened(part)

    def _best_offer(self, part: Part, left: Sequence[Demand], useless: set[int]) -> Offer | None:
        """The best score; then what lasts, the lower price, the emptier zone, the name. See AS_GOOD for work to come.

        Offers are looked at from the highest score they could have down to where none could be as good any more: of
        2,000 flavours a trial fills a few dozen.
        """
        total, pods_left, left = part.total, part.waiting, [*left, *self._later]
        most = self._most_score(part, left, total)
        waiting = [demand for demand in left if not demand.is_expected]
        self._all_work.update(left)
        if is_more_to_come := len(waiting) < len(left):
            self._at_hand.update(waiting)
        scores: dict[Kind, tuple[float, float]] = {}
        found: list[tuple[tuple[float, float], int]] = []
        best = 0.0
        for i in np.argsort(-most, kind="stable").tolist():
            if most[i] < AS_GOOD * best:
                break
            offer = part.offers[i]
            allowed = self._allowed(offer, part)
            if id(offer) in useless or allowed <= 0:
                continue
            kind = offer.kind
            if kind not in scores:
                # Each pod fits on a machine of any offer of its part: as many machines as pods are enough.
                share = 1.0 if allowed >= pods_left else coverage(offer, total, allowed)
                scores[kind] = self._scores(offer, share, is_more_to_come=is_more_to_come)
            if scores[kind][1] > 0:
                best = max(best, scores[kind][1])
                found.append((scores[kind], i))
        near = [(now, ever, part.offers[i], i) for (now, ever), i in found if ever >= AS_GOOD * best]
        if len(near) == 1:
            return near[0][2]
        lasts = AS_GOOD * max((self.lasting(offer) for _, _, offer, _ in near), default=0.0)
        ranks = [
            (
                -now if now >= AS_GOOD * best else 0.0,
                self.lasting(offer) < lasts,
                offer.price,
                -ever,
                self._zone(offer),
                i,
            )
            for now, ever, offer, i in near
        ]
        return part.offers[min(ranks)[-1]] if ranks else None

    def _scores(self, offer: Offer, share: float, *, is_more_to_come: bool) -> tuple[float, float]:
        """The scores of a machine with the work that waits, and with what is to come, too; `share` may be served."""
        ever = score_of_use(offer, self._all_work.use(offer), self._unit)
        now = score_of_use(offer, self._at_hand.use(offer), self._unit) if is_more_to_come else ever
        return now * share, max(ever, self.worth(offer) if ever else 0.0) * share

    def _zone(self, offer: Offer) -> tuple[int, str]:
        return self.allowance.in_zone(offer), offer.zone or ""

    def _most_score(self, part: Part, left: Sequence[Demand], total: Ints) -> Floats:
        """What no score of an offer exceeds: that of a machine filled with cpu and memory as if work were fluid."""
        if self._steady or not total[[CPU_ROW, MEMORY_ROW]].any():
            return np.full(len(part.offers), np.inf)
        free, prices, weights = part.of_offers()
        is_all = len(left) <= SAMPLE and not self._later
        used = np.minimum(free, total[[CPU_ROW, MEMORY_ROW]]) if is_all else free
        usage = (used / (self._unit.cpu_m, self._unit.memory_bytes) * weights).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            most: Floats = np.where(prices > 0, usage / prices * (1 + 1e-9), np.inf)
        return most

    def _whole_machines(self, offer: Offer, part: Part) -> int:
        """Machines the demand would fill completely, were it fluid: so many at least are needed. One at least.

        Where the flavour is sold in several zones they are bought one by one, so that zones stay in balance.
        """
        if len(offer.flavour.zones) > 1 or part.is_dynamic:
            return 1
        total = part.total
        used = (total > 0) & (offer.free > 0)
        fluid = int((total[used] // offer.free[used]).min()) if used.any() else UNLIMITED
        return max(1, min(fluid, part.waiting))

    def _place(self, part: Part, machines: range, group: str) -> int:
        """Place what fits on machines of a group, in placing order; returns how many pods."""
        order = self._orders[group]
        rows = slice(machines.start, machines.stop)
        requests, counts = part.columns()
        total, start = 0, 0
        while start < len(counts):
            room = self._room(rows)
            hopeful = np.flatnonzero((requests[start:] <= room).all(axis=1) & (counts[start:] > 0))[:CHUNK] + start
            for i in hopeful.tolist():
                demand = part.demands[i]
                if exceeds(requests[i], room):  # those before it have taken the room
                    continue
                placed = fill(self.sim, demand.cls, demand.count, rows, order)
                demand.count -= placed
                total += placed
                room = self._room(rows) if placed else room
            start = int(hopeful[-1]) + 1 if len(hopeful) else len(counts)
        return total

    def _room(self, rows: slice) -> Ints:
        """The most that any machine has left, of each resource."""
        room: Ints = self.sim.table.free[:, rows].max(axis=1)
        return room


def _is_alike(offer: Offer, other: Offer) -> bool:
    """Whether offers differ in their zone alone."""
    return offer.group is other.group and offer.flavour is other.flavour
