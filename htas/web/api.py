"""The API over HTTP: requests checked, documents made (those of the cluster once for each picture), ETags, events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from htas.ports import ConflictError, GivenError, HTASError, NotFoundError, TransientError
from htas.web.endpoints import ENDPOINTS, PREFIX, ApiRequest, Endpoint, Work
from htas.web.openapi import openapi
from htas.web.seat import Seat
from htas.web.sent import STOPPING, WHO, RequestRefusedError, as_json, sent_body
from htas.web.shelf import Body, Shelf, body_of, sent
from htas.web.turns import Share, Turns

LONGEST_BODY = 262_144
STREAM_S = 45.0
"""A stream of events ends by itself, within the time that an answer may take; browsers come back by themselves."""
LOOK_S = 0.25
BEAT_S = 10.0
"""A page that hears nothing for longer knows that the server hangs."""
RETRY_MS = 1_000
MOST_STREAMS = 48
"""Of 128 connections: whoever comes later is told to ask again, and loses nothing but haste."""
_encode = msgspec.json.Encoder(enc_hook=str).encode


def api_routes(seat: Seat) -> list[BaseRoute]:
    """Every endpoint, the OpenAPI document, and the events; who may ask has been asked before."""
    shelf, share = Shelf(), Share(0.25, saved_s=20.0)
    turns = {
        Work.PLANNING: Turns("planning again", share, reserve_s=5.0),
        Work.READING: Turns("reading what is on record", share, line=3),
        Work.SHOWING: Turns("working out a page", share, line=5),
    }
    described = body_of(_encode(openapi()))

    def document(request: Request) -> Response:
        return _respond(request, described)

    return [
        *(_route(seat, shelf, turns[each.turns] if each.turns is not None else None, each) for each in ENDPOINTS),
        Route(f"{PREFIX}/openapi.json", document),
        Route(f"{PREFIX}/events", Events(seat).stream),
    ]


def _route(seat: Seat, shelf: Shelf, turns: Turns | None, endpoint: Endpoint) -> Route:
    def answer(request: Request, body: Any = None) -> Response:
        try:
            query = msgspec.convert(dict(request.query_params), endpoint.query, strict=False)
            asked = ApiRequest(dict(request.path_params), query, body, request.scope.get(WHO, ""))
            picture = seat.picture()

            def made() -> bytes:
                with turns.one() if turns is not None else nullcontext():
                    return _encode(endpoint.answer(seat, picture, asked))

            if not endpoint.is_kept:
                return _respond(request, body_of(made()))
            key = f"{request.url.path}?{_encode(query).decode()}{_encode(body).decode()}"
            return _respond(request, shelf.get(key, picture.version, made))
        except (HTASError, msgspec.ValidationError) as error:
            return refused(error)

    if endpoint.method == "GET":
        return Route(f"{PREFIX}{endpoint.path}", answer)

    async def posted(request: Request) -> Response:
        try:
            body = as_json(await sent_body(request, LONGEST_BODY), endpoint.body or dict)
        except RequestRefusedError as refusal:
            return refusal.response()
        return await run_in_threadpool(answer, request, body)

    return Route(f"{PREFIX}{endpoint.path}", posted, methods=[endpoint.method])


def refused(error: Exception) -> Response:
    """What went wrong, as text: 400 for what makes no sense, 404, 409 where another word stands, 503: another time."""
    headers = {}
    if isinstance(error, NotFoundError):
        status = 404
    elif isinstance(error, ConflictError):
        status = 409
    elif isinstance(error, GivenError | msgspec.ValidationError):
        status = 400
    elif isinstance(error, TransientError):
        status, headers = 503, {"Retry-After": f"{error.retry_after_s or 5:.0f}"}
    else:
        status = 503
    return PlainTextResponse(f"{error}\n", status, headers)


def _respond(request: Request, body: Body) -> Response:
    headers = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Cookie, Authorization"}
    return sent(request, body, headers, "application/json")


class Events:
    """`cycle` with the version of the cluster whenever that changes: pages then ask for what they show, by ETag."""

    def __init__(self, seat: Seat, clock: Callable[[], float] = time.monotonic) -> None:
        self._seat = seat
        self._clock = clock
        self._open = 0

    async def stream(self, request: Request) -> Response:
        """A place is taken here, not with the first line: of many that come at once all would find one."""
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            return Response(headers=headers, media_type="text/event-stream")
        if self._open >= MOST_STREAMS:
            return PlainTextResponse("too many pages follow already; try again\n", 503, {"Retry-After": "15"})
        self._open += 1
        return _Stream(self.lines(request.scope.get(STOPPING, _never)), self._left, headers)

    def _left(self) -> None:
        self._open -= 1

    async def lines(self, is_stopping: Callable[[], bool]) -> AsyncIterator[str]:
        """Until STREAM_S have passed, or the listener stops: it would wait two seconds, and then tell of an error."""
        told, until, last = -1, self._clock() + STREAM_S, self._clock()
        yield f"retry: {RETRY_MS}\n\n"
        while self._clock() < until and not is_stopping():
            version, now = self._seat.version, self._clock()
            if version != told:
                told, last = version, now
                yield f"id: {version}\nevent: cycle\ndata: {version}\n\n"
            elif now - last >= BEAT_S:
                last = now
                yield "event: beat\ndata:\n\n"
            await asyncio.sleep(LOOK_S)


def _never() -> bool:
    return False


class _Stream(StreamingResponse):
    """Tells when it is over, also where nobody took a line."""

    def __init__(self, lines: AsyncIterator[str], over: Callable[[], None], headers: dict[str, str]) -> None:
        super().__init__(lines, headers=headers, media_type="text/event-stream")
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._over()
