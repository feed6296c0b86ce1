"""Rescheduling: the pods of one node find room elsewhere, all of them, or the node is kept.

Source: HTAS paper Algorithm 5. The simulation carries moves over from one candidate to the next, so that two nodes
never count the same free room; budgets are spent in one ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from htas.model.money import price_text
from htas.model.move_times import MoveTimes
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.plan import KeptNode
from htas.model.pods import Pod, WorkKind
from htas.model.policy import CleaningRules, Policy
from htas.model.reasons import Kept
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.ending import must_leave
from htas.planning.cluster.feasibility import PLACEMENT_FILTERS, resources
from htas.planning.cluster.run_length import as_moved, may_begin_again, remaining_s
from htas.planning.cluster.simulation import Simulation
from htas.planning.disrupt.cleaning.candidates import DrainCandidate, span
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.drain_rules import Context
from htas.planning.eligibility.migration_methods import (
    NO_VOLUMES,
    VolumeBook,
    begins_on_a_guess,
    method_for,
    source_refusal,
    target_refusal,
)
from htas.planning.place.placing import Placer
from htas.planning.rental.bills import Rentals
from htas.planning.rental.moving import Saving
from htas.planning.rental.new_machines import HOUR_S


@dataclass(frozen=True, slots=True)
class Rescheduler:
    """Tries candidates one after another on one simulation, whose open rows are the possible targets."""

    sim: Simulation
    book: ClassBook
    placer: Placer
    policy: Policy
    ledger: BudgetLedger
    now: float
    rentals: Rentals
    move_times: Mapping[str, MoveTimes] = field(default_factory=dict)
    volumes: VolumeBook = NO_VOLUMES
    held: set[int] = field(default_factory=set)
    """Rows that services have been moved to so far, and hold from now on: others add nothing there."""

    def empty(self, candidate: DrainCandidate, *, agreed_at: float | None = None) -> list[Move] | KeptNode:
        """The moves that empty a node, carried out in the simulation; or why it is kept, with nothing changed.

        The row of an emptied node stays closed. `agreed_at`: when what takes over from it was bought.
        """
        movable = self.movable(candidate)
        if isinstance(movable, KeptNode):
            return movable
        guessed = self.guessed(candidate, movable, agreed_at)
        if guessed is not None:
            return guessed
        saving = self._saving(candidate, movable, is_agreed=agreed_at is not None)
        if saving is not None and not saving.exceeds(0):
            return _not_worth_it(candidate, saving, 0)
        refusal = self.ledger.try_spend(movable)
        if refusal is not None:
            message = f"NotEnoughPdb: {refusal} (all {len(movable)} pods of the node have to move)"
            return KeptNode(candidate.node.name, Kept.BLOCKED_BY_POD, message)
        with self.sim.fork() as branch:
            self.sim.also_undo(lambda: self.ledger.refund(movable))
            moves = self._rehouse(candidate, movable, saving)
            if not isinstance(moves, KeptNode):
                branch.commit()
        return moves

    def movable(self, candidate: DrainCandidate) -> list[Pod] | KeptNode:
        """The pods that must move, unless a rule holds one of them."""
        name, rules = candidate.node.name, candidate.group.cleaning
        has_work = any(must_leave(pod, self.now) for pod in candidate.pods)  # others end without a checkpoint
        refused = source_refusal(candidate.node, rules.migration) if has_work else None
        if refused is not None:
            return KeptNode(name, Kept.CANNOT_CHECKPOINT, f"{refused[1]}; its group moves pods by {rules.migration}")
        context = Context(rules, self.ledger, self.now, self.policy.migration, self.volumes)
        movable = []
        for pod in sorted(candidate.pods, key=lambda pod: pod.key):
            verdict = drain_rules.judge(pod, context)
            if verdict.blocked is not None:
                return KeptNode(name, Kept.BLOCKED_BY_POD, f"{verdict.blocked}: {verdict.message}")
            if verdict.waits:
                return KeptNode(name, Kept.BLOCKED_BY_ON_COMPLETION_POD, verdict.message)
            if pod.is_terminating and not verdict.stays:
                return KeptNode(name, Kept.BLOCKED_BY_POD, f"{pod.key} is ending: looked at again when it is gone")
            if not verdict.stays:
                movable.append(pod)
        return movable

    def guessed(
        self, candidate: DrainCandidate, pods: Iterable[Pod], agreed_at: float | None = None
    ) -> KeptNode | None:
        """Why a node is kept whose work would begin again, for nobody knows how long; None: none of it is such.

        Outgoing nodes are emptied all the same. So are those whose work was known well enough at `agreed_at`, when what
        takes over from them was bought, though it has outrun that since. Who has come since was no part of that: a job
        that was placed there while the machine started was evicted by the agreement about the others.
        """
        for pod in pods if candidate.outgoing is None else ():
            if agreed_at is not None and self._was_known(pod, agreed_at):
                continue
            why = begins_on_a_guess(pod, candidate.group.cleaning.migration, self.policy, self.now)
            if why is not None:
                return KeptNode(candidate.node.name, Kept.RUN_LENGTH_UNKNOWN, why)
        return None

    def _was_known(self, pod: Pod, agreed_at: float) -> bool:
        """Whether a pod ran already at a time, when so much was known of its end that it might have begun again."""
        return not pod.has_come_since(agreed_at) and may_begin_again(pod, self.policy, agreed_at)

    def _saving(self, candidate: DrainCandidate, pods: list[Pod], *, is_agreed: bool) -> Saving | None:
        """What emptying a node saves, beside what that adds elsewhere.

        None: nothing has to move; or a service, off a node that goes at any rate or whose successor has been bought; or
        the node goes urgently, whatever its work repeats, since that may stand still. Jobs beside a service begin again
        only where they would if they were alone. An outgoing node goes whatever restarts are worth, but not for less
        than the work that is done again.
        """
        if candidate.is_urgent:
            return None
        rules, now = candidate.group.cleaning, self.now
        restarts = 0
        if self.policy.value.restart_nanos and candidate.outgoing is None:
            evicted = sum(method_for(pod, rules.migration) is MigrationMethod.EVICT for pod in pods)
            restarts = self.policy.value.restart_nanos * HOUR_S * evicted
        jobs = [pod for pod in pods if pod.kind is WorkKind.BATCH]
        serves, goes_anyway = len(jobs) < len(pods), is_agreed or candidate.outgoing is not None
        if not pods or (serves and goes_anyway and not restarts):
            return None
        repeated = 0.0
        if not rules.migration.keeps_progress and not (serves and goes_anyway):
            repeated = max((now - (now if pod.started_at is None else pod.started_at) for pod in jobs), default=0.0)
        saving_until = partial(
            Saving.of, candidate.bill(self.policy), now, moves_s=self.moves_s(rules, pods), repeated_s=repeated
        )
        left_s = max((remaining_s(pod, self.policy, now) for pod in jobs), default=0.0)
        if serves:
            alone = saving_until(left_s=left_s)
            if repeated and not alone.exceeds(0):
                return alone
            return saving_until(left_s=max(HOUR_S, left_s), restarts=restarts, serves=True)
        return saving_until(left_s=left_s, restarts=restarts)

    def _hold(self, row: int) -> None:
        """Take down that a service holds a row from now on, until its move is taken back."""
        if row not in self.held and row < len(self.rentals.price) and self.rentals.price[row]:
            self.held.add(row)
            self.sim.also_undo(lambda: self.held.discard(row))

    def moves_s(self, rules: CleaningRules, pods: Sequence[Pod]) -> float:
        """How long moving these pods takes: as long as the longest (paper 5.3), so often as they go in turns.

        As measured of the method (T = C ÷ B + K), else as configured.
        """
        times = self.move_times.get(rules.migration.value)
        if times is None or not times.are_known or not rules.migration.keeps_progress:
            return rules.migration_seconds
        longest = max(times.expected_s(pod.requests.memory_bytes) for pod in pods)
        return longest * -(-len(pods) // self.policy.migration.at_once)

    def _rehouse(self, candidate: DrainCandidate, pods: list[Pod], saving: Saving | None) -> list[Move] | KeptNode:
        """All pods placed on open rows other than their own (paper Algorithm 5), the hardest to place first.

        Nothing is moved where the targets are then rented longer for more than is saved, but off an outgoing node: what
        takes over from it is rented for as long as it would have been.
        """
        sim, source, method = self.sim, candidate.node.name, candidate.group.cleaning.migration
        row = sim.table.row_of[source]
        moves: list[Move] = []
        ends, before = sim.table.run_until.copy(), frozenset(self.held)
        with sim.closed(self._unable(method)):
            sim.vacate(row)
            for pod in pods:
                sim.unplace(self.book.class_of(pod), row)
            moved = [(pod, self.moved(pod, method)) for pod in pods]
            for pod, cls in sorted(moved, key=lambda item: _hardest_first(*item)):
                target = self._target(cls)
                if target is None:
                    what = f"{pod.key} {_asks(cls)} fits on no other node"
                    if method is MigrationMethod.KUBELET_CHECKPOINT:
                        what += " that restores checkpoints (containerd 2.2 and 2.3 do)"
                    what += f": {_obstacles(sim, cls)}"
                    return KeptNode(source, Kept.NO_PLACE_TO_MOVE_PODS, what)
                moves.append(Move(pod.key, pod.uid, source, target, method_for(pod, method), MoveReason.NODE_DRAINED))
                if pod.kind is not WorkKind.BATCH:
                    self._hold(sim.table.row_of[target])
            targets = {sim.table.row_of[move.target] for move in moves if move.target is not None}
            if saving is not None and candidate.outgoing is None:
                held, later = sorted(self.held - before), sim.table.run_until.copy()
                later[held] = np.maximum(later[held], self.now + saving.left_s)
                added = self.rentals.added(targets - before, ends, later, self.now)
                price = int(self.rentals.price[held].sum())
                if not saving.exceeds(added, price):
                    return _not_worth_it(candidate, saving, added, price)
        return moves

    def _unable(self, method: MigrationMethod) -> list[int]:
        """Rows that a method cannot move pods to."""
        if method is not MigrationMethod.KUBELET_CHECKPOINT:  # the others move pods to any node
            return []
        nodes = enumerate(self.sim.table.nodes)
        return [row for row, node in nodes if target_refusal(node, method) is not None]

    def _target(self, cls: PodClass) -> str | None:
        """The node where one pod of a class was placed."""
        mark = len(self.sim.log)
        if not self.placer.place(self.sim, cls, 1):
            return None
        return next(self.sim.table.nodes[row].name for _, row, _ in self.sim.assignments(mark))

    def moved(self, pod: Pod, method: MigrationMethod) -> PodClass:
        """The class of a pod where it goes."""
        return self.book.class_of(as_moved(pod, method, self.policy, self.now))


def _not_worth_it(candidate: DrainCandidate, saving: Saving, added: int, held: int = 0) -> KeptNode:
    """What moving would have saved and added, for people."""
    if held > saving.price:
        what = f"its services, which have no end, would use machines of {price_text(held)} an hour instead of its own"
        return KeptNode(candidate.node.name, Kept.EMPTY_BEFORE_MIGRATION_PAYS, f"{what} of {price_text(saving.price)}")
    when = (
        f"a service is on it; in {span(saving.left_s)}" if saving.serves else f"its work ends in {span(saving.left_s)};"
    )
    message = f"{when} moving it would save {span(float(max(saving.saved_s, 0)))} of rental"
    if saving.repeated_s:
        message += f" and repeat {span(saving.repeated_s)} of work"
    if saving.restarts:
        message += ", and restart pods, which costs more (value.restart)"
    if added and saving.price:
        message += f", and have others rented longer for as much as {span(added / saving.price)} of it"
    return KeptNode(candidate.node.name, Kept.EMPTY_BEFORE_MIGRATION_PAYS, message)


def _hardest_first(pod: Pod, cls: PodClass) -> tuple[object, ...]:
    """Best-fit decreasing places the largest first, memory before CPU; and by name, whatever the snapshot's order."""
    memory, cpu = cls.size
    return -memory, -cpu, -cls.run_length_s, pod.key


def _asks(cls: PodClass) -> str:
    memory, cpu = cls.size
    by_default = ", by default" if any(cls.missing) else ""
    return f"({cpu}m cpu, {memory / 2**20:.0f} Mi memory{by_default})"


def _obstacles(sim: Simulation, cls: PodClass) -> str:
    """What refuses a class on the nodes that are for it, as "2 Insufficient cpu"; on all open ones where none is.

    Nodes that its selector, its tolerations or its volumes rule out are passed over while there are others: nobody
    expects it there, and they would be asked one by one (3 ms on 5,000 nodes, for each node that is kept).
    """
    every = sim.all_rows
    left = sim.allowed(cls) & sim.table.is_open[every]
    if not left.any():
        return _listed(sim.diagnose(cls))
    counts: dict[str, int] = {}
    for refuse in (resources.refuse, *PLACEMENT_FILTERS):
        refused = left & False
        for refusal in refuse(sim.filter_context, cls, every):
            where = refusal.where & left
            if where.any():
                counts[refusal.reason] = counts.get(refusal.reason, 0) + int(where.sum())
                refused |= where
        left = left & ~refused
    return _listed(counts)


def _listed(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered) or "no other node takes pods now"
