"""The least that any way of running a scene can cost: resource-seconds at the best prices that no machine beats.

A machine of flavour f, held for t seconds, offers capacity_f × t of each resource and costs price_f × t. For weights
w ≥ 0 with w · capacity_f ≤ price_f for every flavour, a task that runs t seconds adds at least w · request × t to any
bill: the dual of covering the work by fractions of machines. The weights that make the sum greatest are found by linear
programming and scaled back until they hold exactly, so the bound is sound whatever the solver's rounding.

Left out, so that the bound stays one: machines' starts, rounding up to the billing period, what fits together, and
when the work is there. Jobs run once, from any time on; a service runs until the earliest moment at which the last job
can have ended and the last rescale has come, from two starts of a machine after it arrives. A contender that leaves
services waiting for longer may come below it; its waits are told beside the bill.
"""

from __future__ import annotations

from fractions import Fraction

from ortools.linear_solver import pywraplp

from htas.model.resources import Resources
from htas.sandbox.workload import Arrival
from tools.bench.money.scenes import Scene


def least_nano_seconds(scene: Scene) -> int:
    """In the ledger's unit: billionths of the currency an hour, times seconds."""
    amounts = _resource_seconds(scene)
    names = sorted(amounts)
    if not names:
        return 0
    weights = _weights(scene, names, amounts)
    return int(sum(weights[name] * amounts[name] for name in names))


def _resource_seconds(scene: Scene) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    end = scene.work.could_end_s
    for arrival in scene.work.arrivals:
        seconds = Fraction(_pod_seconds(scene, arrival, end)).limit_denominator(1000)
        for name, amount in _amounts(arrival.task.requests).items():
            found[name] = found.get(name, Fraction(0)) + amount * seconds
    return {name: amount for name, amount in found.items() if amount}


def _pod_seconds(scene: Scene, arrival: Arrival, end_s: float) -> float:
    """Seconds of one pod each, added up over replicas and over what services are scaled to."""
    if arrival.task.runs_s is not None:
        return arrival.task.runs_s * arrival.replicas
    changes = [(arrival.at_s, arrival.replicas)]
    changes += [(each.at_s, each.replicas) for each in scene.work.rescales if each.name == arrival.task.name]
    changes = sorted(each for each in changes if each[0] < end_s)
    late_s = 2 * scene.startup_s
    total = 0.0
    for (since, replicas), until in zip(changes, [*(at for at, _ in changes[1:]), end_s], strict=True):
        total += replicas * max(0.0, until - since - late_s)
    return total


def _amounts(resources: Resources) -> dict[str, int]:
    return {"cpu": resources.cpu_m, "memory": resources.memory_bytes, **dict(resources.extended)}


def _weights(scene: Scene, names: list[str], amounts: dict[str, Fraction]) -> dict[str, Fraction]:
    """Prices of a unit of each resource that no flavour undercuts."""
    solver = pywraplp.Solver.CreateSolver("GLOP")
    scale = {name: float(amounts[name]) for name in names}
    variables = {name: solver.NumVar(0, solver.infinity(), name) for name in names}
    for flavour in scene.catalogue.flavours:
        has = _amounts(flavour.allocatable)
        terms = [variables[name] * (has.get(name, 0) / scale[name]) for name in names]
        solver.Add(sum(terms) <= float(flavour.nanos_per_hour))
    solver.Maximize(sum(variables.values()))
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return dict.fromkeys(names, Fraction(0))  # a resource that nobody sells: the work cannot be run at all
    found = {name: Fraction(max(0.0, variables[name].solution_value())) / amounts[name] for name in names}
    return _made_sound(scene, found)


def _made_sound(scene: Scene, weights: dict[str, Fraction]) -> dict[str, Fraction]:
    """Scaled down by as much as any flavour is undercut."""
    worst = Fraction(1)
    for flavour in scene.catalogue.flavours:
        has = _amounts(flavour.allocatable)
        worth = sum((weights[name] * has.get(name, 0) for name in weights), Fraction(0))
        if worth and flavour.nanos_per_hour < worth:
            worst = min(worst, Fraction(flavour.nanos_per_hour) / worth)
    return {name: weight * worst for name, weight in weights.items()}
