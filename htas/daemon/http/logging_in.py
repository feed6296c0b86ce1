"""`/session`: a browser shows a token once and is given a cookie, or gives it back."""

from __future__ import annotations

from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from htas.daemon.http.authorization import SESSION, Gatekeeper, judged, source_of
from htas.daemon.http.sessions import LASTS_S, Sessions, cookie_name
from htas.daemon.http.wrong_tokens import WrongTokens
from htas.web.endpoints import PREFIX
from htas.web.sent import WHO, RequestRefusedError, as_json, sent_body

LONGEST = 16_384
"""A token of a service account has about a kilobyte."""
FIRST_PAGE = f"{PREFIX}/cluster"
"""Who may see this may log in."""


class Login(msgspec.Struct, frozen=True):
    token: str


def session_routes(gate: Gatekeeper, sessions: Sessions, wrong_tokens: WrongTokens) -> list[BaseRoute]:
    """POST {"token": "…"} begins a session, DELETE ends it."""

    async def begin(request: Request) -> Response:
        try:
            login = as_json(await sent_body(request, LONGEST), Login)
            shown = f"Bearer {login.token.strip()}"
            check = partial(gate.check, shown, "GET", FIRST_PAGE)
            request.scope[WHO] = await judged(check, wrong_tokens, source_of(request.scope))
        except RequestRefusedError as refused:
            return refused.response()
        sessions.end(session_secret(request))  # else it would live on, and nobody could end it
        answer = Response(status_code=204)
        set_cookie(answer, request, sessions.begin(shown))
        return answer

    async def end(request: Request) -> Response:
        sessions.end(session_secret(request))
        answer = Response(status_code=204)
        answer.delete_cookie(_name(request), path="/", httponly=True, samesite="strict")
        return answer

    return [Route(SESSION, begin, methods=["POST"]), Route(SESSION, end, methods=["DELETE"])]


def set_cookie(answer: Response, request: Request, secret: str) -> None:
    """No script reads it, and no page of another site has it sent; begun over TLS it is never sent in the clear.

    That a proxy ends TLS a visitor may say as well, who has no cookie in the clear then, and nothing by it.
    """
    is_secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    answer.set_cookie(
        _name(request), secret, max_age=int(LASTS_S), path="/", secure=is_secure, httponly=True, samesite="strict"
    )


def session_secret(request: Request) -> str:
    """What the browser's cookie holds; empty: it has none."""
    return request.cookies.get(_name(request), "")


def _name(request: Request) -> str:
    return cookie_name(request.headers.get("host", ""))
