"""The daemon over HTTP: probes and metrics for all; what it saw and decided, moves and searches with a token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from htas.daemon.asking import Gate, Guarded, RequestRefusedError
from htas.daemon.health import Health
from htas.daemon.http_server import Certificate, Listener
from htas.daemon.metrics import Metrics
from htas.daemon.move_desk import MoveDesk
from htas.daemon.search_desk import PATH, SearchDesk
from htas.model.plan_document import plan_document

PATHS = """/healthz    whether the daemon works, by its last success
/readyz     whether it could act: every kind has been listed
/metrics    Prometheus
with a token (Authorization: Bearer …):
/planz      the last plan (JSON)
/snapshotz  what it was made from (JSON)
/api/optimize     the last search for a better placement (JSON); POST asks for one
/api/migrate      POST {"pod": "namespace/name", "node": "name"}: move a pod
/api/migrate/ID   what became of it (JSON)
"""
LONGEST_BODY = 65_536
BODY_S = 10.0
"""For the whole body of a request."""
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Desks:
    """What the daemon tells of itself, and what it can be asked for."""

    health: Health
    metrics: Metrics
    moves: MoveDesk
    searches: SearchDesk


class HttpServer:
    """Everything on one listener, and, where an address is given for it, health on another.

    Raises PermanentError where it cannot listen, or where the certificate cannot be read.
    """

    def __init__(
        self,
        address: tuple[str, int],
        desks: Desks,
        gate: Gate,
        health_address: tuple[str, int] | None = None,
        certificate: Certificate | None = None,
    ) -> None:
        self._listeners: list[Listener] = []
        self.health_port: int | None = None
        if health_address is not None:
            routes = probe_routes(desks.health)
            probes = Listener(health_address, Starlette(routes=routes), "health", key="http.healthListen")
            self._listeners.append(probes)
            self.health_port = probes.port
        main = Listener(address, Guarded(application(desks), gate), "http", certificate)
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


def application(desks: Desks) -> Starlette:
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
            body = await _body(request)
        except RequestRefusedError as refused:
            return refused.response()
        return _answered(202, lambda: moves.ask(body))

    def state(request: Request) -> Response:
        return _answered(200, lambda: moves.state(request.path_params["id"]))

    def home(_: Request) -> Response:
        return PlainTextResponse(PATHS)

    return Starlette(
        routes=[
            route("/", home),
            *probe_routes(desks.health),
            route("/metrics", lambda _: Response(metrics.render(), media_type=PROMETHEUS)),
            route("/planz", lambda _: document("plan")),
            route("/snapshotz", lambda _: document("snapshot")),
            route(PATH, lambda _: searches.get()),
            route(PATH, lambda _: searches.post(), "POST"),
            Route("/api/migrate", ask, methods=["POST"]),
            route("/api/migrate/{id}", state),
        ]
    )


def _answered(status: int, act: Callable[[], dict[str, object]]) -> Response:
    try:
        return Response(msgspec.json.encode(act()), status, media_type="application/json")
    except RequestRefusedError as refused:
        return refused.response()


async def _body(request: Request) -> bytes:
    """What was sent, as far as a request for a move can be long; raises RequestRefusedError."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > LONGEST_BODY:
                    raise RequestRefusedError(413, f"a request has at most {LONGEST_BODY} bytes")
    except TimeoutError:
        raise RequestRefusedError(408, f"the body did not come within {BODY_S:g} s") from None
    except ClientDisconnect:  # nobody reads this answer, but it is no defect of ours that has to be logged
        raise RequestRefusedError(400, "the connection ended before the body did") from None
    return bytes(body)
