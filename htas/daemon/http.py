"""The daemon over HTTP: probes, metrics, what it last saw and decided; moves and searches for those with the token."""

from __future__ import annotations

import socket
from collections.abc import Callable
from threading import Thread

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from htas.daemon.asking import RequestRefusedError
from htas.daemon.health import Health
from htas.daemon.metrics import Metrics
from htas.daemon.move_desk import MoveDesk
from htas.daemon.search_desk import PATH, SearchDesk
from htas.model.plan_document import plan_document
from htas.ports import PermanentError

PATHS = """/healthz    whether the daemon works, by its last success
/readyz     whether it could act: every kind has been listed
/metrics    Prometheus
/planz      the last plan (JSON)
/snapshotz  what it was made from (JSON)
/api/optimize     the last search for a better placement (JSON); POST, with the token, asks for one
/api/migrate      POST {"pod": "namespace/name", "node": "name"}, with the token: move a pod
/api/migrate/ID   what became of it (JSON)
"""
LONGEST_BODY = 65_536
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class HttpServer:
    """Serves in a thread of its own from `start` to `stop`. Raises PermanentError where it cannot listen."""

    def __init__(
        self, address: tuple[str, int], health: Health, metrics: Metrics, moves: MoveDesk, searches: SearchDesk
    ) -> None:
        self._socket = _listening(address)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application(health, metrics, moves, searches),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, args=([self._socket],), name="http", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._socket.close()


def application(health: Health, metrics: Metrics, moves: MoveDesk, searches: SearchDesk) -> Starlette:
    """The routes, on what the daemon knows of itself."""

    def verdict(complaint: str | None) -> Response:
        said = "\n".join(line for line in (complaint or "ok", health.remark()) if line)
        return PlainTextResponse(f"{said}\n", 200 if complaint is None else 503)

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
            moves.check(request.headers.get("authorization", ""))
            body = await _body(request)
        except RequestRefusedError as refused:
            return _refusal(refused)
        return _answered(202, lambda: moves.ask(body))

    def state(request: Request) -> Response:
        return _answered(200, lambda: moves.state(request.path_params["id"]))

    def search(request: Request) -> Response:
        return searches.post(request.headers.get("authorization", ""))

    def home(_: Request) -> Response:
        return PlainTextResponse(PATHS)

    return Starlette(
        routes=[
            route("/", home),
            route("/healthz", lambda _: verdict(health.complaint())),
            route("/readyz", lambda _: verdict(health.not_ready())),
            route("/metrics", lambda _: Response(metrics.render(), media_type=PROMETHEUS)),
            route("/planz", lambda _: document("plan")),
            route("/snapshotz", lambda _: document("snapshot")),
            route(PATH, lambda _: searches.get()),
            route(PATH, search, "POST"),
            Route("/api/migrate", ask, methods=["POST"]),
            route("/api/migrate/{id}", state),
        ]
    )


def _answered(status: int, act: Callable[[], dict[str, object]]) -> Response:
    try:
        return Response(msgspec.json.encode(act()), status, media_type="application/json")
    except RequestRefusedError as refused:
        return _refusal(refused)


def _refusal(refused: RequestRefusedError) -> Response:
    return PlainTextResponse(f"{refused}\n", refused.status)


async def _body(request: Request) -> bytes:
    """What was sent, as far as a request for a move can be long; raises RequestRefusedError."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LONGEST_BODY:
            raise RequestRefusedError(413, f"a request has at most {LONGEST_BODY} bytes")
    return bytes(body)


def _listening(address: tuple[str, int]) -> socket.socket:
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise PermanentError(f"http.listen: {host}:{port}: {error.strerror}; name another port or address") from error
