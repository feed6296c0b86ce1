"""Rescheduling: the pods of one node find room elsewhere, all of them, or the node is kept.

Source: HTAS paper Algorithm 5. The simulation carries moves over from one candidate to the next, so that two nodes
never count the same free room; budgets are spent in one ledger.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from htas.model.plan import KeptNode, Migration
from htas.model.pods import Pod, RunLength, WorkKind
from htas.model.policy import MigrationMethod, Policy
from htas.model.reasons import Kept
from htas.planning.classes import ClassBook, PodClass
from htas.planning.cleaning import drain_rules
from htas.planning.cleaning.candidates import Candidate
from htas.planning.cleaning.drain_rules.rule import Context
from htas.planning.cleaning.ledger import BudgetLedger
from htas.planning.packing.placing import Placer
from htas.planning.run_length import remaining_s
from htas.planning.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Rescheduler:
    """Tries candidates one after another on one simulation."""

    sim: Simulation
    book: ClassBook
    placer: Placer
    policy: Policy
    ledger: BudgetLedger
    now: float

    def empty(self, candidate: Candidate) -> list[Migration] | KeptNode:
        """The moves that empty a node, carried out in the simulation; or why it is kept, with nothing changed."""
        movable = self._movable(candidate)
        if isinstance(movable, KeptNode):
            return movable
        kept = self._not_worth_moving(candidate, movable)
        if kept is not None:
            return kept
        mark = self.ledger.mark()
        budget = self.ledger.try_spend(movable)
        if budget is not None:
            message = f"budget {budget} does not allow all of its pods to move now"
            return KeptNode(candidate.node.name, Kept.BLOCKED_BY_POD, f"NotEnoughPdb: {message}")
        moves = self._rehouse(candidate, movable)
        if isinstance(moves, KeptNode):
            self.ledger.back_to(mark)
        return moves

    def _movable(self, candidate: Candidate) -> list[Pod] | KeptNode:
        """The pods that must move, unless a rule holds one of them."""
        name = candidate.node.name
        context = Context(candidate.group.cleaning, self.ledger, self.now)
        movable = []
        for pod in sorted(candidate.pods, key=lambda pod: pod.key):
            verdict = drain_rules.judge(pod, context)
            if verdict.blocked is not None:
                return KeptNode(name, Kept.BLOCKED_BY_POD, f"{verdict.blocked}: {verdict.message}")
            if verdict.waits:
                return KeptNode(name, Kept.BLOCKED_BY_ON_COMPLETION_POD, verdict.message)
            if pod.is_terminating and not verdict.stays:
                return KeptNode(name, Kept.BLOCKED_BY_POD, f"{pod.key} is ending")
            if not verdict.stays:
                movable.append(pod)
        return movable

    def _not_worth_moving(self, candidate: Candidate, pods: list[Pod]) -> KeptNode | None:
        """A node whose work ends before moving it would pay.

        Moving saves the rental of the time left after the move, T = C ÷ B + K (paper 5.3); evicting also costs the
        work already done, which is run again elsewhere. A node with 90 s left is moved at T = 10 s by checkpoint
        (saves 80 s); by eviction only if its jobs have run for less than 80 s. Services have no end: always worth it.
        """
        batch = [pod for pod in pods if pod.kind is WorkKind.BATCH]
        if not batch or len(batch) < len(pods):
            return None
        rules = candidate.group.cleaning
        left = max(remaining_s(pod, self.policy, self.now) for pod in batch)
        cost = rules.migration_seconds
        if rules.migration is MigrationMethod.EVICT:
            cost += max((self.now - pod.started_at for pod in batch if pod.started_at is not None), default=0.0)
        if left > cost:
            return None
        message = f"its work ends in {left:.0f} s by itself; moving it would cost {cost:.0f} s"
        return KeptNode(candidate.node.name, Kept.EMPTY_BEFORE_MIGRATION_PAYS, message)

    def _rehouse(self, candidate: Candidate, pods: list[Pod]) -> list[Migration] | KeptNode:
        sim, method = self.sim, candidate.group.cleaning.migration
        row = sim.table.row_of[candidate.node.name]
        moves: list[Migration] = []
        with sim.fork() as branch:
            sim.close(row)
            for pod in pods:
                sim.unplace(self.book.class_of(pod), row)
            for pod in pods:
                mark = len(sim.log)
                if not self.placer.place(sim, self._moved(pod, method), 1):
                    message = f"{pod.key} fits nowhere else"
                    sim.open(row)
                    return KeptNode(candidate.node.name, Kept.NO_PLACE_TO_MOVE_PODS, message)
                target = next(row for _, row, _ in sim.assignments(mark))
                moves.append(Migration(pod.key, candidate.node.name, sim.table.nodes[target].name, method.value))
            branch.commit()
        return moves

    def _moved(self, pod: Pod, method: MigrationMethod) -> PodClass:
        """The class of a pod where it goes: with what is left of its run, or all of it when it starts again."""
        if pod.kind is WorkKind.BATCH and method is MigrationMethod.CHECKPOINT and pod.run_length is not None:
            left = remaining_s(pod, self.policy, self.now)
            pod = msgspec.structs.replace(pod, run_length=RunLength(left, pod.run_length.source))
        return self.book.class_of(pod)
