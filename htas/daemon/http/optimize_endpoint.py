"""Where people ask for a search, and how the last one went: `/api/optimize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from htas.daemon.loops.cycle import CycleResult
from htas.daemon.loops.optimizer import SearchResult
from htas.daemon.loops.searching import Searching, SearchReport
from htas.model.outcomes import Action, OutcomeStatus
from htas.model.plan_document import API_VERSION, instant_text
from htas.model.policy import FallbackMode
from htas.model.rearrangement_document import leave_document, place_document, tiers_document
from htas.model.search_failures import OptionalSearch
from htas.ports import ConflictError
from htas.web.sent import RequestRefusedError

TOOK = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0, 300.0, 600.0)
PATH = "/api/optimize"
Json = dict[str, Any]


@dataclass(slots=True)
class OptimizeEndpoint:
    """Open while this daemon leads. Who may ask has been asked before (`authorization.Guarded`)."""

    searching: Searching | None = None

    def ask(self) -> Json:
        """The search that will be made. Raises RequestRefusedError: 409 while one is under way or with fallback.mode
        off, 503 where another daemon leads.
        """
        searching = self._open()
        if searching.policy.fallback.mode is FallbackMode.OFF:
            raise RequestRefusedError(409, "fallback.mode is off: nothing that runs is rearranged; set it to optimize")
        try:
            return _document(searching.request())
        except ConflictError as error:
            raise RequestRefusedError(409, f"{error}; see GET {PATH}") from error

    def last(self) -> Json:
        """The last search; raises RequestRefusedError, with 404 where there was none."""
        report = self._open().report
        if report is None:
            raise RequestRefusedError(404, f"nothing has been searched for yet; POST {PATH} starts a search")
        return _document(report)

    def _open(self) -> Searching:
        if self.searching is None:
            raise RequestRefusedError(503, "this daemon does not lead; use the one that does")
        return self.searching


def _document(report: SearchReport) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "Search",
        "id": report.id,
        "state": report.state.value,
        "askedAt": instant_text(report.asked_at),
        "askedBy": report.asked_by,
        "tookSeconds": round(report.took_s, 3),
        "status": report.status.value if report.status is not None else None,
        "message": report.message,
        "tiers": tiers_document(report.tiers),
        "leave": leave_document(report.moves),
        "place": place_document(report.seats),
    }


class SearchMetrics:
    """Searches, rearrangements and suggestions, counted."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._searches = Counter("htas_searches_total", "Searches by the optimiser.", ["status"], registry=registry)
        self._failures = Counter(
            "htas_search_failures_total", "Searches that raised an exception.", ["search"], registry=registry
        )
        for search in OptionalSearch:
            self._failures.labels(search.value)  # from 0 on: Prometheus sees no increase in a series that begins with 1
        self._took = Histogram("htas_search_duration_seconds", "Duration of searches.", buckets=TOOK, registry=registry)
        self._ended = Counter("htas_rearrangements_total", "Rearrangements that ended.", ["result"], registry=registry)
        self._suggested = Counter(
            "htas_suggestions_total", "Suggested edge moves that ended.", ["result"], registry=registry
        )
        self._open = Gauge("htas_rearranging_pods", "Pods of the rearrangement under way.", registry=registry)

    def answered(self, answer: SearchResult) -> None:
        self._searches.labels(answer.found.status.value if answer.found is not None else "Failed").inc()
        self._took.observe(answer.took_s)
        if answer.found is None:
            self._failures.labels(OptionalSearch.REARRANGEMENT.value).inc()

    def observe(self, result: CycleResult) -> None:
        for failure in result.plan.failures:
            self._failures.labels(failure.search.value).inc()
        rearrangement = result.snapshot.rearrangement
        self._open.set(len(rearrangement.slots) if rearrangement is not None else 0)
        for outcome in result.outcomes:
            match outcome.action, outcome.status:
                case Action.REARRANGE, OutcomeStatus.DROPPED:
                    self._ended.labels("Dropped").inc()
                case Action.SUGGEST, OutcomeStatus.DROPPED:
                    self._suggested.labels("Dropped").inc()
                case Action.REARRANGED, OutcomeStatus.DONE:
                    self._ended.labels("Completed").inc()
                case Action.SUGGESTED, OutcomeStatus.DONE:
                    self._suggested.labels("Completed").inc()
                case Action.CANCEL_REARRANGEMENT, OutcomeStatus.DONE:
                    self._ended.labels(outcome.reason or "Cancelled").inc()
                case Action.CANCEL_SUGGESTION, OutcomeStatus.DONE:
                    self._suggested.labels(outcome.reason or "Cancelled").inc()
