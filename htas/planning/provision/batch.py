"""The 0-bin: batch nodes that end their work before a purchase could arrive.

Source: HTAS paper Algorithm 4, which deducts the capacity of the nodes in bin 0 from the demand. Here the deduction is
checked by placing: a waiting batch pod is left to wait only if it fits a node that frees within the autoscaling cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.many_classes import with_hope
from htas.planning.cluster.run_length import remaining_s
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.demand import Demand
from htas.planning.place.placing import Placer


@dataclass(frozen=True, slots=True)
class Wait:
    """Pods of a demand that wait for nodes about to free."""

    demand: Demand
    count: int


def wait_for_zero_bin(
    sim: Simulation,
    book: ClassBook,
    placer: Placer,
    policy: Policy,
    running: Mapping[int, Sequence[Pod]],
    demands: Sequence[Demand],
) -> list[Wait]:
    """How many of each batch demand can wait for the 0-bin; the simulation is left as it was.

    A pod that has waited `max_wait_for_capacity_s` waits no longer: its estimate was wrong once too often.
    """
    ending = _ending_pods(sim, policy, running)
    if not ending:
        return []
    with sim.fork():
        for row, pods in ending.items():
            for pod in pods:
                sim.unplace(book.class_of(pod), row)
        others = np.setdiff1d(np.flatnonzero(sim.table.is_open), np.fromiter(ending, dtype=np.int64))
        sim.close(*others.tolist())
        return waiting_for_room(sim, placer, policy, demands)


def waiting_for_room(sim: Simulation, placer: Placer, policy: Policy, demands: Sequence[Demand]) -> list[Wait]:
    """How many of each batch demand of ours find room in a what-if of what ends."""
    batch = [demand for demand in demands if demand.cls.kind is WorkKind.BATCH and demand.cls.is_ours]
    hope = with_hope(sim, [demand.cls for demand in batch])
    waits = []
    for demand, (cls, has_hope) in zip(batch, hope, strict=True):
        placed = placer.place(sim, cls, patient(sim, policy, demand)) if has_hope else 0
        if placed:
            waits.append(Wait(demand, placed))
    return waits


def _ending_pods(sim: Simulation, policy: Policy, running: Mapping[int, Sequence[Pod]]) -> dict[int, list[Pod]]:
    """Batch pods on open rows of bin 0 of the autoscaling cycle, by row."""
    horizon = policy.cycles.autoscaling_s
    left = sim.table.run_until[: len(sim.table)] - sim.now
    rows = np.flatnonzero((left > 0) & (left < horizon) & sim.table.is_open[: len(sim.table)])
    result = {}
    for row in rows.tolist():
        pods = [
            pod
            for pod in running.get(row, ())
            if pod.kind is WorkKind.BATCH and not pod.is_daemon and remaining_s(pod, policy, sim.now) < horizon
        ]
        if pods:
            result[row] = pods
    return result


def patient(sim: Simulation, policy: Policy, demand: Demand) -> int:
    """How many pods of a demand have not waited too long."""
    overdue = policy.overdue(sim.now)
    return sum(pod.created_at > overdue for pod in demand.youngest(demand.count))
