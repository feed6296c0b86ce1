"""What a client sends: its body, within a length and a time, and how it is told that it is not taken."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

BODY_S = 10.0
"""For the whole body of a request."""
_T = TypeVar("_T")


WHO = "htas.who"
"""Where a request's scope has who asked, once that is known."""
STOPPING = "htas.stopping"
"""Where it has what tells whether the listener is stopping: an answer that goes on for long ends then."""


class RequestRefusedError(Exception):
    """A request that is not taken: an HTTP status, and why in words."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status

    def response(self) -> Response:
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else None
        return PlainTextResponse(f"{self}\n", self.status, headers)


async def sent_body(request: Request, longest: int) -> bytes:
    """What was sent, as far as it may be long; raises RequestRefusedError."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > longest:
                    raise RequestRefusedError(413, f"a request here has at most {longest} bytes")
    except TimeoutError:
        raise RequestRefusedError(408, f"the body did not arrive within {BODY_S:g} s") from None
    except ClientDisconnect:  # nobody reads this answer, but it is no defect of ours that has to be logged
        raise RequestRefusedError(400, "the connection ended before the body did") from None
    return bytes(body)


def as_json(body: bytes, kind: type[_T]) -> _T:
    """A body decoded; raises RequestRefusedError, also for what is no UTF-8 and for lists in lists without end."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefusedError(400, str(error)) from None
