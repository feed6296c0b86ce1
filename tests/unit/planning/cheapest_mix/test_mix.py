"""The cheapest mix on small instances, judged by brute force and by an assignment model of its own."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest
from ortools.sat.python import cp_model

from htas.planning.solvers.cheapest_mix.exact import prove
from htas.planning.solvers.cheapest_mix.finish import cost_of, covers, tidied
from htas.planning.solvers.cheapest_mix.instance import Effort, Limit, MixProblem, pattern_of
from htas.planning.solvers.cheapest_mix.mix import cheapest
from htas.planning.solvers.cheapest_mix.pricing import Pricer
from tools.bench.pattern_bound import bound_of

GIB = 1024


def instance(
    items: list[tuple[int, int, int, int]],
    kinds: list[tuple[int, int, int]],
    holds: tuple[int, ...] = (1,),
    limits: tuple[Limit, ...] = (),
) -> MixProblem:
    """Items are (cpu, memory, count, level), kinds (cpu, memory, price)."""
    return MixProblem(
        requests=np.array([item[:2] for item in items], dtype=np.int64),
        counts=np.array([item[2] for item in items], dtype=np.int64),
        levels=np.array([item[3] for item in items], dtype=np.int64),
        free=np.array([kind[:2] for kind in kinds], dtype=np.int64),
        prices=np.array([kind[2] for kind in kinds], dtype=np.int64),
        takes=np.ones((len(kinds), len(items)), dtype=np.bool_),
        holds=holds,
        limits=limits,
    )


def least_by_brute_force(work: MixProblem) -> int:
    """The optimum over all ways to part the items into machines: for a handful of pods."""
    requests, free = work.requests.tolist(), work.free.tolist()

    @cache
    def one(held: tuple[int, ...]) -> int | None:
        used = [sum(n * request[r] for n, request in zip(held, requests, strict=True)) for r in range(2)]
        level = max((int(work.levels[i]) for i, n in enumerate(held) if n), default=0)
        costs = [
            work.cost(kind, level)
            for kind in range(len(free))
            if all(u <= f for u, f in zip(used, free[kind], strict=True))
        ]
        return min(costs, default=None)

    @cache
    def least(left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        first = next(i for i, n in enumerate(left) if n)
        best = 10**15
        for held in product(*(range(n + 1) for n in left)):
            price = one(held) if held[first] else None
            if price is not None:
                best = min(best, price + least(tuple(n - h for n, h in zip(left, held, strict=True))))
        return best

    return least(tuple(work.counts.tolist()))


def random_work(random: Random, most_pods: int, levels: int = 1) -> MixProblem:
    """Kinds whose prices follow no rule, and items that all fit the largest of them."""
    kinds = [
        (random.randint(2, 16), random.randint(4, 32), random.randint(50, 900)) for _ in range(random.randint(1, 5))
    ]
    kinds.append((16, 32, random.randint(300, 1200)))
    items = []
    left = most_pods
    while left and len(items) < 5:
        count = random.randint(1, min(3, left))
        items.append((random.randint(1, 9), random.randint(1, 20), count, random.randrange(levels)))
        left -= count
    return instance(items, kinds, tuple(60 * (level + 2) for level in range(levels)))


@pytest.mark.parametrize("seed", range(10))
def test_a_handful_of_pods_is_bought_for_as_brute_force_would(seed: int) -> None:
    work = random_work(Random(seed), 8, levels=1 + seed % 3)
    mix = cheapest(work, {}, Effort(2000))
    assert mix is not None
    assert covers(work, mix.counts)
    assert mix.cost == least_by_brute_force(work)


@pytest.mark.parametrize("seed", range(10))
def test_patterns_and_the_proof_over_all_sets_find_what_brute_force_finds(seed: int) -> None:
    """The way to the optimum where shapes are many: column generation, then a choice among all that could be held."""
    work = random_work(Random(seed), 8, levels=1 + seed % 3)
    alone = {
        min((pattern_of(work, kind, one) for kind in held_by), key=lambda pattern: pattern.cost): int(count)
        for one, count, held_by in (
            (np.eye(len(work.counts), dtype=np.int64)[i], work.counts[i], np.flatnonzero(work.most[:, i]).tolist())
            for i in range(len(work.counts))
        )
    }
    best, is_proved = prove(work, alone, np.zeros_like(work.counts), 1.0, 5.0, Effort(2000))
    assert is_proved
    assert covers(work, best)
    assert cost_of(best) == least_by_brute_force(work)
    plenty = work.within((Limit((1,) * len(work.prices), 100),))  # limits rule dynamic programming out
    mix = cheapest(plenty, {}, Effort(2000))
    assert mix is not None
    assert mix.bound <= least_by_brute_force(work) <= mix.cost


@pytest.mark.parametrize("seed", range(6))
def test_many_lengths_of_few_shapes_are_mixed_optimally(seed: int) -> None:
    """Seven pods, six lengths, two shapes: against brute force."""
    random = Random(seed)
    shapes = [(random.randint(1, 6), random.randint(1, 12)) for _ in range(2)]
    items = [(*shapes[i % 2], 1, random.randrange(6)) for i in range(7)]
    work = instance(items, [(6, 12, 70), (9, 16, 95), (16, 32, 180)], tuple(60 * (level + 2) for level in range(6)))
    mix = cheapest(work, {}, Effort(2000))
    assert mix is not None
    assert mix.is_proved
    assert covers(work, mix.counts)
    assert mix.cost == least_by_brute_force(work)


def test_machines_that_cost_nothing_are_among_those_mixed() -> None:
    """A machine of the house, priced at 0, that holds little: what others are worth was divided by their price."""
    random = Random(1)
    items = [(random.randint(100, 1800), random.randint(128, 3900), random.randint(1, 9), 0) for _ in range(12)]
    sold = [(2000, 4000, 95), (2000, 8000, 137), (4000, 16000, 275), (8000, 32000, 548)]
    with_it = cheapest(instance(items, [(200, 300, 0), *sold], (60,)), {}, Effort(500))
    without = cheapest(instance(items, sold, (60,)), {}, Effort(500))
    assert with_it is not None
    assert without is not None
    assert with_it.bound <= with_it.cost <= 1.01 * without.cost


@pytest.mark.parametrize("seed", range(10))
def test_a_knapsack_tried_filling_by_filling_is_worth_what_no_bound_is_below(seed: int) -> None:
    random = Random(seed)
    work = random_work(random, 8, levels=1 + seed % 3)
    pricer = Pricer.of(work)
    prices = np.array([random.randint(0, 50) for _ in work.counts], dtype=np.int64)
    for number in range(len(pricer.columns)):
        most = pricer.most[number].tolist()
        worths = [
            int(np.array(held) @ prices)
            for held in product(*(range(count + 1) for count in most))
            if (np.array(held) @ work.requests <= pricer.free[number]).all()
        ]
        counts, bound = pricer.exact(number, prices, Effort(100))
        assert bound == max(worths) == int(counts @ prices)
        assert bound <= pricer.fluid_most(number, prices)


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_never_exceeds_the_optimum(seed: int) -> None:
    """However little effort it is given: bounds found on the way are bounds as well."""
    work = random_work(Random(seed), 8, levels=1 + seed % 3)
    optimum = least_by_brute_force(work)
    for effort in (0.0, 5.0, 2000.0):
        assert bound_of(work, optimum, Effort(effort)) <= optimum
        mix = cheapest(work, {}, Effort(effort))
        assert mix is not None
        assert mix.bound <= optimum <= mix.cost


def proven_optimum(work: MixProblem) -> int:
    """An assignment model that shares nothing with column generation: machines in numbered slots, pods put into slots."""
    model = cp_model.CpModel()
    pods = [i for i, count in enumerate(work.counts.tolist()) for _ in range(count)]
    slots = range(len(pods))
    kinds = range(len(work.prices))
    used = [[model.new_bool_var("") for _ in kinds] for _ in slots]
    held = [[model.new_bool_var("") for slot in slots] for pod in pods]
    for slot in slots:
        model.add_at_most_one(used[slot])
        for r in range(work.requests.shape[1]):
            room = sum(int(work.free[kind, r]) * used[slot][kind] for kind in kinds)
            model.add(sum(int(work.requests[pod, r]) * held[p][slot] for p, pod in enumerate(pods)) <= room)
    for p in range(len(pods)):
        model.add_exactly_one(held[p])
    costs = [sum(int(work.prices[kind]) * used[slot][kind] for kind in kinds) for slot in slots]
    for left, right in pairwise(costs):
        model.add(left >= right)
    model.minimize(sum(int(work.prices[kind]) * used[slot][kind] for slot in slots for kind in kinds))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


@pytest.mark.parametrize("seed", range(4))
def test_eight_pods_of_table_4_cost_what_an_independent_model_proves(seed: int) -> None:
    random = Random(seed)
    items = [(random.choice([1, 2, 3, 4]) * 100, random.choice([3, 4, 6, 9]) * 100, 2, 0) for _ in range(4)]
    kinds = [(1000, GIB, 198), (1000, 2 * GIB, 344), (2000, 4 * GIB, 686), (2000, 8 * GIB, 1371)]
    work = instance(items, kinds)
    mix = cheapest(work, {}, Effort(3000))
    assert mix is not None
    assert mix.cost == proven_optimum(work)


def test_limits_hold_and_what_they_forbid_is_told() -> None:
    """Ten pods of a GiB: ten small machines would be cheapest, but four may be had, so large ones are bought."""
    items, kinds = [(100, GIB, 10, 0)], [(1000, GIB, 10), (4000, 4 * GIB, 50)]
    free = cheapest(instance(items, kinds), {}, Effort(500))
    assert free is not None
    assert free.cost == 100
    limited = cheapest(instance(items, kinds, limits=(Limit((1, 1), 4),)), {}, Effort(500))
    assert limited is not None
    assert sum(limited.counts.values()) <= 4
    assert limited.cost == 120
    assert cheapest(instance(items, kinds, limits=(Limit((1, 1), 2),)), {}, Effort(500)) is None


def test_work_that_ends_together_shares_a_machine() -> None:
    """Two jobs of 4 minutes and two of 12, two to a machine: 2 × (4 + 12), not 2 × 12 and one of each on both."""
    work = instance([(500, 100, 2, 0), (500, 100, 2, 1)], [(1000, 1000, 10)], holds=(240, 720))
    mix = cheapest(work, {}, Effort(500))
    assert mix is not None
    assert mix.cost == 10 * (240 + 720)
    assert all(sum(n > 0 for n in pattern.counts) == 1 for pattern in mix.counts)


def test_the_same_question_has_the_same_answer() -> None:
    work = random_work(Random(99), 12, levels=3)
    first, second = (cheapest(work, {}, Effort(1000)) for _ in range(2))
    assert first == second


def test_a_machine_that_is_left_with_less_is_the_cheapest_one_for_that() -> None:
    """Three machines for two each, and five there are: the third is one for one."""
    work = instance([(1, 1, 5, 0)], [(2, 2, 10), (1, 1, 6)])
    for_two, for_one = (pattern_of(work, kind, np.array([held])) for kind, held in ((0, 2), (1, 1)))
    assert tidied(work, {for_two: 3}) == {for_two: 2, for_one: 1}
    assert tidied(work, {for_two: 4}) == {for_two: 2, for_one: 1}, "the fourth holds nothing"
