"""The linear relaxation of the problem by node patterns, over the columns offered so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp

Floats = NDArray[np.float64]


class Relaxation:
    """Constraints (9) to (11) with fractions allowed; columns are added, and each solution starts from the last."""

    def __init__(self, count: NDArray[np.int64], least: Sequence[int], sizes: Sequence[int]) -> None:
        self._solver = pywraplp.Solver.CreateSolver("GLOP")
        self._objective = self._solver.Objective()
        self._objective.SetMaximization()
        infinity = self._solver.infinity()
        self._kinds = [self._solver.Constraint(-infinity, float(number)) for number in count]
        self._groups = [self._solver.Constraint(-infinity, float(size)) for size in sizes]
        self._floors = [self._solver.Constraint(float(floor), infinity) for floor in least]
        self._known: set[tuple[int, int]] = set()
        self.share: Floats = np.zeros(len(sizes))
        """What a node of each group is worth at the prices found last."""
        self.value = 0.0

    def knows(self, group: int, column: int) -> bool:
        return (group, column) in self._known

    def add(self, group: int, column: int, value: int, pattern: NDArray[np.int8], floors: Sequence[int]) -> None:
        """A column of a group: its value, its pods by kind, and what it gives to each floor."""
        self._known.add((group, column))
        variable = self._solver.NumVar(0.0, self._solver.infinity(), "")
        self._objective.SetCoefficient(variable, float(value))
        self._groups[group].SetCoefficient(variable, 1.0)
        for kind in np.flatnonzero(pattern):
            self._kinds[kind].SetCoefficient(variable, float(pattern[kind]))
        for row, amount in zip(self._floors, floors, strict=True):
            if amount:
                row.SetCoefficient(variable, float(amount))

    def solve(self, seconds: float | None) -> tuple[Floats, Floats] | None:
        """Prices of kinds and penalties of floors, none negative; None where it is not solved (or not in time).

        Started from the last solution the simplex algorithm sometimes loses its footing (status abnormal): then it is
        started afresh.
        """
        if seconds is not None:
            self._solver.SetTimeLimit(max(1, int(seconds * 1000)))
        parameters = pywraplp.MPSolverParameters()
        for way in (parameters.INCREMENTALITY_ON, parameters.INCREMENTALITY_OFF):
            parameters.SetIntegerParam(parameters.INCREMENTALITY, way)
            if self._solver.Solve(parameters) == pywraplp.Solver.OPTIMAL:
                break
        else:
            return None
        self.value = self._objective.Value()
        self.share = np.array([row.dual_value() for row in self._groups])
        prices = np.maximum([row.dual_value() for row in self._kinds], 0.0)
        penalties = np.maximum([-row.dual_value() for row in self._floors], 0.0)
        return np.asarray(prices).reshape(len(self._kinds)), np.asarray(penalties).reshape(len(self._floors))
