"""The daemon over HTTP: probes, metrics and empty pages for all; the API, moves and searches with a token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from htas.daemon.http.audit import AuditLog
from htas.daemon.http.authorization import Gate, Gatekeeper, Guarded
from htas.daemon.http.host_names import HostNames
from htas.daemon.http.logging_in import session_routes
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import PATH, OptimizeEndpoint
from htas.daemon.http.server import Certificate, Listener
from htas.daemon.http.sessions import Sessions
from htas.daemon.http.wrong_tokens import WrongTokens
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.model.plan_document import plan_document
from htas.web.api import api_routes
from htas.web.pages import page_routes
from htas.web.seat import Seat
from htas.web.sent import RequestRefusedError, sent_body

LONGEST_BODY = 65_536
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What the daemon tells of itself, and what it can be asked for."""

    health: Health
    metrics: Metrics
    moves: MigrateEndpoint
    searches: OptimizeEndpoint
    seat: Seat


class HttpServer:
    """Everything on one listener, and, where an address is given for it, health on another.

    Raises PermanentError where it cannot listen, or where the certificate cannot be read.
    """

    def __init__(
        self,
        address: tuple[str, int],
        desks: Endpoints,
        gate: Gate,
        health_address: tuple[str, int] | None = None,
        certificate: Certificate | None = None,
        audit: AuditLog | None = None,
        hosts: HostNames | None = None,
    ) -> None:
        self._listeners: list[Listener] = []
        self.health_port: int | None = None
        if health_address is not None:
            routes = probe_routes(desks.health)
            probes = Listener(health_address, Starlette(routes=routes), "health", key="http.healthListen")
            self._listeners.append(probes)
            self.health_port = probes.port
        sessions, wrong_tokens = Sessions(), WrongTokens(desks.metrics.wrong_token)
        answering = application(desks, gate, sessions, wrong_tokens)
        guarded = Guarded(answering, gate, sessions, audit, hosts, wrong_tokens)
        main = Listener(address, guarded, "http", certificate)
        self._listeners.append(main)
        self.port = main.port

    def start(self) -> None:
        for listener in self._listeners:
            listener.start()

    def stop(self) -> None:
        for listener in self._listeners:
            listener.stop()


def probe_routes(health: Health) -> list[Route]:
    """Whether the daemon works, and whether it could act."""

    def verdict(complaint: str | None) -> Response:
        said = "\n".join(line for line in (complaint or "ok", health.remark()) if line)
        return PlainTextResponse(f"{said}\n", 200 if complaint is None else 503)

    def works(_: Request) -> Response:
        return verdict(health.complaint())

    def is_ready(_: Request) -> Response:
        return verdict(health.not_ready())

    return [Route("/healthz", works), Route("/readyz", is_ready)]


def application(desks: Endpoints, gate: Gatekeeper, sessions: Sessions, wrong_tokens: WrongTokens) -> Starlette:
    """The routes, on what the daemon knows of itself; who may ask is asked before (`Guarded`)."""
    metrics, moves, searches = desks.metrics, desks.moves, desks.searches

    def document(form: str) -> Response:
        last = metrics.last
        if last is None:
            return PlainTextResponse("no cycle has been run yet: it starts, or another daemon leads\n", 503)
        body = last.snapshot if form == "snapshot" else plan_document(last.plan)
        return Response(msgspec.json.encode(body), media_type="application/json")

    def route(path: str, answer: object, method: str = "GET") -> Route:
        return Route(path, answer, methods=[method])  # type: ignore[arg-type] # a plain function answers in a thread

    async def ask(request: Request) -> Response:
        try:
            body = await sent_body(request, LONGEST_BODY)
        except RequestRefusedError as refused:
            return refused.response()
        return _answered(202, lambda: moves.ask(body))

    def state(request: Request) -> Response:
        return _answered(200, lambda: moves.state(request.path_params["id"]))

    return Starlette(
        routes=[
            *page_routes(),
            *session_routes(gate, sessions, wrong_tokens),
            *api_routes(desks.seat),
            *probe_routes(desks.health),
            route("/metrics", lambda _: Response(metrics.render(), media_type=PROMETHEUS)),
            route("/planz", lambda _: document("plan")),
            route("/snapshotz", lambda _: document("snapshot")),
            route(PATH, lambda _: _answered(200, searches.last)),
            route(PATH, lambda _: _answered(202, searches.ask), "POST"),
            Route("/api/migrate", ask, methods=["POST"]),
            route("/api/migrate/{id}", state),
        ]
    )


def _answered(status: int, act: Callable[[], dict[str, object]]) -> Response:
    try:
        return Response(msgspec.json.encode(act()), status, media_type="application/json")
    except RequestRefusedError as refused:
        return refused.response()
