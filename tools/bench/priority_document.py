"""The document's formulation (Algorithm 1): x[i, j] for each pod and node, solved by CP-SAT tier by tier.

As it states it: bin packing constraints (1) to (3), the most placed, then the largest Σ(placed + stay) (the text's 2
and 1; its formula has 3 and 1), hints from the present placement and the last stage, α·T/(tiers), halved between the
two, plus what is unused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ortools.sat.python import cp_model

from tools.bench.priority_instances import Instance

ALPHA = 0.8


@dataclass(frozen=True, slots=True)
class Answer:
    """`placed` by tier from the highest; None: the solver had no placement in time."""

    placed: tuple[int, ...] | None
    is_placing_proven: bool
    is_staying_proven: bool
    node_of: tuple[int, ...] = ()


class Document:
    """One run over an instance."""

    def __init__(
        self, instance: Instance, seconds: float, workers: int, elapsed: Callable[[], float], pace: float
    ) -> None:
        self._instance, self._workers = instance, workers
        self._elapsed, self._pace = elapsed, pace
        self._tiers = sorted(set(instance.priority), reverse=True)
        self._stage_s = ALPHA * seconds / len(self._tiers) / 2
        self._end = seconds
        self._stages = 2 * len(self._tiers)
        self._model = cp_model.CpModel()
        self._x: dict[tuple[int, int], cp_model.IntVar] = {}
        self._hint = list(instance.node_of)

    def run(self) -> Answer:
        instance, pods = self._instance, []
        proven = [True, True]
        for priority in self._tiers:
            pods += [i for i, other in enumerate(instance.priority) if other == priority]
            self._pack(pods, priority)
            placed = cp_model.LinearExpr.sum([self._x[i, j] for i in pods for j in range(instance.cell.nodes)])
            running = [i for i in pods if instance.node_of[i] >= 0]
            stays = cp_model.LinearExpr.sum(
                [self._x[i, j] for i in running for j in range(instance.cell.nodes)]
                + [self._x[i, instance.node_of[i]] for i in running]
            )
            for stage, metric in enumerate((placed, stays)):
                is_optimal = self._solve(pods, metric)
                if is_optimal is None:
                    return Answer(None, False, False)
                proven[stage] &= is_optimal
        by_tier = tuple(
            sum(self._hint[i] >= 0 for i in pods if instance.priority[i] == priority) for priority in self._tiers
        )
        return Answer(by_tier, proven[0], proven[1], tuple(self._hint))

    def _pack(self, pods: list[int], priority: int) -> None:
        """Constraints (1) to (3) for pods up to a priority."""
        instance, model = self._instance, self._model
        nodes = range(instance.cell.nodes)
        for i in pods:
            if instance.priority[i] == priority:
                self._x.update({(i, j): model.new_bool_var("") for j in nodes})
                model.add_at_most_one(self._x[i, j] for j in nodes)
        for requests, room in (
            (instance.cpu_m, instance.node_cpu_m),
            (instance.memory_bytes, instance.node_memory_bytes),
        ):
            weights = [requests[i] for i in pods]
            for j in nodes:
                model.add(cp_model.LinearExpr.weighted_sum([self._x[i, j] for i in pods], weights) <= room)

    def _solve(self, pods: list[int], metric: cp_model.LinearExprT) -> bool | None:
        """One stage: whether its answer is proven; None: there is none."""
        self._stages -= 1
        left = self._end - self._elapsed() - self._stages * self._stage_s
        model = self._model
        model.maximize(metric)
        model.clear_hints()
        for i in pods:
            for j in range(self._instance.cell.nodes):
                model.add_hint(self._x[i, j], int(self._hint[i] == j))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self._workers
        solver.parameters.max_time_in_seconds = max(left * self._pace, 0.001)
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        for i in pods:
            self._hint[i] = next((j for j in range(self._instance.cell.nodes) if solver.value(self._x[i, j])), -1)
        value = round(solver.objective_value)
        model.add(metric == value if status == cp_model.OPTIMAL else metric >= value)
        return status == cp_model.OPTIMAL
