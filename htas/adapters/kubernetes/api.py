"""Calls to the API server: one request, one answer, its errors in HTAS's own kinds; and streams of lines."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter, sleep
from typing import ParamSpec, TypeVar
from urllib.parse import quote, urlencode

import msgspec
import urllib3
from tenacity import RetryCallState, Retrying, retry, retry_if_exception, retry_if_exception_type, stop_after_attempt
from urllib3.connection import HTTPConnection

from htas.adapters.kubernetes.access import Access
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.ports import ConflictError, HTASError, NotFoundError, PermanentError, TransientError

CONNECT_S = 5.0
READ_S = 30.0
"""A request that the API server has not answered by then is given up (its own --request-timeout is 60 s)."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

READS = 3
"""How often a read is asked for in all. Writes are tried again by the next cycle, which knows if they still hold."""
LONGEST_PAUSE_S = 1.0

_P = ParamSpec("_P")
_T = TypeVar("_T")
Query = Mapping[str, str | int]
OnCall = Callable[[str, int, float], None]
"""Told of each request: its method, the answer's status (0: none came), and how long it took in seconds."""

# Notices within 40 s that a peer is gone without a word, where a watch might otherwise wait for its timeout.
KEEPALIVE = [
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPIDLE", 4), 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5),
]


class GoneError(TransientError):
    """410: the resourceVersion or continue token is too old; list again."""


class _Details(msgspec.Struct):
    retryAfterSeconds: float | None = None  # noqa: N815 # the API's own name


class Status(msgspec.Struct):
    """What the API server says of a request that failed (meta/v1 Status)."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


def _ignore(method: str, status: int, seconds: float) -> None:
    pass


class ApiServer:
    """The API server behind an `Access`. Safe from several threads.

    Every call raises NotFoundError (404), ConflictError (409, 412), GoneError (410), TransientError (429, 5xx, 401, no
    connection) or PermanentError (other refusals), with the server's own message. Nothing is written while `may_write`
    says no: a daemon whose lease may have run out in the middle of a cycle changes nothing any more.
    """

    def __init__(
        self,
        access: Access,
        limit: RateLimit,
        on_call: OnCall = _ignore,
        pause: Callable[[float], None] = sleep,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self.may_write = may_write
        self._retrying = Retrying(
            sleep=pause,
            wait=_pause_s,
            stop=stop_after_attempt(READS),
            retry=retry_if_exception(_may_pass),
            reraise=True,
        )
        self._access = access
        self._limit = limit
        self.on_call = on_call
        access.pool.connection_pool_kw["socket_options"] = KEEPALIVE

    @property
    def namespace(self) -> str:
        """The namespace this process lives in (`default` outside a cluster)."""
        return self._access.namespace

    def get(self, path: str, query: Query | None = None) -> bytes:
        """Read; asked again at once where that may help, since one lost answer would cost a whole cycle."""
        return self._retrying(self._call, "GET", path, query)

    def post(self, path: str, body: object, query: Query | None = None) -> bytes:
        return self._call("POST", path, query, msgspec.json.encode(body))

    def put(self, path: str, body: object) -> bytes:
        return self._call("PUT", path, None, msgspec.json.encode(body))

    def patch(self, path: str, body: object, form: str = MERGE_PATCH) -> bytes:
        return self._call("PATCH", path, None, msgspec.json.encode(body), form)

    def delete(self, path: str, body: object | None = None) -> bytes:
        return self._call("DELETE", path, None, msgspec.json.encode(body) if body is not None else None)

    def lines(
        self, path: str, query: Query, idle_s: float, on_open: Callable[[], None] = lambda: None
    ) -> Iterator[bytes]:
        """The lines of a streamed answer (a watch) as they come; a stream silent for `idle_s` is broken off.

        `on_open` is called once the server has begun to answer.
        """
        answer = self._send("GET", path, query, None, JSON, urllib3.Timeout(connect=CONNECT_S, read=idle_s), False)
        try:
            if answer.status >= 300:
                raise translated(answer.status, answer.read(), answer.headers, f"GET {path}")
            on_open()
            yield from _lines(answer)
        except urllib3.exceptions.HTTPError as error:
            raise TransientError(f"watch {path}: {_words(error)}") from error
        finally:
            answer.close()  # the connection cannot be used again: the rest of the stream would be on it
            answer.release_conn()

    def _call(self, method: str, path: str, query: Query | None, body: bytes | None = None, form: str = JSON) -> bytes:
        self._limit.wait()
        if method != "GET" and not self.may_write():
            raise TransientError(f"{method} {path}: not sent, this daemon leads no more")
        answer = self._send(method, path, query, body, form, urllib3.Timeout(connect=CONNECT_S, read=READ_S), True)
        if answer.status >= 300:
            raise translated(answer.status, answer.data, answer.headers, f"{method} {path}")
        return answer.data

    def _send(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: bytes | None,
        form: str,
        timeout: urllib3.Timeout,
        preload: bool,
    ) -> urllib3.BaseHTTPResponse:
        url = f"{self._access.server}{path}"
        if query:
            url = f"{url}?{urlencode(query)}"
        headers = {"Accept": JSON, "User-Agent": "htas", **self._access.headers()}
        if body is not None:
            headers["Content-Type"] = form
        began = perf_counter()
        try:
            answer = self._access.pool.request(
                method, url, body=body, headers=headers, timeout=timeout, preload_content=preload
            )
        except urllib3.exceptions.HTTPError as error:
            self.on_call(method, 0, perf_counter() - began)
            raise TransientError(f"{method} {self._access.server}{path}: {_words(error)}") from error
        self.on_call(method, answer.status, perf_counter() - began)
        return answer


def retry_on_conflict(attempts: int) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Have a function that reads, changes and writes an object begin anew where somebody else wrote in between.

    It is called so often at the most; the last ConflictError is raised. As client-go's RetryOnConflict.
    """
    return retry(retry=retry_if_exception_type(ConflictError), stop=stop_after_attempt(attempts), reraise=True)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, TransientError) and not isinstance(error, GoneError)


