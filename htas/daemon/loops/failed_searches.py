"""Optional searches that failed: each defect is logged and recorded once, and counted in every cycle."""

from __future__ import annotations

import structlog

from htas.model.outcomes import CLUSTER, Action, Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.reasons import OutcomeReason
from htas.model.search_failures import OptionalSearch

log = structlog.get_logger()


class FailedSearches:
    """Remembers which defects are known, so that a search that fails in every cycle does not fill log and history."""

    def __init__(self) -> None:
        self._known: set[tuple[OptionalSearch, str, str]] = set()

    def note(self, plan: Plan) -> list[Outcome]:
        """Log the failures that are new; returns them as outcomes."""
        new = [failure for failure in plan.failures if failure.defect not in self._known]
        for failure in new:
            self._known.add(failure.defect)
            log.error(
                "a search failed, plans are made without it; htas_search_failures_total counts, this is logged once",
                search=failure.search.value,
                error=failure.error,
                where=list(failure.where),
            )
        reason = OutcomeReason.SEARCH_FAILED
        return [Outcome(Action.SEARCH, CLUSTER, OutcomeStatus.FAILED, each.message, reason) for each in new]
