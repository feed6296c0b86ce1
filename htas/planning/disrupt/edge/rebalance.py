"""Suggestions: which running pods are to change nodes so that services come nearer to their targets.

What is decided here is carried out as a rearrangement (htas.planning.disrupt.rearrangement), step by step and each step
verified. So only pods move that may be moved for nobody's sake but their own: batch work never, services that have
opted in, all of it as budgets and promises allow. A pod leaves the edge only for a cloud node that has room for it once
all who are to leave have left, and never for pods of lower priority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.pods import Pod
from htas.model.proposals import Proposal
from htas.model.reasons import ProposalReason
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.services import served
from htas.planning.cluster.slots import RowTransfer, in_a_circle
from htas.planning.disrupt.edge.candidates import EdgeCandidates
from htas.planning.disrupt.edge.targets import unfit_targets
from htas.planning.eligibility.budgets import BudgetLedger, ledger_of, max_unavailable
from htas.planning.eligibility.migration_methods import MigrationMethods
from htas.planning.place.context import PlanContext
from htas.planning.place.edge_view import EdgeView, edge_rows, edge_view, whereabouts
from htas.planning.place.placing import Placer
from htas.planning.solvers.edge.search import SearchEffort
from htas.planning.solvers.edge.state import CLOUD, EdgeDecision, EdgeShift

LOOKS = 5
"""A decision may ask for what the model of the edge knows nothing of (a budget, room in the cloud): so often another
one is looked for, without the pods that were in the way and those like them; the last one asks no pod to leave the
edge. Each may take half the work of the one before, so that all together take less than two. The next period looks
again."""


@dataclass(frozen=True, slots=True)
class EdgeMoves:
    """`needed` are the nodes that it fills or empties, by name; `leaving` the pods that it moves."""

    proposals: tuple[Proposal, ...] = ()
    needed: frozenset[str] = frozenset()
    leaving: tuple[Pod, ...] = ()


def suggest_moves(context: PlanContext, placements: Mapping[int, Sequence[Pod]]) -> EdgeMoves:
    """What to move, its room kept in the simulation. `placements` is what this plan places, by row."""
    simulated, policy = context.simulated, context.policy
    rows = edge_rows(simulated, policy)
    if not rows or not may_suggest(context.snapshot):
        return EdgeMoves()
    from htas.planning.solvers.edge.suggesting import suggest  # where there is an edge alone: it loads the solver

    where = whereabouts(context)
    names = simulated.sim.table.nodes
    where |= {pod.uid: names[row].name for row, pods in placements.items() for pod in pods}
    candidates = EdgeCandidates(context.snapshot, policy, context.now)
    pods = served(context.snapshot.cluster)
    movable = {pod.uid for pod in pods if candidates.why_not(pod) is None}
    near = {names[row].name for row in rows}
    counted = [pod for pod in pods if where.get(pod.uid) not in near]
    leaving, ledger = MigrationMethods(context.snapshot.cluster, policy), ledger_of(context.snapshot)
    closed = unfit_targets(context.snapshot.cluster, policy.edge, context.now)
    for look in range(LOOKS):
        some = _within_max_unavailable(movable, counted, pods, leaving, ledger)
        view = edge_view(context, rows, where, movable=some, closed=closed)
        limits = policy.edge if look < LOOKS - 1 else msgspec.structs.replace(policy.edge, edge_to_cloud_moves=0)
        decision = suggest(view.state, limits, SearchEffort(policy.edge.work_limit >> look))
        if not decision.moves:
            return EdgeMoves()
        trial = _Trial(context, view, where, leaving, ledger, closed)
        trial.run(decision)
        if not trial.unfit:
            return trial.accepted(decision)
        movable -= trial.unfit | trial.like_unfit()
        # At first any pod near may be the one that leaves; then of each service those that were chosen, and no more.
        chosen = {view.pods[move.pod].uid for move in decision.moves}
        counted = sorted(pods, key=lambda pod: pod.uid not in chosen)
    return EdgeMoves()


def may_suggest(snapshot: ClusterSnapshot) -> bool:
    """One at a time: not while another one, or a search for room, is under way."""
    return snapshot.rearrangement is None and not snapshot.search.is_under_way


@dataclass(slots=True)
class _Trial:
    """A decision tried in the simulation; `unfit` are pods (uids) that cannot do what it asks of them."""

    context: PlanContext
    view: EdgeView
    where: Mapping[str, str]
    leaving: MigrationMethods
    budgets: BudgetLedger
    """Says which pods have any; what a decision spends of them is counted apart."""
    closed: Collection[str]
    """Nodes that nobody is moved to."""
    unfit: set[str] = field(default_factory=set)
    targets: dict[int, int] = field(default_factory=dict)
    """Rows by the pods' numbers."""

    def run(self, decision: EdgeDecision) -> None:
        self._check_priorities(decision)
        self._check_budgets(decision)
        self._find_room(decision)
        self._check_at_once(decision)
        self._check_order(decision)

    def like_unfit(self) -> set[str]:
        """Pods that would be in the way as those are, one after another: of the same class and service, on the same
        node. Those that could do what was asked of them are not among them."""
        found = {self._kind(number) for number, pod in enumerate(self.view.pods) if pod.uid in self.unfit}
        return {
            pod.uid
            for number, pod in enumerate(self.view.pods)
            if number not in self.targets and self._kind(number) in found
        }

    def _kind(self, number: int) -> tuple[object, ...]:
        pod = self.view.pods[number]
        return id(self._class(pod)), pod.service, self.view.state.pods[number].where

    def accepted(self, decision: EdgeDecision) -> EdgeMoves:
        """The decision as moves of pods. Its room is nobody else's from now on; that of its sources is not free yet."""
        sim, names = self.context.simulated.sim, self.context.simulated.sim.table.nodes
        has_lifts = decision.lifts > 0
        moves = []
        for move in decision.moves:
            pod, row = self.view.pods[move.pod], self.targets[move.pod]
            sim.place_many(self._class(pod), np.array([row]), np.array([1]), is_placement=False)
            method = self.leaving.method(pod, names[row].name)
            is_aim = move.source == CLOUD or not has_lifts
            reason = MoveReason.NEARER_TO_USERS if is_aim else MoveReason.MAKES_ROOM
            moves.append(Move(pod.key, pod.uid, self.where[pod.uid], names[row].name, method, reason))
        touched = {move.source for move in moves} | {move.target or "" for move in moves}
        moved = tuple(self.view.pods[move.pod] for move in decision.moves)
        return EdgeMoves((Proposal(ProposalReason.NEARER_TO_USERS, tuple(moves)),), frozenset(touched), moved)

    def _check_priorities(self, decision: EdgeDecision) -> None:
        """Nobody leaves the edge for less important work."""
        lifted = [self.view.pods[move.pod].priority for move in decision.moves if move.source == CLOUD]
        for move in decision.moves:
            pod = self.view.pods[move.pod]
            if move.target == CLOUD and lifted and pod.priority > min(lifted):
                self.unfit.add(pod.uid)

    def _check_budgets(self, decision: EdgeDecision) -> None:
        """More moves than a budget allows at once wait for the next period."""
        ledger = ledger_of(self.context.snapshot)
        for move in decision.moves:
            pod = self.view.pods[move.pod]
            if ledger.try_spend([pod]) is not None:
                self.unfit.add(pod.uid)

    def _check_at_once(self, decision: EdgeDecision) -> None:
        """Where no budget says how many pods of a service may be down at a time, a few are."""
        names = self.context.simulated.sim.table.nodes
        at_once = MaxUnavailable(self.view.pods, self.leaving, self.budgets)
        for move in decision.moves:
            pod = self.view.pods[move.pod]
            if move.pod in self.targets and not at_once.try_spend(pod, names[self.targets[move.pod]].name):
                self.unfit.add(pod.uid)

    def _find_room(self, decision: EdgeDecision) -> None:
        """By every rule of feasibility, once all who leave have left."""
        sim = self.context.simulated.sim
        with sim.fork():
            sim.close(*(sim.table.row_of[name] for name in self.closed if name in sim.table.row_of))
            for move in decision.moves:
                pod = self.view.pods[move.pod]
                sim.unplace(self._class(pod), self._row_of(pod))
            for move in decision.moves:
                pod = self.view.pods[move.pod]
                row = self._row_for(move, self._class(pod))
                if row is None:
                    self.unfit.add(pod.uid)
                    continue
                self.targets[move.pod] = row

    def _check_order(self, decision: EdgeDecision) -> None:
        """Pods whose twins would wait for each other's room stay: none of them is to be down for it."""
        names = self.context.simulated.sim.table.nodes
        moves = []
        for move in decision.moves:
            if move.pod in self.targets:
                pod, row = self.view.pods[move.pod], self.targets[move.pod]
                may_go_first = not self.leaving.method(pod, names[row].name).makes_twin
                moves.append(RowTransfer(pod, self._class(pod), row, self._row_of(pod), may_go_first))
        self.unfit |= in_a_circle(self.context.simulated.sim, moves)

    def _row_of(self, pod: Pod) -> int:
        return self.context.simulated.sim.table.row_of[self.where[pod.uid]]

    def _row_for(self, move: EdgeShift, cls: PodClass) -> int | None:
        """Where the pod was placed in the simulation; None: there is no room."""
        sim = self.context.simulated.sim
        if move.target != CLOUD:
            row = self.view.rows[move.target]
            if not sim.fits(cls, row):
                return None
            sim.place(cls, row)
            return row
        mark = len(sim.log)
        if not self._cloud().place(sim, cls, 1):
            return None
        return next(row for _, row, _ in sim.assignments(mark))

    def _cloud(self) -> Placer:
        simulated = self.context.simulated
        nodes = simulated.sim.table.nodes
        pools = [
            pool for pool in simulated.pools if not pool.is_edge and nodes[pool.rows.start].name not in simulated.coming
        ]
        return Placer(self.context.policy, pools)

    def _class(self, pod: Pod) -> PodClass:
        return self.context.simulated.book.class_of(pod)


