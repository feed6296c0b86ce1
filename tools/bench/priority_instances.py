"""The instances of the document's evaluation, made as its scripts do, and what the default scheduler makes of them.

Source: scripts of github.com/henrikdchristensen/scheduler-plugins (seeds, ReplicaSets, node sizes). One generator of
random numbers for each purpose, seeded by blake2b over the instance's seed and the purpose's name, so that changing the
number of priorities changes no request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil
from random import Random

import numpy as np
import numpy.typing as npt

from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.pods import MAY_MIGRATE, Owner, Phase, Pod
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView

Amounts = npt.NDArray[np.int64]
NOW = 1_000_000.0
REPLICAS = 1, 4
CPU_M = 100, 1000
MEMORY_BYTES = 100_000_000, 1_000_000_000
OPTED_IN = {MAY_MIGRATE: "true"}
"""The document moves any pod; a service of ours says so itself."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the grid; `usage` is what all pods ask for over what all nodes have."""

    nodes: int
    pods_per_node: int
    priorities: int
    usage: float


GRID = tuple(
    Cell(nodes, pods_per_node, priorities, usage)
    for nodes in (4, 8, 16, 32)
    for pods_per_node in (4, 8)
    for priorities in (1, 2, 4)
    for usage in (0.90, 0.95, 1.00, 1.05)
)


@dataclass(frozen=True, slots=True)
class Instance:
    """Pods in the order in which they are created; `node_of[i]` is where the default scheduler put pod i, or -1."""

    cell: Cell
    seed: int
    cpu_m: tuple[int, ...]
    memory_bytes: tuple[int, ...]
    priority: tuple[int, ...]
    replica_set: tuple[int, ...]
    node_cpu_m: int
    node_memory_bytes: int
    node_of: tuple[int, ...]

    @property
    def is_full(self) -> bool:
        """Whether every pod found room: then there is nothing to optimise."""
        return min(self.node_of, default=0) >= 0


def seeded(base: int, *labels: object) -> Random:
    """A generator of its own for each purpose."""
    digest = blake2b(base.to_bytes(16, "big"), digest_size=16)
    for label in labels:
        digest.update(b"\x00" + str(label).encode())
    return Random(int.from_bytes(digest.digest(), "big"))


def instances(cell: Cell, count: int, first_seed: int = 1) -> Iterator[Instance]:
    """The first `count` instances of a cell in which the default scheduler leaves pods unplaced."""
    seeds = seeded(first_seed, cell.nodes, cell.pods_per_node, cell.priorities, f"{cell.usage:.2f}")
    found = 0
    while found < count:
        instance = generate(cell, seeds.getrandbits(63))
        if not instance.is_full:
            found += 1
            yield instance


def generate(cell: Cell, seed: int, name_points: int = 0) -> Instance:
    """One instance, the default scheduler's placement included.

    `name_points`: what the first feasible node by name gets on top of its score, the last none. The document's authors
    had 100, as much as a scorer gives: nodes are filled one after another then, and more fits.
    """
    sizes = _replica_set_sizes(cell, seed)
    cpus, memories, priorities = seeded(seed, "rs-cpu"), seeded(seed, "rs-mem"), seeded(seed, "base")
    cpu_of = [cpus.randint(*CPU_M) for _ in sizes]
    memory_of = [memories.randint(*MEMORY_BYTES) for _ in sizes]
    priority_of = [priorities.randint(1, cell.priorities) for _ in sizes]
    replica_set = tuple(number for number, size in enumerate(sizes) for _ in range(size))
    cpu_m = tuple(cpu_of[number] for number in replica_set)
    memory_bytes = tuple(memory_of[number] for number in replica_set)
    room = _per_node(cpu_m, cell), _per_node(memory_bytes, cell)
    node_of = _kube_scheduler(cell.nodes, room, cpu_m, memory_bytes, replica_set, name_points)
    priority = tuple(priority_of[number] for number in replica_set)
    return Instance(cell, seed, cpu_m, memory_bytes, priority, replica_set, *room, node_of)


def _replica_set_sizes(cell: Cell, seed: int) -> list[int]:
    random, least, most = seeded(seed, "rs-sizes"), *REPLICAS
    left, sizes = cell.nodes * cell.pods_per_node, []
    while left:
        highest = min(most, left)
        sizes.append(random.randint(least if left > most else min(least, highest), highest))
        left -= sizes[-1]
    return sizes


