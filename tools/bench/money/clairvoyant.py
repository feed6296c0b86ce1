"""What a clairvoyant would pay for the same work at the same times: an offline near-optimum, by annealing.

Given are when each pod began and ended under HTAS. Asked is which pods share a machine, and of which flavour: nobody is
moved. A machine is ordered so that it is there when its first pod begins, and given back when its last one has ended:

    bill of a machine = price × billed(start + last end − first begin), of the cheapest flavour that holds its peak

Least over all partitions of the pods into machines. It is a set partition, NP-hard; annealing moves single pods between
machines, swaps two, joins two machines and parts one, from where the longest were placed first, where they add least.
What it finds is a feasible way, so that a bill divided by it may be a little too low, and never too high by it.
`exact` enumerates every set of pods and is for a dozen of them: it is what the annealing is tested against.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from ortools.sat.python import cp_model

from htas.model.billing import Billing
from htas.model.flavours import Catalogue

STEPS_A_POD = 5000
RUNS = 3
"""The steps are shared among so many searches: one may end where nothing small leads any further."""
COOLING = 1e-3
"""The last temperature as a share of the first one, which is a pod's mean share of the first bill."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A pod's time on the machine it is given, and what it asks for, in the order of `Offered.capacity`."""

    begin: float
    end: float
    asks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Offered:
    capacity: tuple[int, ...]
    price: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Stays by begin, and flavours by price."""

    stays: tuple[Stay, ...]
    offered: tuple[Offered, ...]
    billing: Billing
    startup_s: float

    def bill(self, machine: Sequence[int]) -> float:
        """Price × billed seconds of a machine with some stays (numbers, ascending); inf: no flavour holds them."""
        if not machine:
            return 0.0
        peak = self._peak(machine)
        price = next(
            (each.price for each in self.offered if all(p <= c for p, c in zip(peak, each.capacity, strict=True))), None
        )
        if price is None:
            return math.inf
        last = max(self.stays[i].end for i in machine)
        begin = self.stays[machine[0]].begin
        return price * self.billing.seconds(begin - self.startup_s, self.startup_s + last - begin)

    def _peak(self, machine: Sequence[int]) -> list[int]:
        """The most of each resource that is asked for at one time; it is reached when somebody begins."""
        peak = list(self.stays[machine[0]].asks)
        there: list[Stay] = []
        for i in machine:
            new = self.stays[i]
            there = [each for each in there if each.end > new.begin]
            there.append(new)
            for r in range(len(peak)):
                asked = sum(each.asks[r] for each in there)
                if asked > peak[r]:
                    peak[r] = asked
        return peak


def problem(stays: Sequence[Stay], catalogue: Catalogue, names: Sequence[str], startup_s: float) -> Problem:
    """`names` are the resources that `asks` counts, `pods` among them."""
    offered = [
        Offered(tuple(amounts.get(name, 0) for name in names), flavour.nanos_per_hour)
        for flavour in catalogue.flavours
        for amounts in (flavour.allocatable.amounts(),)
    ]
    offered.sort(key=lambda each: each.price)
    ordered = sorted(stays, key=lambda stay: (stay.begin, stay.end))
    return Problem(tuple(ordered), tuple(offered), catalogue.billing, startup_s)


def near_optimum(of: Problem, seed: int = 1, steps_a_pod: int = STEPS_A_POD) -> float:
    """The least bill found; the same for a seed."""
    if not of.stays:
        return 0.0
    steps = steps_a_pod * len(of.stays) // RUNS
    return min(_Search(of, Random(f"{seed}/{i}")).run(steps) for i in range(RUNS))