class MaxUnavailable:
    """Counts evictions of one suggestion. Pods whose twin starts first are not counted, as they are not missed."""

    def __init__(self, pods: Iterable[Pod], leaving: MigrationMethods, ledger: BudgetLedger) -> None:
        pods = list(pods)
        self._leaving = leaving
        self._ledger = ledger
        there = Counter(pod.service for pod in pods)
        waiting = Counter(pod.service for pod in pods if pod.node is None)
        self._left = {service: max_unavailable(count) - waiting[service] for service, count in there.items()}

    def try_spend(self, pod: Pod, target: str | None = None) -> bool:
        """Count one more pod that leaves its node; False: there would be too many. `target` None: not chosen yet."""
        if self._leaving.method(pod, target) is not MigrationMethod.EVICT or self._ledger.has_budget(pod):
            return True
        if self._left[pod.service] < 1:
            return False
        self._left[pod.service] -= 1
        return True


def _within_max_unavailable(
    movable: Collection[str], some: Iterable[Pod], pods: Iterable[Pod], leaving: MigrationMethods, ledger: BudgetLedger
) -> set[str]:
    """Of the pods (uids) that may be moved all but those of `some` that are too many at once, the last ones of them.

    So what is decided on them need not be decided again without these.
    """
    at_once = MaxUnavailable(pods, leaving, ledger)
    surplus = {pod.uid for pod in some if pod.uid in movable and not at_once.try_spend(pod)}
    return set(movable) - surplus
