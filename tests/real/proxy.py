"""A proxy before the API server that fails on purpose: refusals, and watches cut in the middle.

Plain HTTP on loopback towards the daemon, the administrator's certificate towards the server.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import msgspec
import urllib3

from htas.adapters.kubernetes.access import load_access

REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}
PASSED = ("Content-Type", "Accept", "User-Agent")
Rule = Callable[[str, str], int | None]
"""From method and path (with its query) to the status to refuse with; None: let it pass."""


class FaultyProxy:
    """Listens at `url` from its making to `stop`. `refuse` is asked for each request; `cut` breaks the open watches."""

    def __init__(self, kubeconfig: Path) -> None:
        self._access = load_access(kubeconfig, None, 512)
        self.refuse: Rule = lambda method, path: None
        self.refused: Counter[int] = Counter()
        self._lock = Lock()
        self._watches: set[socket.socket] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, name="proxy", daemon=True).start()

    def kubeconfig(self, directory: Path) -> Path:
        """A kubeconfig that leads here."""
        path = directory / "proxy.kubeconfig"
        path.write_text(
            f"""apiVersion: v1
kind: Config
clusters: [{{name: proxy, cluster: {{server: "{self.url}"}}}}]
users: [{{name: nobody, user: {{}}}}]
contexts: [{{name: proxy, context: {{cluster: proxy, user: nobody}}}}]
current-context: proxy
"""
        )
        return path

    def cut(self) -> int:
        """Break every watch under way; returns how many there were."""
        with self._lock:
            watches, self._watches = self._watches, set()
        for each in watches:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(watches)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.cut()

    def verdict(self, method: str, path: str) -> int | None:
        status = self.refuse(method, path)
        if status is not None:
            with self._lock:
                self.refused[status] += 1
        return status

    def ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        return self._access.pool.request(
            method, self._access.server + path, body=body, headers=headers, preload_content=False, timeout=600.0
        )

    def streams(self, connection: socket.socket) -> None:
        with self._lock:
            self._watches.add(connection)


def _handler(proxy: FaultyProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            status = proxy.verdict(self.command, self.path)
            if status is not None:
                self._refuse(status)
                return
            headers = {name: self.headers[name] for name in PASSED if self.headers.get(name)}
            try:
                answer = proxy.ask(self.command, self.path, body, headers)
            except urllib3.exceptions.HTTPError:
                self.close_connection = True  # the server behind is away: so are we
                return
            if "watch=1" in self.path and answer.status < 300:
                self._stream(answer)
            else:
                self._answer(answer.status, answer.read(), answer.headers.get("Content-Type", "application/json"))
                answer.release_conn()

        def _refuse(self, status: int) -> None:
            refusal: dict[str, Any] = {"kind": "Status", "status": "Failure", "code": status}
            refusal |= {"reason": REASONS.get(status, "Unknown"), "message": f"refused on purpose: {status}"}
            self._answer(status, msgspec.json.encode(refusal), "application/json", {"Retry-After": "1"})

        def _answer(self, status: int, body: bytes, form: str, more: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": form, "Content-Length": str(len(body)), **(more or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, answer: urllib3.BaseHTTPResponse) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            proxy.streams(self.connection)
            with suppress(OSError, urllib3.exceptions.HTTPError):
                while chunk := answer.read1(1 << 16):
                    self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")
            answer.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815 # the server's own names

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
