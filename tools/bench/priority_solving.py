"""One instance by one engine, or by the document's own model: what is placed then, what of it is proven, the time."""

from __future__ import annotations

from time import perf_counter, process_time

from htas.model.flavours import Catalogue
from htas.model.policy import Engine, NodeGroup, Policy
from htas.model.rearrangement import Rearrangement
from htas.planning.optimize.optimise import optimise
from htas.planning.solvers.placement.budget import SearchBudget
from tools.bench.priority_document import Document
from tools.bench.priority_instances import NOW, Instance, node_name, snapshot

POLICY = Policy("bench", Catalogue(()), (NodeGroup("any"),))
WORKERS = 2
FORMULATIONS = "document", *Engine
"""The document's model as it states it, and the three engines of `fallback.engine`."""


def solve(
    formulation: str,
    instance: Instance,
    seconds: float,
    clock: str = "wall",
    workers: int = WORKERS,
    pace: float = 1.0,
) -> dict[str, object]:
    """One answer, as it is written to the file. By `clock` cpu it may use so many seconds of processor time.

    `pace` is how many seconds of wall clock one of those takes, for the solvers that have a wall clock alone.

    Where the default scheduler placed everything nothing is searched, as nothing would call the optimiser.
    """
    before = by_tier(instance, instance.node_of)
    placed: tuple[int, ...] | None
    began, began_cpu = perf_counter(), process_time()
    elapsed = (lambda: perf_counter() - began) if clock == "wall" else (lambda: process_time() - began_cpu)
    if instance.is_full:
        placed, placing, staying, node_of, bound = before, True, True, instance.node_of, sum(before)
        took = took_cpu = 0.0
    elif formulation == "document":
        answer = Document(instance, seconds, workers, elapsed, pace).run()
        placed, placing, staying = answer.placed, answer.is_placing_proven, answer.is_staying_proven
        node_of, bound = answer.node_of, None
        took, took_cpu = perf_counter() - began, process_time() - began_cpu
    else:
        budget = SearchBudget(seconds, workers, engine=Engine(formulation), pace=pace)
        found = optimise(snapshot(instance), POLICY, NOW, budget, elapsed)
        took, took_cpu = perf_counter() - began, process_time() - began_cpu
        placed = tuple(tier.placed_after for tier in found.tiers)
        placing = all(tier.is_placing_proven for tier in found.tiers)
        staying = all(tier.is_staying_proven for tier in found.tiers)
        node_of, bound = after(instance, found), found.tiers[-1].placed_bound
    return {
        "nodes": instance.cell.nodes,
        "pods_per_node": instance.cell.pods_per_node,
        "priorities": instance.cell.priorities,
        "usage": instance.cell.usage,
        "seed": instance.seed,
        "is_called": not instance.is_full,
        "formulation": formulation,
        "timeout": seconds,
        "before": before,
        "after": placed,
        "bound": bound,
        "is_placing_proven": placing,
        "is_staying_proven": staying,
        "moved": sum(0 <= old != new for old, new in zip(instance.node_of, node_of, strict=False)),
        "seconds": round(took, 3),
        "cpu_seconds": round(took_cpu, 3),
        "more_cpu": utilisation(instance, node_of)[0] - utilisation(instance, instance.node_of)[0] if node_of else 0,
        "more_memory": utilisation(instance, node_of)[1] - utilisation(instance, instance.node_of)[1] if node_of else 0,
    }


def by_tier(instance: Instance, node_of: tuple[int, ...]) -> tuple[int, ...]:
    """Pods placed by tier, from the highest."""
    placed = [priority for priority, node in zip(instance.priority, node_of, strict=True) if node >= 0]
    return tuple(placed.count(priority) for priority in sorted(set(instance.priority), reverse=True))


def after(instance: Instance, found: Rearrangement) -> tuple[int, ...]:
    """Where each pod is once a rearrangement is carried out; checks that no node is over-full."""
    number = {node_name(i): i for i in range(instance.cell.nodes)}
    node_of = list(instance.node_of)
    for shift in found.moves:
        node_of[int(shift.uid.removeprefix("pod-"))] = -1 if shift.target is None else number[shift.target]
    for seat in found.seats:
        node_of[int(seat.uid.removeprefix("pod-"))] = number[seat.node]
    for requests, room in ((instance.cpu_m, instance.node_cpu_m), (instance.memory_bytes, instance.node_memory_bytes)):
        for node in range(instance.cell.nodes):
            if sum(amount for amount, at in zip(requests, node_of, strict=True) if at == node) > room:
                raise AssertionError(f"node {node} is over-full in instance {instance.seed} of {instance.cell}")
    return tuple(node_of)


def utilisation(instance: Instance, node_of: tuple[int, ...]) -> tuple[float, float]:
    """Percent of cpu and memory requested on nodes."""
    nodes = instance.cell.nodes
    return tuple(
        100 * sum(amount for amount, at in zip(requests, node_of, strict=True) if at >= 0) / (room * nodes)
        for requests, room in (
            (instance.cpu_m, instance.node_cpu_m),
            (instance.memory_bytes, instance.node_memory_bytes),
        )
    )  # type: ignore[return-value]  # two resources, two shares