def _pause_s(state: RetryCallState) -> float:
    """As long as the server wishes, within reason; else 0.1 s, then 0.2 s."""
    error = state.outcome.exception() if state.outcome is not None else None
    stated = error.retry_after_s if isinstance(error, TransientError) else None
    return min(stated if stated is not None else 0.1 * state.attempt_number, LONGEST_PAUSE_S)


def translated(code: int, body: bytes, headers: Mapping[str, str], what: str) -> HTASError:
    """The error of an answer, with the server's message."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:
        status = Status(message=body[:200].decode("utf-8", "replace"))
    message = f"{what}: {status.message or status.reason or 'refused'} ({code})"
    if code == 404:
        return NotFoundError(message)
    if code in (409, 412):
        return ConflictError(message)
    if code == 410:
        return GoneError(message)
    if code in (401, 429) or code >= 500:
        return TransientError(message, _retry_after_s(status, headers))
    return PermanentError(message)


def _retry_after_s(status: Status, headers: Mapping[str, str]) -> float | None:
    if status.details is not None and status.details.retryAfterSeconds:
        return status.details.retryAfterSeconds
    stated = headers.get("Retry-After", "")
    return float(stated) if stated.isdecimal() else None


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """By what has come, not by the megabyte: a proxy may pass a watch on unchunked, with nothing to mark its parts."""
    rest = b""
    while chunk := answer.read1(1 << 20):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line)
    if rest.strip():
        yield rest


def _words(error: Exception) -> str:
    """urllib3's complaint without the objects it prints."""
    reason = getattr(error, "reason", None) or error
    return str(reason).rpartition(">: ")[2].rpartition("): ")[2] or type(error).__name__


def part(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")