def exact(of: Problem) -> float:
    """The least bill, proved: a set partition over all sets of stays. For a dozen at most."""
    numbers = range(len(of.stays))
    sets = [each for size in range(1, len(of.stays) + 1) for each in combinations(numbers, size)]
    bills = {each: of.bill(each) for each in sets}
    model = cp_model.CpModel()
    used = {each: model.new_bool_var(str(each)) for each, bill in bills.items() if math.isfinite(bill)}
    for i in numbers:
        model.add_exactly_one(var for each, var in used.items() if i in each)
    model.minimize(sum(int(bills[each]) * var for each, var in used.items()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if solver.solve(model) != cp_model.OPTIMAL:
        raise ValueError("no flavour holds some pod")
    return float(solver.objective_value)


@dataclass(slots=True)
class _Search:
    """Machines as ascending lists of stays, and their bills beside them."""

    of: Problem
    random: Random
    machines: list[list[int]] = field(default_factory=list)
    bills: list[float] = field(default_factory=list)
    where: dict[int, int] = field(default_factory=dict)
    """The machine of each stay."""
    known: dict[tuple[int, ...], float] = field(default_factory=dict)

    def bill(self, content: list[int]) -> float:
        """Of a machine; most are looked at again and again."""
        key = tuple(content)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.of.bill(content)
        return found

    def run(self, steps: int) -> float:
        self._put(sorted(range(len(self.of.stays)), key=lambda i: self.of.stays[i].begin - self.of.stays[i].end))
        self.where = {i: number for number, content in enumerate(self.machines) for i in content}
        now = best = sum(self.bills)
        first = now / len(self.of.stays)
        for step in range(steps):
            change = self._change()
            if change is None:
                continue
            worse = sum(self.bill(content) - self.bills[number] for number, content in change.items())
            if worse <= 0 or self.random.random() < math.exp(-worse / (first * COOLING ** (step / steps))):
                now += worse
                best = min(best, now)
                self._accept(change)
        return best

    def _change(self) -> dict[int, list[int]] | None:
        """Two machines as they would be: a stay changes over, two change places, both are joined, or one is parted."""
        kind, i = self.random.random(), self.random.randrange(len(self.of.stays))
        here, there = self.where[i], self._other(i)
        ours, theirs = self.machines[here], self.machines[there]
        if here == there:
            return None
        if kind < 0.6:
            return {here: _without(ours, i), there: sorted([*theirs, i])}
        if kind < 0.85:
            if not theirs:
                return None
            other = self.random.choice(theirs)
            return {here: sorted([*_without(ours, i), other]), there: sorted([*_without(theirs, other), i])}
        if kind < 0.93:
            return {here: [], there: sorted([*ours, *theirs])}
        later = [each for each in ours if each >= i]
        return {here: [each for each in ours if each < i], self._empty(): later} if len(later) < len(ours) else None

    def _other(self, i: int) -> int:
        """The machine of a stay that begins about then, or (one time in ten) an empty one."""
        if self.random.random() < 0.1:
            return self._empty()
        near = i + round(self.random.gauss(0, max(3.0, len(self.of.stays) / 8)))
        return self.where[min(max(near, 0), len(self.of.stays) - 1)]

    def _empty(self) -> int:
        found = next((number for number, content in enumerate(self.machines) if not content), None)
        if found is None:
            found = len(self.machines)
            self.machines.append([])
            self.bills.append(0.0)
        return found

    def _accept(self, change: Mapping[int, list[int]]) -> None:
        for number, content in change.items():
            self.machines[number], self.bills[number] = content, self.bill(content)
            for each in content:
                self.where[each] = number

    def _put(self, stays: Sequence[int]) -> None:
        """Each to the machine on which it adds least to the bill, or to one of its own."""
        for i in stays:
            least, best, content = self.bill([i]), None, [i]
            alone = least
            for number, there in enumerate(self.machines):
                joined = there.copy()
                insort(joined, i)
                added = self.bill(joined) - self.bills[number]
                if added < least:
                    least, best, content = added, number, joined
            if best is None:
                self.machines.append(content)
                self.bills.append(alone)
            else:
                self.machines[best] = content
                self.bills[best] += least


def _without(content: Sequence[int], gone: int) -> list[int]:
    return [each for each in content if each != gone]
