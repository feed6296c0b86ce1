"""Who may ask a daemon for something over HTTP, and how it says no.

Health and metrics are open, as probes and Prometheus expect. Everything else shows what runs in every namespace, or
changes it, and needs a token: that of `http.tokenFile`, or, with `http.tokenReview`, one that the API server knows and
whose user may `get` or `post` the path (a `nonResourceURLs` rule), as kube-rbac-proxy decides. A browser shows the
token once and has a cookie from then on (`sessions.py`); the pages themselves are open, and there are no data in them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from htas.adapters.tokens import read_token, shows
from htas.daemon.http.audit import AuditEntry, AuditLog, cut, instant, plain_query
from htas.daemon.http.host_names import HostNames
from htas.daemon.http.sessions import Sessions, cookie_name
from htas.daemon.http.wrong_tokens import WrongTokens
from htas.ports import HTASError, PermanentError, ReviewPort, TransientError, User
from htas.web.pages import ASSETS, HEADERS
from htas.web.sent import WHO, RequestRefusedError

OPEN = frozenset({"/", "/healthz", "/readyz", "/metrics"})
"""What anybody may ask for who reaches the port; and the files under ASSETS."""
SESSION = "/session"
"""Where a browser begins a session and ends it. Anybody may try: the token is in what is sent."""
READING = frozenset({"GET", "HEAD"})


class Gatekeeper(Protocol):
    """Decides who may ask."""

    def check(self, authorization: str, method: str, path: str) -> str:
        """Who it is, for the audit log. Raises RequestRefusedError."""


class NotConnectedYet:
    """Implements ReviewPort for a daemon that is starting."""

    def user_of(self, token: str) -> User | None:
        raise TransientError("this daemon is starting; try again in a moment")

    def may(self, user: User, verb: str, path: str) -> bool:
        raise TransientError("this daemon is starting; try again in a moment")


@dataclass(slots=True)
class Gate:
    """Decides who may ask. With neither a token nor a reviewer nobody may ask for more than what is open."""

    token_file: Path | None = None
    reviewer: ReviewPort | None = None

    def check(self, authorization: str, method: str, path: str) -> str:
        """The user's name, or the setting whose token was shown. Raises RequestRefusedError: 401 without a token that
        is known, 403 for one whose user may not.
        """
        if self.token_file is None and self.reviewer is None:
            raise RequestRefusedError(403, "this needs a token, and none is configured: set http.tokenFile")
        if self.token_file is not None and self._shows_the_file(authorization, self.token_file):
            return "http.tokenFile"
        if self.reviewer is None:
            raise RequestRefusedError(401, "show the token of http.tokenFile (Authorization: Bearer …)")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise RequestRefusedError(401, "show a token that the API server knows (Authorization: Bearer …)")
        return self._review(self.reviewer, token.strip(), "get" if method in READING else method.lower(), path)

    def _shows_the_file(self, authorization: str, token_file: Path) -> bool:
        """The token is read anew each time, so that a Secret may be replaced."""
        try:
            return shows(authorization, read_token(token_file))
        except PermanentError as error:
            if self.reviewer is not None:
                return False
            raise RequestRefusedError(500, f"http.tokenFile: {error}") from error

    def _review(self, reviewer: ReviewPort, token: str, verb: str, path: str) -> str:
        try:
            user = reviewer.user_of(token)
            if user is None:
                raise RequestRefusedError(401, "the API server does not know this token")
            if not reviewer.may(user, verb, path):
                raise RequestRefusedError(403, f"{user.name} may not {verb} {path}; grant it as a nonResourceURL")
            return user.name
        except HTASError as error:
            raise RequestRefusedError(503, f"the API server cannot check who you are: {error}") from error


class Guarded:
    """An application behind a gate (ASGI). Other names of this server, writes from a page of another origin, and forms
    are refused first.
    """

    def __init__(
        self,
        app: ASGIApp,
        gate: Gatekeeper,
        sessions: Sessions | None = None,
        audit: AuditLog | None = None,
        hosts: HostNames | None = None,
        wrong_tokens: WrongTokens | None = None,
    ) -> None:
        self._app = app
        self._gate = gate
        self._sessions = sessions
        self._audit = audit
        self._hosts = hosts or HostNames()
        self._wrong_tokens = wrong_tokens or WrongTokens()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        send = _with_headers(send)
        refusal = self._hosts.refusal(Headers(scope=scope).get("host", ""), scope["path"])
        if refusal is not None:
            return await RequestRefusedError(421, refusal).response()(scope, receive, send)
        if self._audit is None or scope["type"] != "http" or _is_open(scope):
            return await self._answer(scope, receive, send)
        answered = Answered(send)
        try:
            return await self._answer(scope, receive, answered)
        finally:
            self._audit.request(answered.entry(scope))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_open(scope):
            headers = Headers(scope=scope)
            try:
                refuse_a_neighbour(headers)
                if scope["method"] not in READING:
                    refuse_a_page(headers)
                    refuse_a_form(headers)
                if scope["path"] != SESSION:
                    scope[WHO] = await self._checked(scope, headers)
            except RequestRefusedError as refused:
                return await refused.response()(scope, receive, send)
        return await self._app(scope, receive, send)

    async def _checked(self, scope: Scope, headers: Headers) -> str:
        """Who asks. Raises RequestRefusedError. A browser's session is no guess: its token was right once."""
        shown = headers.get("authorization", "")
        check = partial(self._gate.check, shown or self._of_session(headers), scope["method"], scope["path"])
        return await judged(check, self._wrong_tokens, source_of(scope) if shown else None)

    def _of_session(self, headers: Headers) -> str:
        """What the browser's session began with; empty: it has none."""
        if self._sessions is None:
            return ""
        name = cookie_name(headers.get("host", ""))
        return self._sessions.authorization(cookie_parser(headers.get("cookie", "")).get(name, ""))


