"""The optimiser: when nothing can be bought, the best placement of what there is, tier of priority by tier.

A snapshot in, a rearrangement out: `problem_of` makes the problem in numbers, `solvers/placement` solves it stage by
stage (greedy placement, exchanges, node patterns, neighbourhoods), `_steps_of` says which pods its counts mean, and
`_verified` replays these through the feasibility code. docs/algorithms.md states the model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.pods import Pod, priority_sort
from htas.model.policy import Policy
from htas.model.proposals import Seat
from htas.model.rearrangement import PriorityTier, Rearrangement, RearrangementStatus
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import MEMORY_ROW, Bools, Ints, PodClass
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.services import is_served
from htas.planning.cluster.simulated import SimulatedCluster, open_simulation
from htas.planning.cluster.slots import RowTransfer
from htas.planning.cluster.whereabouts import on_their_way
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy
from htas.planning.eligibility.migration_methods import MigrationMethods
from htas.planning.place.edge_present import edge_nodes
from htas.planning.solvers.placement.budget import SearchBudget, SearchClock
from htas.planning.solvers.placement.engines import ENGINES
from htas.planning.solvers.placement.problem import Counts, PlacementProblem, load, smallest_units
from htas.planning.solvers.placement.search import Reached


def optimise(
    snapshot: ClusterSnapshot, policy: Policy, now: float, budget: SearchBudget, elapsed: Callable[[], float]
) -> Rearrangement:
    """The best placement by priority found within the budget; at worst the present one with what fits beside it.

    `elapsed` is the caller's stopwatch in seconds, started when the search was asked for: building the problem counts.
    A budget of 0 s tries what needs no search. Raises ValueError (by SearchBudget) for negative seconds or no workers.
    """
    simulated = open_simulation(snapshot, policy, now)
    problem = problem_of(simulated, snapshot, policy, now)
    search = ENGINES[budget.engine](problem, SearchClock(budget, elapsed))
    search.run()
    wanted = _steps_of(problem, simulated, search.x)
    leaving = MigrationMethods(snapshot.cluster, policy)
    steps = _verified(simulated, problem, wanted, leaving)
    is_as_found = len(steps) == len(wanted) and set(map(id, steps)) == set(map(id, wanted))
    steps += _seats_after(simulated, policy)
    tiers = _tiers(problem, search.reached, steps, is_as_found)
    if _score(tiers, before=False) <= _score(tiers, before=True):
        tiers = _tiers(problem, search.reached, [], is_as_found and not steps)
        steps = []
    moves, seats = _written(simulated, steps, leaving)
    status = _status(tiers, bool(steps))
    return Rearrangement(now, status, tiers, moves, seats, _message(tiers, len(moves), len(seats)))


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


def problem_of(simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy, now: float) -> PlacementProblem:
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
    capacity, requests = smallest_units(capacity, requests)
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


def _steps_of(problem: PlacementProblem, simulated: SimulatedCluster, x: Counts) -> list[RowTransfer]:
    """Who changes: of interchangeable pods as many stay as can; of those that leave, the youngest."""
    steps: list[RowTransfer] = []
    book, row_of = simulated.book, simulated.sim.table.row_of
    for k in np.flatnonzero((x != problem.home).any(axis=1)).tolist():
        stays = np.minimum(x[k], problem.home[k])
        targets = np.repeat(np.array(problem.rows), x[k] - stays).tolist()
        if problem.is_running[k]:
            left = dict(zip(problem.rows, stays.tolist(), strict=True))
            movers: list[tuple[Pod, int]] = []
            for pod in sorted(problem.members[k], key=lambda pod: (pod.started_at or 0.0, pod.key)):
                row = row_of[pod.node or ""]
                if left[row]:
                    left[row] -= 1
                else:
                    movers.append((pod, row))
            steps += [
                RowTransfer(pod, book.class_of(pod), targets[i] if i < len(targets) else None, row)
                for i, (pod, row) in enumerate(movers)
            ]
        else:
            steps += [
                RowTransfer(pod, book.class_of(pod), target)
                for pod, target in zip(problem.members[k], targets, strict=False)
            ]
    return steps


def _verified(
    simulated: SimulatedCluster, problem: PlacementProblem, steps: list[RowTransfer], leaving: MigrationMethods
) -> list[RowTransfer]:
    """The steps that hold when replayed: every pod that leaves is taken out, then all are put in place one by one.

    The filters of the simulation judge each placement anew, as they would judge a bind. A running pod that is refused,
    would not arrive (nobody starts it again, and its target restores nothing) or has no target goes back
    to its node if that still takes it in the end, more important ones first; else nowhere.
    """
    sim = simulated.sim
    tier = {priority: t for t, priority in enumerate(problem.priorities)}
    for step in steps:
        if step.source is not None:
            sim.unplace(step.cls, step.source)
    done, refused = [], []
    for step in sorted(steps, key=lambda step: (tier[step.pod.priority], step.source is None, step.pod.key)):
        arrives = step.target is not None and (
            step.source is None or leaving.arrives(step.pod, sim.table.nodes[step.target].name)
        )
        if arrives and step.target is not None and sim.feasible(step.cls)[step.target]:
            sim.place(step.cls, step.target)
            done.append(step)
        elif step.source is not None:
            refused.append(step)
    for step in refused:
        source = step.source if step.source is not None else 0
        if fits(sim.table.free[:, source], step.cls):  # it runs there: room alone is in question
            sim.place(step.cls, source)
        else:
            done.append(replace(step, target=None))
    return done


def _seats_after(simulated: SimulatedCluster, policy: Policy) -> list[RowTransfer]:
    """Waiting pods with constraints among pods, placed in the simulation that stands after the verified steps."""
    steps = []
    waiting = [pod for pod in simulated.waiting if pod.scheduler == policy.scheduler_name]
    for pod in sorted(waiting, key=priority_sort):
        cls = simulated.book.class_of(pod)
        if not cls.is_dynamic:
            continue
        rows = np.flatnonzero(simulated.sim.feasible(cls))
        if len(rows):
            row = int(rows[np.argmin(simulated.sim.table.free[MEMORY_ROW, rows])])
            simulated.sim.place(cls, row)
            steps.append(RowTransfer(pod, cls, row))
    return steps


def _written(
    simulated: SimulatedCluster, steps: list[RowTransfer], leaving: MigrationMethods
) -> tuple[tuple[Move, ...], tuple[Seat, ...]]:
    """Moves and seats by pod. Seats on machines on their way are the planner's to give, when they are there."""
    nodes = simulated.sim.table.nodes
    moves, seats = [], []
    for step in steps:
        target = None if step.target is None else nodes[step.target].name
        if step.source is None:
            if target is not None and target not in simulated.coming:
                seats.append(Seat(step.pod.key, step.pod.uid, target))
            continue
        method = leaving.method(step.pod, target) if target is not None else MigrationMethod.EVICT
        source = nodes[step.source].name
        moves.append(Move(step.pod.key, step.pod.uid, source, target, method, MoveReason.MAKES_ROOM))
    return tuple(sorted(moves, key=lambda move: move.pod)), tuple(sorted(seats, key=lambda seat: seat.pod))