def _per_node(requests: tuple[int, ...], cell: Cell) -> int:
    total = ceil(sum(requests) / cell.usage)
    return max(max(requests), ceil(total / cell.nodes))


def _kube_scheduler(
    nodes: int,
    room: tuple[int, int],
    cpu_m: tuple[int, ...],
    memory_bytes: tuple[int, ...],
    sets: tuple[int, ...],
    name_points: int,
) -> tuple[int, ...]:
    """kube-scheduler 1.36's scores in its integers for such pods; of equal nodes the first by name, nothing preempted.

    LeastAllocated, BalancedAllocation (how much the pod mends the balance, not how good it is then) and, twice, how few
    pods of the same ReplicaSet are there. `python -m tools.bench.priority place` compares it with the real one.
    """
    capacity = np.array(room, dtype=np.int64)
    used = np.zeros((nodes, 2), dtype=np.int64)
    node_of: list[int] = []
    there, current = np.zeros(nodes, dtype=np.int64), -1
    for cpu, memory, replica_set in zip(cpu_m, memory_bytes, sets, strict=True):
        if replica_set != current:  # pods of a ReplicaSet follow each other
            there, current = np.zeros(nodes, dtype=np.int64), replica_set
        after = used + np.array((cpu, memory), dtype=np.int64)
        feasible = (after <= capacity).all(axis=1).nonzero()[0]
        if not feasible.size:
            node_of.append(-1)
            continue
        least = ((capacity - after[feasible]) * 100 // capacity).sum(axis=1) // 2
        mended = _balance(after[feasible], capacity) - _balance(used[feasible], capacity)
        scores = least + 50 + (50 + mended) // 2 + 2 * _spread(there[feasible]) + _by_name(feasible.size, name_points)
        best = int(feasible[np.argmax(scores)])
        node_of.append(best)
        used[best] += (cpu, memory)
        there[best] += 1
    return tuple(node_of)


def _balance(used: Amounts, capacity: Amounts) -> Amounts:
    shares = used / capacity
    return ((1 - np.abs((shares[:, 0] - shares[:, 1]) / 2)) * 100).astype(np.int64)


def _by_name(count: int, points: int) -> Amounts:
    return points * (count - 1 - np.arange(count, dtype=np.int64)) // max(1, count - 1)


def _spread(there: Amounts) -> Amounts:
    """PodTopologySpread's default: by host name, maxSkew 3; each pod there weighs more the more nodes are feasible."""
    counted = np.floor(there * np.log(len(there) + 2) + 2 + 0.5).astype(np.int64)
    spread: Amounts = 100 * (counted.max() + counted.min() - counted) // counted.max()
    return spread


def snapshot(instance: Instance) -> ClusterSnapshot:
    """An instance as the planner sees it: placed pods run, the others wait."""
    room = Resources(instance.node_cpu_m, instance.node_memory_bytes, 0, 512)
    nodes = tuple(
        Node(name, room, labels={HOSTNAME_LABEL: name}) for name in map(node_name, range(instance.cell.nodes))
    )
    return ClusterSnapshot(NOW, ClusterView(nodes, tuple(_pods(instance))))


def node_name(number: int) -> str:
    return f"node-{number + 1:04d}"


def _pods(instance: Instance) -> Iterator[Pod]:
    for number, node in enumerate(instance.node_of):
        replica_set = instance.replica_set[number]
        yield Pod(
            "bench",
            f"rs-{replica_set:02d}-{number:05d}",
            Resources(instance.cpu_m[number], instance.memory_bytes[number], 0, 1),
            uid=f"pod-{number:05d}",
            owner=Owner("ReplicaSet", f"rs-{replica_set:02d}", f"rs-{replica_set:02d}", 4),
            scheduler="htas",
            priority=instance.priority[number],
            phase=Phase.RUNNING if node >= 0 else Phase.PENDING,
            node=node_name(node) if node >= 0 else None,
            created_at=NOW - 60,
            started_at=NOW - 30 if node >= 0 else None,
            disruption=OPTED_IN,
        )
