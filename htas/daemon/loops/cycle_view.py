"""A cycle, as the API and the pages are told of it."""

from __future__ import annotations

from htas.daemon.loops.cycle import CycleResult
from htas.daemon.loops.cycling import Cycling
from htas.daemon.recommend.recorded import recommended
from htas.model.outcomes import Outcome
from htas.model.plan import Plan
from htas.model.snapshot import ClusterSnapshot
from htas.web.seat import Seen


def seen(result: CycleResult, daemon: Cycling) -> Seen:
    return Seen(result.snapshot, result.plan, result.outcomes, result.stages, daemon.recorded, result.savings)


def seen_of_course(
    result: CycleResult, number: int | None
) -> tuple[ClusterSnapshot, Plan, tuple[Outcome, ...], int | None]:
    """A cycle of the course with HTAS, as a chronicle takes it in."""
    return result.snapshot, result.plan, recommended(result.outcomes), number
