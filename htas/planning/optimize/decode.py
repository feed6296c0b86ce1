"""From counts back to pods: who leaves, where to, who gets a seat; replayed through the feasibility code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.proposals import Seat
from htas.planning.cluster.classes import MEMORY_ROW
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.eligibility.migration_methods import MigrationMethods
from htas.planning.solvers.placement.problem import Counts, PlacementProblem


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """A pod and where it goes: rows of the simulation, None for nowhere. `source` is None for one that waits."""

    pod: Pod
    source: int | None
    target: int | None


def steps_of(problem: PlacementProblem, simulated: SimulatedCluster, x: Counts) -> list[DecodedStep]:
    """Who changes: of interchangeable pods as many stay as can; of those that leave, the youngest."""
    steps: list[DecodedStep] = []
    row_of = simulated.sim.table.row_of
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
                DecodedStep(pod, row, targets[i] if i < len(targets) else None) for i, (pod, row) in enumerate(movers)
            ]
        else:
            steps += [DecodedStep(pod, None, target) for pod, target in zip(problem.members[k], targets, strict=False)]
    return steps


def verified(
    simulated: SimulatedCluster, problem: PlacementProblem, steps: list[DecodedStep], leaving: MigrationMethods
) -> list[DecodedStep]:
    """The steps that hold when replayed: every pod that leaves is taken out, then all are put in place one by one.

    The filters of the simulation judge each placement anew, as they would judge a bind. A running pod that is refused,
    would not arrive (nobody starts it again, and its target restores nothing) or has no target goes back
    to its node if that still takes it in the end, more important ones first; else nowhere.
    """
    sim, book = simulated.sim, simulated.book
    tier = {priority: t for t, priority in enumerate(problem.priorities)}
    for step in steps:
        if step.source is not None:
            sim.unplace(book.class_of(step.pod), step.source)
    done, refused = [], []
    for step in sorted(steps, key=lambda step: (tier[step.pod.priority], step.source is None, step.pod.key)):
        cls = book.class_of(step.pod)
        arrives = step.target is not None and (
            step.source is None or leaving.arrives(step.pod, sim.table.nodes[step.target].name)
        )
        if arrives and step.target is not None and sim.feasible(cls)[step.target]:
            sim.place(cls, step.target)
            done.append(step)
        elif step.source is not None:
            refused.append(step)
    for step in refused:
        source = step.source if step.source is not None else 0
        if _has_room(simulated, step.pod, source):
            sim.place(book.class_of(step.pod), source)
        else:
            done.append(DecodedStep(step.pod, step.source, None))
    return done


def _has_room(simulated: SimulatedCluster, pod: Pod, row: int) -> bool:
    """Whether a pod may go back: what binds it there is room alone, since it runs there already."""
    cls = simulated.book.class_of(pod)
    return bool(fits(simulated.sim.table.free[:, row], cls))


def seats_after(simulated: SimulatedCluster, policy: Policy) -> list[DecodedStep]:
    """Waiting pods with constraints among pods, placed in the simulation that stands after the verified steps."""
    steps = []
    waiting = [pod for pod in simulated.waiting if pod.scheduler == policy.scheduler_name]
    for pod in sorted(waiting, key=lambda pod: (-pod.priority, pod.created_at, pod.key)):
        cls = simulated.book.class_of(pod)
        if not cls.is_dynamic:
            continue
        rows = np.flatnonzero(simulated.sim.feasible(cls))
        if len(rows):
            row = int(rows[np.argmin(simulated.sim.table.free[MEMORY_ROW, rows])])
            simulated.sim.place(cls, row)
            steps.append(DecodedStep(pod, None, row))
    return steps


def written(
    simulated: SimulatedCluster, steps: list[DecodedStep], leaving: MigrationMethods
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
