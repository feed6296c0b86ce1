"""From a snapshot to the problem: which pods may be moved, which are alike, and what the rest leaves free."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

import numpy as np

from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.services import is_served
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.cluster.whereabouts import on_their_way
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy
from htas.planning.place.edge_present import edge_nodes
from htas.planning.solvers.placement.problem import PlacementProblem, load


@dataclass(frozen=True, slots=True)
class _Terms:
    """What decides whether two pods of one class are alike here."""

    yields: bool
    is_bound_to_home: bool
    """It may be evicted but not moved."""
    budget: int


@dataclass(slots=True)
class _Kind:
    cls: PodClass
    terms: _Terms
    row: int | None
    """The only node a pod that cannot be moved may be on; None: any that its class is allowed on."""
    is_running: bool
    members: list[Pod]
    rows: list[int]


def build(simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy, now: float) -> PlacementProblem:
    """The problem of a snapshot. What runs and is no part of it is counted as settled."""
    builder = _Builder(simulated, snapshot, policy, now)
    kinds = builder.kinds()
    return _arrays(simulated, kinds, builder)


class _Builder:
    def __init__(self, simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy, now: float) -> None:
        self._opening = simulated
        self._policy = policy
        self._disturbing = DisruptionPolicy(snapshot.cluster, policy, now)
        self._edge = {node.name for node in edge_nodes(snapshot.cluster.nodes, policy)}
        self.budgets = sorted(snapshot.cluster.budgets, key=lambda budget: (budget.namespace, budget.name))
        self._on_their_way = on_their_way(snapshot)
        leaving = [pod for pod in snapshot.cluster.pods if pod.key in self._on_their_way and pod.node is not None]
        self._ledger = BudgetLedger(self.budgets, leaving)
        self.allowances = [max(0, budget.disruptions_allowed) for budget in self._ledger.budgets]
        self.settled: dict[int, int] = defaultdict(int)
        self.undecided: dict[int, int] = defaultdict(int)

    def kinds(self) -> list[_Kind]:
        """Pods that may be moved or placed, by kind; the others are counted as settled or undecided."""
        found: dict[tuple[object, ...], _Kind] = {}
        for row, pods in sorted(self._opening.running.items()):
            for pod in pods:
                if not pod.is_work or pod.is_terminating or pod.node is None:
                    continue
                terms = self._terms(pod, row)
                if terms is None:
                    self.settled[pod.priority] += 1
                else:
                    self._add(found, pod, terms, row)
        for pod in sorted(self._opening.waiting, key=lambda pod: (pod.created_at, pod.namespace, pod.name)):
            if pod.scheduler != self._policy.scheduler_name:
                continue
            if self._opening.book.class_of(pod).is_dynamic:
                self.undecided[pod.priority] += 1
            else:
                self._add(found, pod, _Terms(False, False, -1), None)
        return list(found.values())

    def _add(self, found: dict[tuple[object, ...], _Kind], pod: Pod, terms: _Terms, row: int | None) -> None:
        cls = self._opening.book.class_of(pod)
        only = row if terms.is_bound_to_home else None
        key = (cls.requests.tobytes(), pod.priority, cls.static_key, terms, only, row is not None)
        kind = found.get(key)
        if kind is None:
            kind = found[key] = _Kind(cls, terms, only, row is not None, [], [])
        kind.members.append(pod)
        if row is not None:
            kind.rows.append(row)

    def _terms(self, pod: Pod, row: int) -> _Terms | None:
        """None: the pod stays where it is, whatever is found.

        So do pods of other schedulers, which would place a successor as they like; pods on nodes that take none or are
        not there yet; and pods whose constraints depend on what else is placed (spread, affinity, ports, volumes).
        """
        simulated, table = self._opening, self._opening.sim.table
        is_elsewhere = not table.is_open[row] or table.nodes[row].name in simulated.coming
        if is_elsewhere or pod.key in self._on_their_way or pod.scheduler != self._policy.scheduler_name:
            return None
        if self._opening.book.class_of(pod).is_dynamic:
            return None
        move = self._disturbing.terms(pod, DisruptionKind.MOVE).allowed_for
        evict = self._disturbing.terms(pod, DisruptionKind.EVICT).allowed_for
        if move is evict is AllowedFor.NOBODY or self._ledger.refusal(pod) is not None:
            return None
        charged = self._ledger.charged(pod)
        yields = move is not AllowedFor.ANYBODY or (is_served(pod) and pod.node in self._edge)
        return _Terms(yields, move is AllowedFor.NOBODY, charged[0] if charged else -1)


def _arrays(simulated: SimulatedCluster, kinds: list[_Kind], builder: _Builder) -> PlacementProblem:
    sim = simulated.sim
    coming = np.array([node.name in simulated.coming for node in sim.table.nodes], dtype=np.bool_)
    is_open = sim.table.is_open[: len(sim.table)]
    rows = np.flatnonzero(is_open)
    column = {int(row): j for j, row in enumerate(rows)}
    priorities = sorted(
        {kind.cls.priority for kind in kinds} | set(builder.settled) | set(builder.undecided), reverse=True
    )
    tier_of = {priority: tier for tier, priority in enumerate(priorities)}
    home = np.zeros((len(kinds), len(rows)), dtype=np.int64)
    for k, kind in enumerate(kinds):
        np.add.at(home[k], [column[row] for row in kind.rows], 1)
    requests = np.array([kind.cls.requests for kind in kinds], dtype=np.int64).reshape(len(kinds), len(sim.table.axis))
    taken = load(home, requests)
    # A node may hold more than it offers (its allocatable shrank): what is on it may stay, and nothing joins it.
    capacity = np.maximum(sim.table.free[:, rows].T + taken, taken)
    capacity, requests = _smallest_units(capacity, requests)
    running, open_now = home.sum(axis=1) > 0, ~coming[rows]
    return PlacementProblem(
        priorities=tuple(priorities),
        capacity=capacity,
        requests=requests,
        tier=np.array([tier_of[kind.cls.priority] for kind in kinds], dtype=np.int64),
        is_running=running,
        yields=np.array([kind.terms.yields for kind in kinds], dtype=np.bool_),
        budget_of=np.array([kind.terms.budget for kind in kinds], dtype=np.int64),
        budgets=tuple(builder.allowances),
        allowed=_allowed(simulated, kinds, rows, open_now, home),
        home=home,
        count=np.array([len(kind.members) for kind in kinds], dtype=np.int64),
        members=tuple(tuple(kind.members) for kind in kinds),
        rows=tuple(int(row) for row in rows),
        settled=tuple((builder.settled[p], builder.settled[p]) for p in priorities),
        undecided=tuple(builder.undecided[p] for p in priorities),
    )


def _allowed(simulated: SimulatedCluster, kinds: Iterable[_Kind], rows: Ints, open_now: Bools, home: Ints) -> Bools:
    """Where each kind may be: where its filters accept, and wherever it runs already.

    Running pods are not moved to machines on their way, which may never come.
    """
    columns = []
    for kind in kinds:
        allowed = simulated.sim.allowed(kind.cls)[rows].copy()
        if kind.row is not None:
            allowed &= rows == kind.row
        if kind.is_running:
            allowed &= open_now
        columns.append(allowed)
    found = np.array(columns, dtype=np.bool_).reshape(home.shape)
    return np.asarray(found | (home > 0))


def _smallest_units(capacity: Ints, requests: Ints) -> tuple[Ints, Ints]:
    """Only resources that can run out, each in the greatest unit that divides every request (fewer digits to add).

    Rounding a node's room down to that unit loses nothing: no sum of requests lies between.
    """
    used = np.flatnonzero(requests.any(axis=0)) if len(requests) else np.arange(0)
    used = used[~_outlasting(capacity[:, used], requests[:, used])]
    capacity, requests = capacity[:, used], requests[:, used]
    units = np.array([gcd(*map(int, requests[:, r])) for r in range(len(used))], dtype=np.int64)
    return np.asarray(capacity // units), np.asarray(requests // units)


def _outlasting(capacity: Ints, requests: Ints) -> Bools:
    """Resources of which no pod takes as great a share of any node as it does of one other resource.

    Of 110 pods a node takes, one that asks for 100 of 4,000 m takes less than 1 %: cpu runs out first.
    """
    found = np.zeros(capacity.shape[1], dtype=np.bool_)
    if not len(capacity) or (capacity <= 0).any():
        return found
    for one in range(len(found)):
        for other in np.flatnonzero(~found):
            # With the nodes' most of the other resource for one of this one, a pod's share there is least.
            rate = (capacity[:, other] / capacity[:, one]).max()
            if other != one and (requests[:, one] * rate * (1 + 1e-9) < requests[:, other]).all():
                found[one] = True
    return found
