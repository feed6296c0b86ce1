"""The agent over HTTP: who is obeyed, and how much it listens to before it knows."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import structlog

from htas.adapters.migration.copying.agent import Agent, AgentProblem, Clean, Push
from htas.adapters.tokens import read_token, shows
from htas.ports import HTASError, NotFoundError, PermanentError

log = structlog.get_logger()

LONGEST_BODY = 65_536
SHORTEST_TOKEN = 16
"""Characters: `openssl rand -hex 8` is as many; who guesses it may push and delete what is in the registry."""
SILENT_S = 10.0
"""How long a caller may keep a thread without a byte, whether it knows the token or not."""


class AgentServer(ThreadingHTTPServer):
    """Obeys whoever sends `Authorization: Bearer TOKEN`; the file is read anew for each request.

    An empty `host` is every address of the machine, of both kinds. Anybody may ask /healthz (it answers) and /readyz
    (it has a token). Raises PermanentError where the token cannot be read or is short, and OSError where it cannot
    listen.
    """

    def __init__(self, agent: Agent, token_file: Path, host: str, port: int) -> None:
        self.token_file = token_file
        self.token()
        self.orders: dict[str, Callable[[bytes], msgspec.Struct | None]] = {
            "/push": lambda body: agent.push(msgspec.json.decode(body, type=Push)),
            "/clean": lambda body: agent.clean(msgspec.json.decode(body, type=Clean)),
        }
        both = not host and socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler, bind_and_activate=False)
        try:
            if both:
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self.server_bind()
            self.server_activate()
        except OSError:
            self.server_close()
            raise

    def token(self) -> str:
        return read_token(self.token_file, SHORTEST_TOKEN)


class _Handler(BaseHTTPRequestHandler):
    server: AgentServer
    timeout = SILENT_S

    def do_GET(self) -> None:  # the library's own name
        code, said = (200, "ok") if self.path in ("/healthz", "/readyz") else (404, "nothing is shown here")
        if self.path == "/readyz":
            try:
                self.server.token()
            except PermanentError as error:
                code, said = 503, str(error)
        self._answer(code, AgentProblem(said))

    def do_POST(self) -> None:  # the library's own name
        refused = self._refused()
        if refused is not None:
            code, why = refused
            log.warning("order refused", order=self.path, why=why)
            self._answer(code, AgentProblem(why))
            return
        try:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(200, self.server.orders[self.path](body))
        except (HTASError, msgspec.DecodeError, OSError) as error:
            code = 404 if isinstance(error, NotFoundError) else 422
            log.warning("order not carried out", order=self.path, error=str(error))
            self._answer(code, AgentProblem(str(error)))

    def _refused(self) -> tuple[int, str] | None:
        """Why no more of a request is read; the token comes first, so that others learn nothing."""
        try:
            token = self.server.token()
        except PermanentError as error:
            return 500, str(error)
        if not shows(self.headers.get("Authorization", ""), token):
            return 401, "the token is wrong"
        if self.path not in self.server.orders:
            return 404, f"{self.path} is not done here"
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal() and len(length) < 20):
            return 400, "Content-Length is no number of bytes"
        return (413, f"an order has at most {LONGEST_BODY} bytes") if int(length) > LONGEST_BODY else None

    def _answer(self, code: int, body: msgspec.Struct | None) -> None:
        raw = msgspec.json.encode(body)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *arguments: object) -> None:
        if self.command != "GET":  # probes, every few seconds
            log.info("asked", what=format % arguments)
