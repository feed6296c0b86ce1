"""A small API server on loopback: what a test tells it to answer, over real HTTP. Only as much protocol as there is here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from htas.adapters.kubernetes.access import Access
from htas.adapters.kubernetes.endpoint import Endpoint

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """A whole answer; with `lines` a stream of them, after which the connection ends as `is_cut` tells."""

    status: int = 200
    body: Json = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    lines: Iterable[Json | bytes] | None = None
    is_chunked: bool = True
    is_cut: bool = False


Answering = Callable[[Request], Answer | None]


class FakeApiServer:
    """Asks `answer` for each request; None closes the connection without an answer."""

    def __init__(self, answer: Answering) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.connections = 0
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeApiServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def access(self, token: str = "") -> Access:
        header = f"Bearer {token}" if token else ""
        return Access(Endpoint(f"http://127.0.0.1:{self._server.server_address[1]}", lambda: header), "here", 4)

    def told(self, request: Request) -> Answer | None:
        with self._lock:
            self.requests.append(request)
        return self.answer(request)

    def connected(self) -> None:
        with self._lock:
            self.connections += 1

    def asked(self, method: str) -> list[Request]:
        with self._lock:
            return [request for request in self.requests if request.method == method]


def refusal(status: int, reason: str = "", message: str = "no", **more: Any) -> Answer:
    body = {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": message}
    return Answer(status, body | more)


def _handler(server: FakeApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            server.connected()

        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            parts = urlsplit(self.path)
            request = Request(self.command, parts.path, dict(parse_qsl(parts.query)), body, dict(self.headers))
            answer = server.told(request)
            if answer is None:
                self.close_connection = True
            elif answer.lines is not None:
                self._stream(answer)
            else:
                self._whole(answer)

        def _whole(self, answer: Answer) -> None:
            content = json.dumps(answer.body).encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content) + (10 if answer.is_cut else 0)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = answer.is_cut

        def _stream(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header(*(("Transfer-Encoding", "chunked") if answer.is_chunked else ("Connection", "close")))
            self.end_headers()
            self.close_connection = answer.is_cut or not answer.is_chunked
            with suppress(OSError):
                for line in answer.lines or ():
                    content = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
                    framed = f"{len(content):x}\r\n".encode() + content + b"\r\n"
                    self.wfile.write(framed if answer.is_chunked else content)
                    self.wfile.flush()
                if answer.is_chunked and not answer.is_cut:
                    self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 # the server's own names

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