def _tiers(
    problem: PlacementProblem, reached: list[Reached], steps: list[RowTransfer], is_as_found: bool
) -> tuple[PriorityTier, ...]:
    """What came out, counted from the steps themselves."""
    tiers = []
    stays = undecided = wanted_above = placed_above = 0
    for t, priority in enumerate(problem.priorities):
        here = problem.tier == t
        own = [step for step in steps if step.pod.priority == priority]
        settled_wanted, settled_placed = problem.settled[t]
        undecided += problem.undecided[t]
        running = int(problem.home[here].sum()) + settled_placed
        wanted = int(problem.count[here].sum()) + settled_wanted + problem.undecided[t]
        gone = sum(step.source is not None and step.target is None for step in own)
        moved = sum(step.source is not None and step.target is not None for step in own)
        after = running - gone + sum(step.source is None for step in own)
        stays += 2 * running - 2 * gone - moved
        settled = sum(placed for _, placed in problem.settled[: t + 1])
        wanted_above, placed_above = wanted_above + wanted, placed_above + after
        bound = min(reached[t].placed_bound + settled + undecided, wanted_above)
        stays_bound = reached[t].stays_bound + 2 * settled
        placing = placed_above >= bound or (reached[t].is_placing_proven and is_as_found and not undecided)
        tiers.append(
            PriorityTier(
                priority=priority,
                wanted=wanted,
                placed_before=running,
                placed_after=after,
                placed_bound=max(bound, placed_above),
                is_placing_proven=placing,
                stays=stays,
                stays_bound=max(stays_bound, stays),
                is_staying_proven=placing and stays >= stays_bound,
            )
        )
    return tuple(tiers)


def _score(tiers: tuple[PriorityTier, ...], *, before: bool) -> tuple[int, ...]:
    return tuple(tier.placed_before if before else tier.placed_after for tier in tiers)


def _status(tiers: tuple[PriorityTier, ...], is_better: bool) -> RearrangementStatus:
    if all(tier.is_placing_proven for tier in tiers):
        return RearrangementStatus.PROVEN_OPTIMAL if is_better else RearrangementStatus.ALREADY_OPTIMAL
    return RearrangementStatus.IMPROVED if is_better else RearrangementStatus.NO_BETTER_FOUND


def _message(tiers: tuple[PriorityTier, ...], moves: int, seats: int) -> str:
    before, after = (sum(_score(tiers, before=before)) for before in (True, False))
    wanted = sum(tier.wanted for tier in tiers)
    bound = tiers[-1].placed_bound if tiers else 0
    return (
        f"{after} of {wanted} pods placed (now {before}, at most {bound}): {seats} scheduled, {moves} leave their nodes"
    )
