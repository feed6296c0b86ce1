"""A trial on the edge: services are scaled with their load, and it is noted where their pods are."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import fmean

import msgspec

from htas.model.edge import DEFAULT_TARGET
from htas.sandbox.workload import Task, Workload
from htas.sandbox.world import World
from tools.lab.edge.contenders import EdgeContender
from tools.lab.edge.results import EdgeRun, ServiceOver, best_mean_ratio, best_ratio
from tools.lab.edge.scenarios import EDGE_NODES, LENGTH_S, SERVICES, nodes
from tools.lab.results import Timing
from tools.lab.trials.sandboxed import PlanningTimes, daemon_of
from tools.lab.workloads.patterns import mapped

SAMPLE_S = 5.0
START_S = 5.0
"""What comes before is left out: the first pods are not there yet."""


@dataclass(slots=True)
class Tally:
    """Pods of each service, and those of them on the edge, sample by sample."""

    pods: list[tuple[int, ...]] = field(default_factory=list)
    near: list[tuple[int, ...]] = field(default_factory=list)
    waiting: int = 0

    def look(self, world: World) -> None:
        pods, near = dict.fromkeys(SERVICES, 0), dict.fromkeys(SERVICES, 0)
        for pod in world.cluster.observe().pods:
            if pod.is_terminating or pod.owner is None:
                continue
            pods[pod.owner.name] += 1
            near[pod.owner.name] += pod.node in EDGE_NODES
            self.waiting += pod.node is None
        self.pods.append(tuple(pods.values()))
        self.near.append(tuple(near.values()))


def run(contender: EdgeContender, scenario: str, work: Workload, seed: int) -> tuple[EdgeRun, Timing]:
    """Play a scenario to its end."""
    began = time.perf_counter()
    world = World(start=0.0, seed=seed)
    world.add_nodes(nodes())
    world.load(with_targets(work, contender))
    times, tally = PlanningTimes(), Tally()
    with daemon_of(contender, world, times.saw) as driver:
        for sample in range(int((LENGTH_S - START_S) / SAMPLE_S) + 1):
            driver.run_until(START_S + sample * SAMPLE_S)
            tally.look(world)
    made = _result(contender, scenario, seed, tally, world)
    return made, times.timing(contender, scenario, seed, time.perf_counter() - began)


def with_targets(work: Workload, contender: EdgeContender) -> Workload:
    """The same work with the targets that a contender's services have."""

    def change(task: Task) -> Task:
        return msgspec.structs.replace(task, qos=contender.targets.get(task.name, DEFAULT_TARGET))

    return mapped(work, change)


def _result(contender: EdgeContender, scenario: str, seed: int, tally: Tally, world: World) -> EdgeRun:
    services = tuple(
        ServiceOver(
            name,
            fmean(pods[i] for pods in tally.pods),
            fmean(near[i] / max(1, pods[i]) for pods, near in zip(tally.pods, tally.near, strict=True)),
            contender.targets.get(name, DEFAULT_TARGET),
        )
        for i, name in enumerate(SERVICES)
    )
    return EdgeRun(
        contender.name,
        scenario,
        seed,
        pod_ratio=fmean(sum(near) / sum(pods) for pods, near in zip(tally.pods, tally.near, strict=True)),
        pod_bound=fmean(map(best_ratio, tally.pods)),
        mean_bound=fmean(map(best_mean_ratio, tally.pods)),
        services=services,
        pods=fmean(map(sum, tally.pods)),
        moves=world.ledger.evictions + world.ledger.migrations,
        waiting_s=SAMPLE_S * tally.waiting,
    )
