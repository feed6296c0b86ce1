"""Clients that dawdle, smuggle, flood, guess and forge, against the daemon's own HTTP server on loopback.

Each attack ends with a probe of /healthz on the same server, which must be answered.
"""

from __future__ import annotations

import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException, HTTPResponse
from ipaddress import ip_address
from pathlib import Path
from random import Random

import urllib3
from cryptography import x509

from htas.daemon.http.app import LONGEST_BODY, Endpoints, HttpServer
from htas.daemon.http.authorization import Gate
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.http.server import UNWANTED_BYTES, Certificate
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.model.policy import Cycles, Policy
from htas.ports import TransientError
from htas.web.seat import Seat
from tools.adversary.attack import Attack, Verdict, verdict
from tools.testenv.certificates import write_pem

ASKED_S = 10.0
LOOPBACK = x509.IPAddress(ip_address("127.0.0.1"))
GUARDED = ("/planz", "/snapshotz", "/api/optimize", "/api/migrate/1")


@dataclass(frozen=True, slots=True)
class Target:
    """A server, its token, and what closes when the attack is over."""

    port: int
    token: str
    closes: ExitStack
    scheme: str = "http"

    def connected(self, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=ASKED_S)
        self.closes.callback(connection.close)
        with suppress(OSError):
            connection.sendall(sent)
        return connection

    def statuses(self, sent: bytes) -> list[int]:
        """The status of each answer to what is sent over one connection, until the server ends it."""
        connection = self.connected(sent)
        connection.settimeout(1.0)
        said = b""
        with suppress(OSError):
            while piece := connection.recv(65_536):
                said += piece
        parts = said.split(b"HTTP/1.1 ")[1:]
        return [int(part[:3]) for part in parts]

    def asked(self, method: str, path: str, **headers: str) -> int:
        """The status of an honest client's request."""
        with urllib3.PoolManager(cert_reqs="CERT_NONE") as pool:
            url = f"{self.scheme}://127.0.0.1:{self.port}{path}"
            return pool.request(method, url, headers=headers, timeout=ASKED_S, retries=False).status

    def is_well(self) -> bool:
        try:
            return self.asked("GET", "/healthz") == 200
        except (OSError, urllib3.exceptions.HTTPError):
            return False


@contextmanager
def target(*, has_tls: bool = False) -> Iterator[Target]:
    """The daemon's server with a token of its own, as `htas run` starts it."""
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    with tempfile.TemporaryDirectory() as name, ExitStack() as closes:
        folder = Path(name)
        token = secrets.token_hex(32)
        (folder / "token").write_text(token)
        desks = Endpoints(Health(Cycles()), Metrics(), MigrateEndpoint(), OptimizeEndpoint(), Seat("live", _no_policy))
        certificate = Certificate(*write_pem(folder, "tls", "htas", LOOPBACK)) if has_tls else None
        server = HttpServer(("127.0.0.1", 0), desks, Gate(folder / "token"), certificate=certificate)
        server.start()
        closes.callback(server.stop)
        yield Target(server.port, token, closes, "https" if has_tls else "http")


Serving = Callable[[], AbstractContextManager[Target]]
"""What is attacked: a server within this process (`target`), or that of a daemon in another one."""


def _no_policy() -> Policy:
    raise TransientError("no cycle has been run")


def slowloris(count: int, sent: bytes, served: Serving = target) -> Verdict:
    """So many connections that never end their request."""
    with served() as server:
        for _ in range(count):
            server.connected(sent)
        return verdict(f"{count} half-open connections", {"health does not answer": not server.is_well()})


