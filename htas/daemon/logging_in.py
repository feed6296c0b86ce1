"""`/session`: a browser shows a token once and is given a cookie, or gives it back."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from htas.daemon.asking import SESSION, Gatekeeper, RequestRefusedError
from htas.daemon.sessions import COOKIE, LASTS_S, Sessions
from htas.web.endpoints import PREFIX

LONGEST = 16_384
"""A token of a service account has about a kilobyte."""
BODY_S = 10.0
FIRST_PAGE = f"{PREFIX}/cluster"
"""Who may see this may log in."""


class Login(msgspec.Struct, frozen=True):
    token: str


def session_routes(gate: Gatekeeper, sessions: Sessions) -> list[BaseRoute]:
    """POST {"token": "…"} begins a session, DELETE ends it."""

    async def begin(request: Request) -> Response:
        try:
            login = msgspec.json.decode(await _body(request), type=Login)
            shown = f"Bearer {login.token.strip()}"
            await run_in_threadpool(gate.check, shown, "GET", FIRST_PAGE)
        except msgspec.DecodeError:
            return PlainTextResponse('send {"token": "…"}\n', 400)
        except RequestRefusedError as refused:
            return refused.response()
        answer = Response(status_code=204)
        set_cookie(answer, request, sessions.begin(shown))
        return answer

    async def end(request: Request) -> Response:
        sessions.end(request.cookies.get(COOKIE, ""))
        answer = Response(status_code=204)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    return [Route(SESSION, begin, methods=["POST"]), Route(SESSION, end, methods=["DELETE"])]


def set_cookie(answer: Response, request: Request, secret: str) -> None:
    """No script reads it, and no page of another site has it sent; begun over TLS it is never sent in the clear."""
    is_secure = request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, secret, max_age=int(LASTS_S), path="/", secure=is_secure, httponly=True, samesite="strict"
    )


async def _body(request: Request) -> bytes:
    """Raises RequestRefusedError where it is too long, or does not come."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > LONGEST:
                    raise RequestRefusedError(413, f"a login has at most {LONGEST} bytes")
    except TimeoutError:
        raise RequestRefusedError(408, f"the body did not come within {BODY_S:g} s") from None
    return bytes(body)
