"""The cap: what namespaces with a limit are charged of launched machines while a plan is made.

A machine that runs or starts is charged to the pods on it, each by its share: the greatest share of any resource that
it asks for, of the sum over all pods on the machine. Nothing is left over, so a tiny pod that keeps others off its
machine is charged all of it. A machine that this plan launches is charged in full to each limited namespace with a pod
on it: nothing else is sure to run there. DaemonSet and static pods are charged nothing.

The simulation counts each pod here as it places it, and takes it back with the fork. So every stage that asks where a
pod fits sees what is left.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from htas.model.flavours import Flavour
from htas.model.money import price_text
from htas.model.nodes import Node
from htas.model.policy import NamespaceLimit, Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import PODS_ROW, Bools, Ints, PodClass
from htas.planning.cluster.machines import nanos_paid
from htas.planning.cluster.table import NodeTable
from htas.planning.cluster.whereabouts import node_of

Floats = NDArray[np.float64]
WHOLE = 10**6
"""The weight of a pod that asks for all of some resource of its machine."""
RECENT_S = 120.0
"""Look-ahead launches for work like that of so long ago at least."""
SLACK = 0.1
"""Of a millicore and of a billionth an hour: sums of shares are floats."""
UNLIMITED = 10**9


def limits_in_reach(snapshot: ClusterSnapshot, policy: Policy) -> dict[str, NamespaceLimit]:
    """Limits of namespaces that this plan could reach; it need not count for the others.

    At most a namespace is charged the machines that it has pods on, and the largest one for each pending or new pod.
    """
    if not policy.namespaces:  # as in most clusters
        return {}
    since = snapshot.taken_at - max(policy.look_ahead_s, RECENT_S)
    new: Counter[str] = Counter()
    nodes: dict[str, set[str]] = defaultdict(set)
    for pod in snapshot.cluster.pods:
        node = node_of(pod, snapshot)
        nodes[pod.namespace].add(node or "")
        new[pod.namespace] += node is None or pod.created_at > since
    machines = _Machines(snapshot, policy)
    there = {node.name: machines.charge(node) for node in snapshot.cluster.nodes}
    sizes = [*there.values(), *(_most_of(flavour) for flavour in policy.catalogue.flavours)]
    largest = max((cpu_m for cpu_m, _ in sizes), default=0), max((nanos for _, nanos in sizes), default=0)
    found = {}
    for name, many in new.items():
        limit = policy.limit_of(name)
        if limit is not None:
            own = [there[node] for node in nodes[name] if node in there]
            cpu_m, nanos = (many * largest[i] + sum(each[i] for each in own) for i in (0, 1))
            if not limit.holds(cpu_m, nanos):
                found[name] = limit
    return found


def _most_of(flavour: Flavour) -> tuple[int, int]:
    return flavour.capacity.cpu_m, max(flavour.nanos_in(zone) for zone in (None, *flavour.zones))


class _Machines:
    """What nodes are charged: millicores, and billionths an hour; nothing of nodes that HTAS did not launch."""

    def __init__(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        self._policy = policy
        self._claims = {claim.id: claim for claim in snapshot.claims}

    def charge(self, node: Node) -> tuple[int, int]:
        if node.cluster != self._policy.cluster or self._policy.is_given(node):
            return 0, 0
        return node.allocatable.cpu_m, nanos_paid(node, self._claims.get(node.claim or ""), self._policy)


class NamespaceCap:
    """Charges of limited namespaces over the rows of a simulation, and what each has left."""

    def __init__(
        self, limits: Mapping[str, NamespaceLimit], table: NodeTable, snapshot: ClusterSnapshot, policy: Policy
    ) -> None:
        self._table = table
        self._limits = dict(limits)
        self._currency = policy.catalogue.currency
        self._machines = _Machines(snapshot, policy)
        self._charges: Floats = np.zeros((2, 0))
        """Of each row's machine: millicores, and billionths an hour."""
        self._all: Ints = np.zeros(0, dtype=np.int64)
        """By row, the weight of all charged pods."""
        self._own: dict[str, Ints] = {name: np.zeros(0, dtype=np.int64) for name in limits}
        """The same of each limited namespace's pods."""
        self._bounds = {name: _bounds(limit) for name, limit in limits.items()}
        self._at_first = dict(self._bounds)
        """What each may be charged of machines that are there: its limit, or what it is charged already."""
        self._sums: dict[str, Floats] = {}
        """What each is charged in all, until a count changes."""
        self._there = len(table)
        """Rows from here on are machines that this plan launches."""
        self.append(range(len(table)))

    @property
    def names(self) -> Collection[str]:
        return self._limits.keys()

    def append(self, rows: range) -> None:
        """Rows were added to the table, without charged pods."""
        more = self._table.free.shape[1] - len(self._all)
        if more > 0:
            self._charges = np.concatenate([self._charges, np.zeros((2, more))], axis=1)
            empty = np.zeros(more, dtype=np.int64)
            self._all = np.concatenate([self._all, empty])
            self._own = {name: np.concatenate([own, empty]) for name, own in self._own.items()}
        self._sums.clear()
        for row in rows:
            self._charges[:, row] = self._machines.charge(self._table.nodes[row])

    def settle(self) -> None:
        """The pods counted so far are those that run: what they are charged may stay."""
        self._at_first = {name: np.maximum(bounds, self._used(name)) for name, bounds in self._bounds.items()}

    def count(self, cls: PodClass, rows: Ints, counts: Ints) -> None:
        """Pods of a class were put on rows; a negative count: taken away."""
        if cls.charged_to is not None:
            self._sums.clear()
            weights = self._weights(cls, rows) * counts
            self._all[rows] += weights
            if cls.charged_to:
                self._own[cls.charged_to][rows] += weights

    def refused(self, cls: PodClass, rows: slice) -> Bools:
        """Where one more pod of a class would bring its namespace above its limit."""
        name = cls.charged_to
        if not name:
            return np.zeros(rows.stop - rows.start, dtype=np.bool_)
        at, weights = np.arange(rows.start, rows.stop), self._weights(cls, np.arange(rows.start, rows.stop))
        before = self._charged(name, at, 0 * weights)
        more = self._charged(name, at, weights) - before
        most = np.where(at < self._there, self._at_first[name][:, None], self._bounds[name][:, None])
        used = self._used(name)[:, None]
        # Where a pod adds nothing, others have left its machine to the namespace: that may be beyond the limit, too.
        adds = (more > SLACK) | (used > self._at_first[name][:, None] + SLACK)
        beyond: Bools = np.logical_or.reduce(adds & (used + more > most + SLACK), axis=0)
        return beyond

    def machines_left(self, name: str, cpu_m: int, nanos: int) -> int:
        """How many machines of a size and a price may still be launched for a namespace; "": for any other."""
        if name not in self._bounds:
            return UNLIMITED
        left, each = self._bounds[name] - self._used(name) + SLACK, (cpu_m, nanos)
        return max(0, int(min((left[i] // each[i] for i in (0, 1) if each[i] and left[i] < np.inf), default=UNLIMITED)))

    def reason(self, name: str) -> str:
        """Why nothing is launched for a namespace."""
        (cpu_m, nanos), limit, parts = self._used(name), self._limits[name], []
        if limit.max_cpu_m is not None:
            parts.append(f"{round(cpu_m) / 1000:g} of {limit.max_cpu_m / 1000:g} cores")
        if limit.max_nanos_per_hour is not None:
            most = price_text(limit.max_nanos_per_hour)
            parts.append(f"{price_text(round(nanos))} of {most} {self._currency}/h")
        return f"namespace {name} has {' and '.join(parts)} of the launched machines, and this would be more"

    def _used(self, name: str) -> Floats:
        if name not in self._sums:
            rows = np.arange(len(self._table))
            self._sums[name] = self._charged(name, rows, 0 * rows).sum(axis=1)
        return self._sums[name]

    def _charged(self, name: str, rows: Ints, more: Ints) -> Floats:
        """What a namespace is charged on each row with so much more weight of its own there."""
        own = self._own[name][rows] + more
        share = np.where(rows < self._there, own / np.maximum(self._all[rows] + more, 1), own > 0)
        charged: Floats = self._charges[:, rows] * share
        return charged

    def _weights(self, cls: PodClass, rows: Ints) -> Ints:
        """The greatest share of any resource of each row's machine that a pod of a class asks for; one at least."""
        weights: Ints = np.ones(len(rows), dtype=np.int64)
        for resource in cls.needs:
            if resource != PODS_ROW:
                offered = self._table.allocatable[resource, rows]
                part = np.where(offered > 0, cls.asked[resource] / np.maximum(offered, 1), 0.0)
                weights = np.maximum(weights, (np.minimum(part, 1.0) * WHOLE).astype(np.int64))
        return weights


def _bounds(limit: NamespaceLimit) -> Floats:
    return np.array([np.inf if most is None else most for most in (limit.max_cpu_m, limit.max_nanos_per_hour)])
