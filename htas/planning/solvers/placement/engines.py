"""The engines: the document's CP-SAT formulation, the decomposition of our own, and the one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from htas.model.policy import Engine
from htas.planning.solvers.placement.decomposition import Decomposition
from htas.planning.solvers.placement.search import PlacementSearch, Reached
from htas.planning.solvers.placement.stages import SearchStage, slice_of


def load(engine: Engine) -> None:
    """Import what an engine calls, before its time begins: CP-SAT takes 0.3 s of CPU, 1 s and more on crowded cores.

    With the document's second for a search, `cp-sat` found nothing for two nodes and three pods while it was loading.
    """
    if engine is not Engine.DECOMPOSITION:
        import htas.planning.solvers.placement.cp_sat  # noqa: F401  # for what importing does


def bounded_by_cp_sat(search: PlacementSearch, stage: SearchStage, bound: int, deadline: float) -> int:
    """The bound after CP-SAT has had the stage until the deadline; the placement that it finds is taken."""
    from htas.planning.solvers.placement.cp_sat import StageModel

    part = slice_of(search.problem, stage, search.x)
    if search.clock.is_over(deadline) or StageModel.is_too_large(part.program):
        return bound
    value = stage.value(search.problem, search.x)
    rest = part.rest(search.x, value)
    found = StageModel(part.program).solve(part.part(search.x), search.clock, deadline)
    if found.x is not None:
        search.accept(stage, part.whole(search.x, found.x))
    return max(stage.value(search.problem, search.x), min(bound, rest + found.bound))


class CpSat(PlacementSearch):
    """Document 000, Algorithm 1: each stage by CP-SAT, with a hint of what the last one left."""

    STAYING = 0.5

    def place(self, stage: SearchStage, reached: Reached, deadline: float) -> None:
        reached.placed_bound = bounded_by_cp_sat(self, stage, reached.placed_bound, deadline)
        reached.is_placing_proven = self.is_reached(stage, reached)

    def stay(self, stage: SearchStage, reached: Reached, deadline: float) -> None:
        reached.stays_bound = self.problem.most_stays(stage.tier)
        if self.problem.stays(self.x, stage.tier) < reached.stays_bound:
            reached.stays_bound = bounded_by_cp_sat(self, stage, reached.stays_bound, deadline)
        self.conclude_staying(stage, reached)


class Portfolio(Decomposition):
    """The decomposition, and what it leaves unproven by CP-SAT: each is quick where the other is not."""

    def place(self, stage: SearchStage, reached: Reached, deadline: float) -> None:
        super().place(stage, reached, self._middle(deadline))
        if not reached.is_placing_proven:
            reached.placed_bound = bounded_by_cp_sat(self, stage, reached.placed_bound, deadline)
            reached.is_placing_proven = self.is_reached(stage, reached)

    def stay(self, stage: SearchStage, reached: Reached, deadline: float) -> None:
        super().stay(stage, reached, self._middle(deadline))
        if self.problem.stays(self.x, stage.tier) < reached.stays_bound:
            reached.stays_bound = bounded_by_cp_sat(self, stage, reached.stays_bound, deadline)
            self.conclude_staying(stage, reached)

    def _middle(self, deadline: float) -> float:
        return self.clock.now() + self.clock.left(deadline) / 2


ENGINES: Mapping[Engine, type[PlacementSearch]] = {
    Engine.CP_SAT: CpSat,
    Engine.DECOMPOSITION: Decomposition,
    Engine.PORTFOLIO: Portfolio,
}
