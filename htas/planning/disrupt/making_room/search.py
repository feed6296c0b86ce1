"""The search for a way: at most two moves that free a node for each waiting pod, the least costly first.

A few rows with the least missing are looked at, of each the smallest movable pods whose leaving is enough, alone or two
together. Whoever moves may be moved for nobody's sake but the bill's: batch work and services that have opted in, as
drain rules, budgets and promises allow, and nobody for work of lower priority. A pod or node whose move has failed of
late is left alone. Large rearrangements are the optimiser's, where nothing can be bought.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from htas.model.edge import Tier
from htas.model.holds import HoldReason
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.pods import Pod
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, Bools, Ints, PodClass
from htas.planning.cluster.run_length import as_moved, may_begin_again
from htas.planning.cluster.simulation import KeptRoom
from htas.planning.cluster.whereabouts import on_their_way
from htas.planning.disrupt.making_room.worth import Charges, Way
from htas.planning.eligibility.budgets import ledger_of
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy
from htas.planning.eligibility.migration_methods import MigrationMethods
from htas.planning.place.context import PlanContext

MOST_MOVES = 2
"""For one machine that is not bought."""
MOST_LOOKS = 200
"""Ways tried in one plan: some ten milliseconds on 5,000 nodes."""
ROWS, SMALLEST, SETS = 12, 8, 3
"""Rows looked at for a pod; movable pods of a row, the smallest first, that pairs are made of; ways tried on a row."""


class RoomSearch:
    """Finds ways in a simulation; what it finds is carried out there, for the caller to keep or drop."""

    def __init__(self, context: PlanContext, charges: Charges) -> None:
        simulated, snapshot, policy = context.simulated, context.snapshot, context.policy
        self._context = context
        self._charges = charges
        self._sim, self._book, self._running = simulated.sim, simulated.book, simulated.running
        self._terms = DisruptionPolicy(snapshot.cluster, policy, context.now)
        self._methods = MigrationMethods(snapshot.cluster, policy)
        self.ledger = ledger_of(snapshot)
        self._looks_left = MOST_LOOKS
        self._targets = self._rows_there()
        self._spared = {(each.node, each.pod) for each in snapshot.failed_moves if context.now < each.until}
        self._on_their_way = on_their_way(snapshot)
        self._movable: dict[int, list[Pod]] = {}
        self._left: dict[tuple[str, MigrationMethod], Pod] = {}
        self._moved: set[str] = set()

    def way(self, pods: Iterable[tuple[Pod, PodClass]]) -> Way | None:
        """A way to seat all of the pods; None: none was found. The simulation holds it as if it were done."""
        found = Way()
        for pod, cls in sorted(pods, key=lambda each: (-each[1].size[0], -each[1].size[1], each[0].key)):
            best = self._best(pod, cls, MOST_MOVES - len(found.moves))
            if best is None:
                return None
            self._carry_out(best)
            found += best
        return found

    def forget(self) -> None:
        """What was found last is not done."""
        self._moved.clear()

    def _rows_there(self) -> Bools:
        """Rows of nodes that are there and not near users: nothing is moved to or from the edge for the bill's sake."""
        policy, coming = self._context.policy, self._context.simulated.coming
        there = {node.name for node in self._context.snapshot.cluster.nodes if node.is_ready} - coming
        return np.array(
            [node.name in there and policy.tier_of(node) is not Tier.EDGE for node in self._sim.table.nodes],
            dtype=np.bool_,
        )

    def _best(self, pod: Pod, cls: PodClass, most: int) -> Way | None:
        """The least costly of the ways tried for one pod, of equals the one with the fewest moves."""
        ways = list(self._ways(pod, cls, most))
        return min(ways, key=lambda way: (self._charges.of(way), len(way.moves)), default=None)

    def _ways(self, pod: Pod, cls: PodClass, most: int) -> Iterator[Way]:
        for row, missing in self._rows(cls):
            for movers in islice(self._sets(row, missing, most, pod.priority), SETS):
                if self._looks_left <= 0:
                    return
                self._looks_left -= 1
                way = self._tried(pod, cls, row, movers)
                if way is not None:
                    yield way

    def _rows(self, cls: PodClass) -> list[tuple[int, Ints]]:
        """Rows that would take a pod were they empty, and what each misses, those first that miss the least."""
        rows = np.flatnonzero(self._sim.could_hold(cls) & self._targets_now())
        table = self._sim.table
        missing = np.maximum(cls.requests[:, None] - table.free[:, rows], 0)
        needs = list(cls.needs)
        share = (missing[needs] / np.maximum(table.allocatable[needs][:, rows], 1)).max(axis=0)
        order = np.lexsort((rows, share))
        found = []
        for i in order.tolist():
            row = int(rows[i])
            if not missing[:, i].any() or self._movers(row):
                found.append((row, missing[:, i]))
                if len(found) == ROWS:
                    break
        return found

    def _targets_now(self) -> Bools:
        """Machines that were bought since are none."""
        found: Bools = np.zeros(len(self._sim.table), dtype=np.bool_)
        found[: len(self._targets)] = self._targets
        return found

    def _sets(self, row: int, missing: Ints, most: int, priority: int) -> Iterator[tuple[Pod, ...]]:
        """Sets of movable pods that leave enough behind: nobody, else one, else two."""
        if not missing.any():
            yield ()
            return
        vectors = {pod.uid: self._book.vector(pod.requests) for pod in self._movers(row)}
        movers = [pod for pod in self._movers(row) if pod.priority <= priority and pod.uid not in self._moved]
        alone = [pod for pod in movers if (vectors[pod.uid] >= missing).all()] if most else []
        if alone or most < 2:
            yield from ((pod,) for pod in alone)
            return
        for pair in combinations(movers[:SMALLEST], 2):
            if (vectors[pair[0].uid] + vectors[pair[1].uid] >= missing).all():
                yield pair

    def _movers(self, row: int) -> list[Pod]:
        """Pods of a row that may move, the smallest first."""
        found = self._movable.get(row)
        if found is None:
            node = self._sim.table.nodes[row].name
            found = [pod for pod in self._running.get(row, ()) if self._may_move(pod, node)]
            found.sort(key=lambda pod: (pod.requests.memory_bytes, pod.requests.cpu_m, pod.key))
            self._movable[row] = found
        return found

    def _may_move(self, pod: Pod, node: str) -> bool:
        if pod.scheduler != self._context.policy.scheduler_name or pod.node is None or pod.started_at is None:
            return False
        if pod.key in self._on_their_way or (node, pod.key) in self._spared:
            return False
        method = self._methods.method(pod)
        if self._is_guess(pod, method) or not self._terms.may_move(pod, method):
            return False
        return self.ledger.refusal(pod) is None

    def _is_guess(self, pod: Pod, method: MigrationMethod) -> bool:
        """Whether a pod would begin again by a method, and what that would cost is anybody's guess.

        Asked of the method that is really taken, too: a checkpoint becomes an eviction at a target that restores none.
        """
        return not method.keeps_progress and not may_begin_again(pod, self._context.policy, self._context.now)

    def _tried(self, pod: Pod, cls: PodClass, row: int, movers: Sequence[Pod]) -> Way | None:
        sim, moves, seating = self._sim, [], KeptRoom(pod, cls, row, HoldReason.MOVES_MAKE_ROOM)
        with sim.fork():
            for mover in movers:
                sim.unplace(self._book.class_of(mover), row)
            if not sim.fits(cls, row):
                return None
            sim.keep_room(seating)
            for mover in reversed(movers):  # the largest first
                found = self._move(mover, row)
                if found is None:
                    return None
                sim.keep_room(found[1])
                moves.append(found)
        return Way((seating,), tuple(moves))

    def _move(self, mover: Pod, source: int) -> tuple[Move, KeptRoom] | None:
        """Where a pod goes: to the row it lengthens least, of equals the fullest."""
        sim = self._sim
        cls = self._book.class_of(mover)
        rows = np.flatnonzero(sim.feasible(cls) & self._targets_now())
        rows = rows[rows != source]
        if not len(rows):
            return None
        order = np.lexsort(
            (rows, sim.table.free[CPU_ROW, rows], sim.table.free[MEMORY_ROW, rows], self._charges.added(cls, rows))
        )
        for row in rows[order[:SETS]].tolist():
            target = sim.table.nodes[row].name
            method = self._methods.method(mover, target)
            if self._is_guess(mover, method):
                continue
            terms = self._terms.terms(mover, DisruptionKind.MOVE, target)
            if terms.allowed_for is AllowedFor.ANYBODY and self._methods.arrives(mover, target):
                move = Move(mover.key, mover.uid, sim.table.nodes[source].name, target, method, MoveReason.MAKES_ROOM)
                return move, KeptRoom(mover, self._book.class_of(self._as_moved(mover, method)), row, HoldReason.MOVE)
        return None

    def _as_moved(self, pod: Pod, method: MigrationMethod) -> Pod:
        key = (pod.uid, method)
        if key not in self._left:
            self._left[key] = as_moved(pod, method, self._context.policy, self._context.now)
        return self._left[key]

    def _carry_out(self, way: Way) -> None:
        for move, room in way.moves:
            self._sim.unplace(self._book.class_of(room.pod), self._sim.table.row_of[move.source])
            self._moved.add(move.uid)
        self._sim.keep_room(*way.arrivals())
