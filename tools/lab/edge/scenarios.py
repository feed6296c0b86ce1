"""The scenarios of KubeDSM 6: Table 4's nodes, Table 5's services, twelve cycles of normally distributed load.

A cycle's load is a share of the edge, divided equally among the services; each gets the requests that keep as many
pods busy as its part holds whole ones, at least one. 1.0_0.5 fills the edge on average, with a deviation of half of it.

What the document leaves open is read as follows. The share is of memory, which the services take more of than of cores:
Table 5's sizes fill Table 4's nodes to the last pod, fourteen of 950 MiB in 14 GB, which 16 cores hold as well. Parts
are rounded down: were they rounded to the nearest whole pod, no scheduler could keep more than 77 % and 70 % of the
pods near where the document reports 80 % and 78 %. Scalers shrink at once: with Kubernetes's five minutes a service
would keep the most pods of the last four cycles, and no scenario would have the load that it is named for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from htas.model.edge import TIER_LABEL, Tier
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.pods import MAY_MIGRATE
from htas.model.resources import Resources
from htas.sandbox.workload import Arrival, ControllerKind, HorizontalScaler, Load, Task, Workload

CYCLES, CYCLE_S = 12, 90.0
LENGTH_S = CYCLES * CYCLE_S
GB, MIB = 10**9, 2**20
EDGE_NODES: Mapping[str, tuple[int, int]] = {"n2": (5, 5), "n3": (4, 4), "n4": (7, 5)}
CLOUD_NODES: Mapping[str, tuple[int, int]] = {"n5": (22, 17)}
"""Table 4: cores and GB. N1 is the master and takes no pods."""
SERVICES: Mapping[str, tuple[int, int]] = {"a": (1, 950), "b": (1, 1900), "c": (1, 950), "d": (2, 1900)}
"""Table 5: cores and MiB of each pod."""
NAMESPACE = "default"
RATED, TARGET = 10.0, 0.8
"""Requests a second that a pod is rated for, and the share of them that its scaler aims at. Only their product counts:
a pod for every eight requests a second."""
MOST_PODS = 40


@dataclass(frozen=True, slots=True)
class Scenario:
    """The load's mean and standard deviation, as shares of the edge."""

    mean: float
    deviation: float

    @property
    def name(self) -> str:
        return f"{self.mean:.1f}_{self.deviation:.1f}"


MEANS = tuple(Scenario(tenths / 10, 0.4) for tenths in range(11, 17))
DEVIATIONS = tuple(Scenario(1.5, tenths / 10) for tenths in range(1, 6))
SWEEPS: Mapping[str, tuple[Scenario, ...]] = {"mean": MEANS, "deviation": DEVIATIONS}
"""Figure 4's and Figure 5's; 1.5_0.4 belongs to both."""
SCENARIOS: Mapping[str, Scenario] = {each.name: each for each in (*MEANS, *DEVIATIONS)}


def nodes() -> tuple[Node, ...]:
    """Table 4's nodes, in the tier that their label names."""
    edge = (_node(name, *size, Tier.EDGE) for name, size in EDGE_NODES.items())
    return *edge, *(_node(name, *size, Tier.CLOUD) for name, size in CLOUD_NODES.items())


def _node(name: str, cores: int, gb: int, tier: Tier) -> Node:
    labels = {HOSTNAME_LABEL: name, TIER_LABEL: tier.value}
    return Node(name, Resources(1000 * cores, gb * GB, 0, 110), uid=f"node-{name}", labels=labels)


def loads(scenario: Scenario, seed: int) -> list[float]:
    """The share of the edge that each cycle asks for, 0 or more."""
    random = Random(f"{scenario.name}/{seed}")
    return [max(0.0, random.gauss(scenario.mean, scenario.deviation)) for _ in range(CYCLES)]


def pods_for(load: float) -> dict[str, int]:
    """How many pods of each service a cycle's load needs: of 1.3 it is 4 A, 2 B, 4 C and 2 D."""
    memory = sum(gb for _, gb in EDGE_NODES.values()) * GB / len(SERVICES)
    return {name: max(1, int(load * memory / (mib * MIB))) for name, (_, mib) in SERVICES.items()}


def workload(scenario: Scenario, seed: int, division: Callable[[float], Mapping[str, int]] = pods_for) -> Workload:
    """One pod of each service from the start, and requests that change with every cycle.

    `division` says how many pods of each service a load needs.
    """
    tasks = [
        Task(name, Resources(1000 * cores, mib * MIB, 0, 1), labels={"app": name}, disruption={MAY_MIGRATE: "true"})
        for name, (cores, mib) in SERVICES.items()
    ]
    scalers = [
        HorizontalScaler(NAMESPACE, name, RATED, TARGET, max_replicas=MOST_PODS, shrink_window_s=0.0)
        for name in SERVICES
    ]
    asked = [
        Load(cycle * CYCLE_S, NAMESPACE, name, RATED * TARGET * pods)
        for cycle, load in enumerate(loads(scenario, seed))
        for name, pods in division(load).items()
    ]
    return Workload(
        f"{scenario.name} (seed {seed})",
        tuple(Arrival(0.0, task, ControllerKind.REPLICA_SET) for task in tasks),
        scalers=tuple(scalers),
        loads=tuple(asked),
    )


# What is played in the edge experiment: every contender in every scenario.

SEEDS = 20


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """Where a scenario's requests come from: drawn by its name and the seed."""

    name: str

    def workload(self, seed: int) -> Workload:
        return workload(SCENARIOS[self.name], seed)
