"""The yardsticks of the demo: the same day on machines of one flavour, and on one fixed cluster.

Homogeneous scaling: the same sandbox, arrivals and billing, but one flavour only, pods spread over nodes as
kube-scheduler does by default (LeastAllocated), nodes emptied by eviction after ten minutes at or below 50 %
(Cluster Autoscaler's defaults). Run as a module it prints "virtual seconds, billed nano-seconds" a line.
"""

from __future__ import annotations

import argparse
import math
import sys

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.daemon.cycle import Daemon
from htas.daemon.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.experiments.workloads.day import day
from htas.model.flavours import Flavour
from htas.model.packing import Packing, PackingAlgorithm, Scoring, ScoringStrategy
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.sandbox.world import World

FLAVOUR = "m1.medium"
"""The paper's worker flavour (Table 5)."""
STEP_S = 300.0


def homogeneous(policy: Policy, flavour: str = FLAVOUR) -> Policy:
    """A policy turned into homogeneous scaling with one flavour for all work."""
    group = NodeGroup(
        name="nodes",
        flavours=(flavour,),
        packing=Packing(PackingAlgorithm.SCORED, Scoring(ScoringStrategy.LEAST_ALLOCATED)),
        cleaning=CleaningRules(
            utilization_threshold=0.5, underutilized_for_s=600.0, queue_empty_for_s=0.0, empty_for_s=600.0
        ),
    )
    return msgspec.structs.replace(policy, groups=(group,))


def fixed_nodes(flavour: Flavour, peak_cpu_m: int, peak_memory_bytes: int) -> int:
    """The fewest machines of a flavour that could hold a peak, were work fluid: the kindest view of a fixed cluster."""
    offered = flavour.allocatable
    return math.ceil(max(peak_cpu_m / offered.cpu_m, peak_memory_bytes / offered.memory_bytes))


def main() -> None:
    parser = argparse.ArgumentParser(description="Play the demo's day on machines of one flavour.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=24.0)
    chosen = parser.parse_args()
    policy = homogeneous(load_configuration(config_file("htas.yaml")).policy)
    world = World(seed=chosen.seed)
    world.load(day(chosen.seed, length_s=chosen.hours * 3600))
    store = SqliteStore(":memory:")
    ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
    driver = VirtualDriver(world, Daemon(ports, policy, keeps_history=False))
    start = world.clock.now()
    passed = 0.0
    while passed < chosen.hours * 3600:
        passed += STEP_S
        driver.run_until(start + passed)
        billed = world.ledger.nano_seconds(policy.catalogue.billing, world.clock.now())
        sys.stdout.write(f"{passed} {billed}\n")
        sys.stdout.flush()
    store.close()


if __name__ == "__main__":
    main()
