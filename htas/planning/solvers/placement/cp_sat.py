"""A stage as the document states it: who is where, one integer variable for each kind of pods and node, for CP-SAT.

x[k, j] counts the pods of kind k on node j: where all pods differ, these are the document's Booleans x[i, j]
(document 000, Algorithm 1). Constraints are those of `Problem`: (1) no pod twice, (2) room, (3) allowed nodes, (5) who
yields does so for somebody, (6) budgets and (7) what earlier stages reached, the last two as floors of the program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.placement.budget import SearchClock
from htas.planning.solvers.placement.problem import Measure, Program

MOST_VARIABLES = 100_000
"""With more, the model alone takes longer to build than a search has: 5,000 pods on 1,000 nodes would be 5 million."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best placement of a program (None: none was found in time), and what none can exceed."""

    x: Ints | None
    bound: int


class StageModel:
    """One program, as a model."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._model = cp_model.CpModel()
        self._x: dict[tuple[int, int], cp_model.IntVar] = {}
        self._at_home: dict[tuple[int, int], cp_model.IntVar] = {}
        self._pack()
        self._count_at_home()
        self._yield()
        for floor in program.floors:
            self._model.add(self._sum(floor.measure) >= floor.least)
        self._model.maximize(self._sum(program.objective))

    @staticmethod
    def is_too_large(program: Program) -> bool:
        return int(program.allowed.sum()) > MOST_VARIABLES

    def _pack(self) -> None:
        """(1) to (3)."""
        program, model = self._program, self._model
        for k, j in zip(*(part.tolist() for part in np.nonzero(program.allowed)), strict=True):
            most = _most(program, k, j)
            if most:
                self._x[k, j] = model.new_int_var(0, most, "")
        by_kind: dict[int, list[cp_model.IntVar]] = {}
        by_node: dict[int, list[tuple[int, cp_model.IntVar]]] = {}
        for (k, j), variable in self._x.items():
            by_kind.setdefault(k, []).append(variable)
            by_node.setdefault(j, []).append((k, variable))
        for k, variables in by_kind.items():
            model.add(cp_model.LinearExpr.sum(variables) <= int(program.count[k]))
        for j, there in by_node.items():
            variables = [variable for _, variable in there]
            for r in range(program.room.shape[1]):
                weights = [int(program.requests[k, r]) for k, _ in there]
                model.add(cp_model.LinearExpr.weighted_sum(variables, weights) <= int(program.room[j, r]))

    def _count_at_home(self) -> None:
        """m[k, j] = min(x[k, j], home[k, j]), for the kinds that some measure counts so: it is only ever maximised."""
        program, model = self._program, self._model
        counted = program.objective.at_home.astype(np.bool_)
        for floor in program.floors:
            counted = counted | floor.measure.at_home.astype(np.bool_)
        for k, j in zip(*(part.tolist() for part in np.nonzero(program.home * counted[:, None])), strict=True):
            variable = self._x.get((k, j))
            if variable is None:
                continue
            if program.count[k] <= program.home[k, j]:  # no more of them than are at home here: the count itself
                self._at_home[k, j] = variable
                continue
            stays = model.new_int_var(0, int(program.home[k, j]), "")
            model.add(stays <= variable)
            self._at_home[k, j] = stays

    def _yield(self) -> None:
        """(5): who yields leaves a node only where somebody more important arrives."""
        program, model = self._program, self._model
        arrivals: dict[tuple[int, int], cp_model.IntVar] = {}
        for k, j in zip(*(part.tolist() for part in np.nonzero(program.home * program.yields[:, None])), strict=True):
            more_important = np.flatnonzero(program.tier < program.tier[k]).tolist()
            comes = [self._arrival(arrivals, other, j) for other in more_important if (other, j) in self._x]
            left = model.new_bool_var("")
            stays = self._x.get((k, j))
            home = int(program.home[k, j])
            if stays is None:  # there is no room for it any more: it leaves in any case
                model.add(left == 1)
            else:
                model.add(stays + home * left >= home)
            model.add_bool_or([*comes, ~left])

    def _arrival(self, known: dict[tuple[int, int], cp_model.IntVar], k: int, j: int) -> cp_model.IntVar:
        """Whether more pods of a kind are on a node than were: true only where they are."""
        if (k, j) not in known:
            known[k, j] = self._model.new_bool_var("")
            self._model.add(self._x[k, j] >= int(self._program.home[k, j]) + 1).only_enforce_if(known[k, j])
        return known[k, j]

    def _sum(self, measure: Measure) -> cp_model.LinearExprT:
        terms = [(variable, int(measure.each[k])) for (k, _), variable in self._x.items() if measure.each[k]]
        terms += [(stays, int(measure.at_home[k])) for (k, _), stays in self._at_home.items() if measure.at_home[k]]
        return cp_model.LinearExpr.weighted_sum([each for each, _ in terms], [weight for _, weight in terms])

    def solve(self, hint: Ints, clock: SearchClock, deadline: float) -> Found:
        """The best placement by the deadline, from a hint: the present placement or the last stage's.

        Where work is counted instead of time, CP-SAT counts its own, and its workers take turns in a fixed order.
        """
        self._model.clear_hints()  # type: ignore[no-untyped-call] # ortools annotates all but this one
        for (k, j), variable in self._x.items():
            self._model.add_hint(variable, int(hint[k, j]))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = clock.budget.workers
        solver.parameters.random_seed = clock.budget.seed
        if clock.budget.is_deterministic:
            solver.parameters.max_deterministic_time = max(clock.left(deadline), 0.001)
            solver.parameters.interleave_search = True
        else:
            solver.parameters.max_time_in_seconds = clock.wall_left(deadline)
        status = solver.solve(self._model)
        clock.work(solver.response_proto.deterministic_time)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Found(None, _bound(solver, status))
        x = np.zeros_like(self._program.home)
        for (k, j), variable in self._x.items():
            x[k, j] = solver.value(variable)
        return Found(x, _bound(solver, status))


_UNBOUNDED = 2**40


def _bound(solver: cp_model.CpSolver, status: cp_model.CpSolverStatus) -> int:
    """What no placement exceeds; the present one is always feasible, so that "infeasible" proves nothing."""
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        return _UNBOUNDED
    found = solver.best_objective_bound
    return min(_UNBOUNDED, int(found + 1e-6)) if abs(found) < _UNBOUNDED else _UNBOUNDED


def _most(program: Program, k: int, j: int) -> int:
    """How many pods of a kind fit on a node that is empty."""
    asked = program.requests[k]
    fits = [int(program.room[j, r] // asked[r]) for r in np.flatnonzero(asked)]
    return max(0, min([int(program.count[k]), *fits]))
