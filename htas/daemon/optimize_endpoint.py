"""Where people ask for a search, and how the last one went: `/api/optimize`."""

from __future__ import annotations

from threading import Lock

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.responses import PlainTextResponse, Response

from htas.daemon.cycle import CycleResult, Daemon
from htas.daemon.optimizer import SearchResult
from htas.daemon.searching import SearchReport
from htas.model.outcomes import Action, OutcomeStatus
from htas.model.plan_document import API_VERSION, instant_text
from htas.model.policy import FallbackMode
from htas.model.rearrangement_document import leave_document, place_document, tiers_document
from htas.ports import ConflictError

TOOK = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0, 300.0, 600.0)
PATH = "/api/optimize"


class OptimizeEndpoint:
    """Answers for the daemon that leads; `open_for` says which one that is, None: nobody here.

    Who may ask has been asked before (`authorization.Guarded`).
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._daemon: Daemon | None = None

    def open_for(self, daemon: Daemon | None) -> None:
        with self._lock:
            self._daemon = daemon

    def post(self) -> Response:
        """202 with the search that will be made; 409 while one is under way or with fallback.mode off, 503 where
        another daemon leads.
        """
        daemon = self._leader()
        if daemon is None:
            return PlainTextResponse("this daemon does not lead; ask the one that does\n", 503)
        if daemon.searching.policy.fallback.mode is FallbackMode.OFF:
            return PlainTextResponse("fallback.mode is off: nothing that runs is rearranged; set it to optimize\n", 409)
        try:
            report = daemon.searching.request()
        except ConflictError as error:
            return PlainTextResponse(f"{error}; see GET {PATH}\n", 409)
        return _document(report, 202)

    def get(self) -> Response:
        """The last search; 404 where there was none."""
        daemon = self._leader()
        if daemon is None:
            return PlainTextResponse("this daemon does not lead; ask the one that does\n", 503)
        report = daemon.searching.report
        if report is None:
            return PlainTextResponse(f"nothing has been searched for yet; POST {PATH} asks for it\n", 404)
        return _document(report, 200)

    def _leader(self) -> Daemon | None:
        with self._lock:
            return self._daemon


def _document(report: SearchReport, status: int) -> Response:
    body = {
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
    return Response(msgspec.json.encode(body), status, media_type="application/json")


class SearchMetrics:
    """Searches, rearrangements and suggestions, counted."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._searches = Counter("htas_searches_total", "Searches by the optimiser.", ["status"], registry=registry)
        self._took = Histogram("htas_search_duration_seconds", "Those searches.", buckets=TOOK, registry=registry)
        self._ended = Counter("htas_rearrangements_total", "Rearrangements that ended.", ["result"], registry=registry)
        self._suggested = Counter(
            "htas_suggestions_total", "Moves for the edge's sake that ended.", ["result"], registry=registry
        )
        self._open = Gauge("htas_rearranging_slots", "Slots of the rearrangement under way.", registry=registry)

    def answered(self, answer: SearchResult) -> None:
        self._searches.labels(answer.found.status.value if answer.found is not None else "Failed").inc()
        self._took.observe(answer.took_s)

    def observe(self, result: CycleResult) -> None:
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