def smuggling(served: Serving = target) -> Verdict:
    """Requests whose end is told in two ways, with another one hidden behind: nobody without a token gets in."""
    hidden = b"POST /api/optimize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"
    line = b"POST /api/migrate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n"
    length = b"Content-Length: %d\r\n" % len(hidden)
    shapes = [
        line + length + chunked + b"\r\n0\r\n\r\n" + hidden,
        line + chunked + length + b"\r\n0\r\n\r\n" + hidden,
        line + b"Content-Length: 0\r\n" + length + b"\r\n" + hidden,
        line + b"Content-Length: 0, 5\r\n\r\n" + hidden,
        line + b"Content-Length: +0\r\n\r\n" + hidden,
        line + b"Content-Length: -1\r\n\r\n" + hidden,
        line + b"Content-Length: 0x10\r\n\r\n" + hidden,
        line + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
        line + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
        line + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden,
        line + b"X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
        line + chunked + b"\r\n0;" + b"x" * 10_000 + b"\r\n\r\n" + hidden,
        line + chunked + b"\r\nfffffffffffffffff\r\n" + hidden,
        line + b" Folded: header\r\n\r\n" + hidden,
        b"GET http://elsewhere/planz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + hidden,
        b"GET /healthz/../planz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + hidden,
        b"GET /%2e%2e/planz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + hidden,
        b"GET //planz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + hidden,
        b"GET /healthz\x00/planz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + hidden,
        b"GET /planz HTTP/0.9\r\n\r\n" + hidden,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]
    with served() as server:
        found = [status for shape in shapes for status in server.statuses(shape)]
        worst = [status for status in found if status >= 500 or status in (202, 204)]
        granted = [
            server.statuses(b"%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % (method, path.encode()))
            for path in GUARDED
            for method in (b"GET", b"POST", b"PUT", b"OPTIONS", b"TRACE", b"get", b"\xff")
        ]
        opened = [status for statuses in granted for status in statuses if status < 400]
        return verdict(
            f"{len(shapes) + len(granted)} shapes, {len(found)} answers",
            {
                f"answered {worst}": bool(worst),
                f"opened without a token: {opened}": bool(opened),
                "health does not answer": not server.is_well(),
            },
        )


def large_bodies(size: int, served: Serving = target, *, shows_the_token: bool) -> Verdict:
    """A body of so many bytes: refused before it has all come."""
    with served() as server:
        head = b"POST /api/migrate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        head += b"Content-Length: %d\r\n"
        shown = b"Authorization: Bearer %s\r\n" % server.token.encode() if shows_the_token else b""
        connection = server.connected(head % size + shown + b"\r\n")
        piece, taken = b"x" * 65_536, 0
        connection.settimeout(0.5)
        with suppress(OSError):
            while taken < size:
                taken += connection.send(piece)
        status = 0
        with suppress(OSError, HTTPException):
            answer = HTTPResponse(connection)
            answer.begin()
            status = answer.status
        most = LONGEST_BODY + UNWANTED_BYTES + 16 * 2**20  # the last: what kernels hold on both sides
        return verdict(
            f"{taken / 1e6:.1f} of {size / 1e6:.0f} MB were taken, status {status or 'none'}",
            {
                f"{taken} bytes were taken": taken > most,
                f"answered {status}": status not in (0, 401, 413),
                "health does not answer": not server.is_well(),
            },
        )


AT_ONCE = 40
"""Guesses under way together: a few wait for their turn, the others are refused."""


def wrong_tokens(count: int, served: Serving = target) -> Verdict:
    """Guesses, and tokens that are nearly right."""
    random = Random(1)
    with served() as server:
        token = server.token
        near = ["", " ", token[:-1], token + "0", token.upper(), token[::-1], f"{token},{token}", "é" * 64, "x" * 8000]
        guesses = [f"Bearer {guess}" for guess in near] + [f"Basic {token}", token, f"Bearer\t{token[:-1]}"]
        guesses += [f"Bearer {random.getrandbits(256):064x}" for _ in range(count)]

        def guess(number: int) -> int:
            return server.asked("GET", GUARDED[number % 4], Authorization=guesses[number])

        with ThreadPoolExecutor(AT_ONCE) as crowd:
            found = list(crowd.map(guess, range(len(guesses))))
        is_right = server.asked("GET", "/planz", Authorization=f"Bearer {token}")
        judged = found.count(401)
        return verdict(
            f"{len(guesses)} wrong tokens: {sorted(set(found))}",
            {
                f"answered {sorted(set(found))}": set(found) - {400, 401, 429, 431} != set(),
                f"{judged} of {len(guesses)} were judged": judged > len(guesses) / 2,
                f"the right one is answered {is_right}": is_right not in (200, 503),  # 503: no cycle has been run
                "health does not answer": not server.is_well(),
            },
        )


def cross_origin(served: Serving = target) -> Verdict:
    """Pages of elsewhere, with the token that a browser might have: forms, fetches, text that is JSON."""
    with served() as server:
        bearer = {"Authorization": f"Bearer {server.token}"}
        forged: list[dict[str, str]] = [
            {"Origin": "https://elsewhere.example"},
            {"Origin": "null"},
            {"Origin": f"http://127.0.0.1:{server.port}.elsewhere.example"},
            {"Content-Type": "application/x-www-form-urlencoded"},
            {"Content-Type": "multipart/form-data; boundary=x"},
            {"Content-Type": "text/plain"},
            {"Content-Type": "text/plain; application/json"},
        ]
        found = [
            server.asked("POST", path, **bearer, **each)
            for each in forged
            for path in ("/api/optimize", "/api/migrate")
        ]
        return verdict(
            f"{len(found)} forged posts: {sorted(set(found))}",
            {f"answered {sorted(set(found))}": not set(found) <= {403, 415}},
        )


def attacks() -> list[Attack]:
    half: dict[str, Callable[[], Verdict]] = {
        "nothing is sent": partial(slowloris, 300, b""),
        "half a head": partial(slowloris, 300, b"GET / HTTP/1.1\r\nHost: ht"),
        "half a body": partial(slowloris, 300, b"POST /api/migrate HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{"),
        "half a handshake": partial(slowloris, 300, b"\x16\x03\x01", partial(target, has_tls=True)),
    }
    return [
        *(Attack(f"network: 300 connections, {words}", run) for words, run in half.items()),
        Attack("network: 2,000 connections", partial(slowloris, 2000, b"GET"), is_long=True),
        Attack("network: smuggling", smuggling, is_long=True),
        Attack("network: 100 MB without a token", partial(large_bodies, 100_000_000, shows_the_token=False)),
        Attack("network: 100 MB with the token", partial(large_bodies, 100_000_000, shows_the_token=True)),
        Attack("network: 100 wrong tokens", partial(wrong_tokens, 100)),
        Attack("network: 400 wrong tokens", partial(wrong_tokens, 400), is_long=True),
        Attack("network: cross-origin posts", cross_origin),
    ]