async def judged(check: Callable[[], str], wrong_tokens: WrongTokens, source: str | None) -> str:
    """Who a token belongs to, after the pause that its source has earned. None: no token was shown.

    Raises RequestRefusedError.
    """

    async def in_thread() -> str:
        return await run_in_threadpool(check)

    return await (in_thread() if source is None else wrong_tokens.judge(source, in_thread))


def source_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    return client[0] if client else ""


class Answered:
    """Passes an answer on, and knows its status and how long it took."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._began = time.monotonic()
        self._at = time.time()
        self._status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
        await self._send(message)

    def entry(self, scope: Scope) -> AuditEntry:
        return AuditEntry(
            at=instant(self._at),
            how="http",
            who=cut(scope.get(WHO, "")),
            source=cut(source_of(scope)),
            method=cut(scope["method"]),
            path=cut(scope["path"]),
            query=plain_query(scope.get("query_string", b"").decode("latin-1")),
            status=self._status,
            took_ms=round((time.monotonic() - self._began) * 1000),
            agent=cut(Headers(scope=scope).get("user-agent", "")),
        )


def _is_open(scope: Scope) -> bool:
    path = scope["path"]
    return (path in OPEN or path.startswith(ASSETS)) and scope["method"] in READING


def _with_headers(send: Send) -> Send:
    """What keeps pages of others from framing, loading or guessing at an answer: on each that states nothing else."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def refuse_a_neighbour(headers: Headers) -> None:
    """The cookie goes to every port of a host, and comes from pages of every port: browsers say which (Fetch Metadata,
    W3C). Raises RequestRefusedError for what is neither of our pages nor an address typed in.
    """
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none"):
        raise RequestRefusedError(403, f"a page of another site ({site[:20]}) may not send requests; use curl or htas")


def refuse_a_page(headers: Headers) -> None:
    """A browser names the page that a request comes from; raises RequestRefusedError where that is not ours."""
    origin = headers.get("origin")
    if origin is not None and _host_of(origin) != headers.get("host", ""):
        raise RequestRefusedError(403, f"a page of {origin[:100]} may not send requests; use curl or htas")


def _host_of(origin: str) -> str | None:
    """None for one that is no address, such as "http://[::1"."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def refuse_a_form(headers: Headers) -> None:
    """What a form can send without asking first (CORS calls it simple) is no JSON; raises RequestRefusedError."""
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestRefusedError(415, f"{kind[:100]} is not taken; send JSON (Content-Type: application/json)")
