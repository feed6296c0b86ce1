"""Calls over real HTTP: what is sent, and which error each refusal becomes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from threading import Event

import pytest

from htas.adapters.kubernetes.api import ApiServer, GoneError
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.ports import ConflictError, HTASError, NotFoundError, PermanentError, TransientError
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request, refusal

UNLIMITED = RateLimit(1e9, 10**9)


def calling(server: FakeApiServer, **options: object) -> ApiServer:
    return ApiServer(server.access(), UNLIMITED, pause=lambda _: None, **options)  # type: ignore[arg-type] # as given


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, PermanentError),
        (401, TransientError),
        (403, PermanentError),
        (404, NotFoundError),
        (409, ConflictError),
        (410, GoneError),
        (412, ConflictError),
        (422, PermanentError),
        (429, TransientError),
        (500, TransientError),
        (503, TransientError),
        (504, TransientError),
    ],
)
def test_each_refusal_is_an_error_of_ours_with_the_servers_words(status: int, kind: type[HTASError]) -> None:
    with FakeApiServer(lambda _: refusal(status, message="because of reasons")) as server:
        with pytest.raises(HTASError, match=rf"GET /x: because of reasons \({status}\)") as caught:
            calling(server).get("/x")
        assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(refusal(429, details={"retryAfterSeconds": 7}), 7.0, id="stated in the answer"),
        pytest.param(Answer(503, {}, {"Retry-After": "3"}), 3.0, id="stated in a header"),
        pytest.param(Answer(503, {}, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}), None, id="as a date: not read"),
        pytest.param(refusal(500), None, id="not stated"),
    ],
)
def test_how_long_to_wait_is_passed_on(answer: Answer, seconds: float | None) -> None:
    with FakeApiServer(lambda _: answer) as server:
        with pytest.raises(TransientError) as caught:
            calling(server).get("/x")
        assert caught.value.retry_after_s == seconds


def test_what_is_sent() -> None:
    with FakeApiServer(lambda _: Answer(201, {"ok": True})) as server:
        api = ApiServer(server.access(token="secret"), UNLIMITED)
        assert api.post("/api/v1/pods", {"a": 1}, {"dryRun": "All"}) == b'{"ok": true}'
        api.patch("/p", {"b": 2})
        api.delete("/p")
    post, patch, delete = server.requests
    assert (post.method, post.path, post.query, post.body) == ("POST", "/api/v1/pods", {"dryRun": "All"}, {"a": 1})
    assert (post.headers["Authorization"], post.headers["User-Agent"]) == ("Bearer secret", "htas")
    assert patch.headers["Content-Type"] == "application/merge-patch+json"
    assert delete.body is None


def test_calls_share_a_connection_that_is_kept_alive() -> None:
    with FakeApiServer(lambda _: Answer()) as server:
        api = calling(server)
        for _ in range(5):
            api.get("/x")
        assert server.connections == 1


def test_an_answer_that_breaks_off_is_transient() -> None:
    with FakeApiServer(lambda _: Answer(body={"a": 1}, is_cut=True)) as server, pytest.raises(TransientError):
        calling(server).get("/x")


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        pytest.param([refusal(500), None, Answer()], [0.1, 0.2], id="two failures, then an answer"),
        pytest.param([refusal(429, details={"retryAfterSeconds": 30}), Answer()], [1.0], id="asked for a longer pause"),
    ],
)
def test_a_read_is_asked_for_again(answers: list[Answer | None], pauses: list[float]) -> None:
    paused: list[float] = []
    with FakeApiServer(lambda _: answers.pop(0)) as server:
        ApiServer(server.access(), UNLIMITED, pause=paused.append).get("/x")
    assert paused == pauses


def test_a_write_is_not_sent_again_by_itself() -> None:
    with FakeApiServer(lambda _: refusal(500)) as server:
        with pytest.raises(TransientError):
            calling(server).post("/x", {})
        assert len(server.requests) == 1


def test_who_may_not_write_any_more_still_reads() -> None:
    may = [True]
    with FakeApiServer(lambda _: Answer()) as server:
        api = calling(server, may_write=lambda: may[0])
        api.post("/x", {})
        may[0] = False
        for write in (api.post, api.put, api.patch, api.delete):
            with pytest.raises(TransientError, match="leads no more"):
                write("/x", {})
        api.get("/x")
        assert [request.method for request in server.requests] == ["POST", "GET"]


def test_no_answer_at_all_is_transient() -> None:
    with FakeApiServer(lambda _: None) as server, pytest.raises(TransientError):
        calling(server).get("/x")


def test_nobody_there_is_transient_and_says_what_was_asked_for() -> None:
    with FakeApiServer(lambda _: Answer()) as server:
        access = server.access()
    with pytest.raises(TransientError, match=r"GET http://127\.0\.0\.1:\d+/x: .*refused"):
        ApiServer(access, UNLIMITED).get("/x")


def test_after_a_broken_connection_the_next_call_makes_a_new_one() -> None:
    turns = itertools.count()
    with FakeApiServer(lambda _: None if next(turns) == 1 else Answer()) as server:
        api = calling(server)
        api.get("/x")
        with pytest.raises(TransientError):
            api.post("/x", {})
        api.post("/x", {})


def test_every_call_is_told_with_its_status() -> None:
    told: list[tuple[str, int]] = []

    def answer(request: Request) -> Answer | None:
        return {"/good": Answer(), "/bad": refusal(409)}.get(request.path)

    with FakeApiServer(answer) as server:
        api = calling(server, on_call=lambda method, status, seconds: told.append((method, status)))
        api.get("/good")
        for path in ("/bad", "/silent"):
            with pytest.raises(HTASError):
                api.get(path)
    assert told == [("GET", 200), ("GET", 409), ("GET", 0), ("GET", 0), ("GET", 0)]


def test_lines_come_one_by_one_and_blank_ones_are_left_out() -> None:
    opened: list[bool] = []
    lines = [b'{"a":1}\n{"a"', b":2}\n\n", b'{"a":3}']
    with FakeApiServer(lambda _: Answer(lines=lines)) as server:
        found = list(calling(server).lines("/w", {"watch": 1}, 5.0, on_open=lambda: opened.append(True)))
    assert (found, opened) == ([b'{"a":1}', b'{"a":2}', b'{"a":3}'], [True])


def test_a_stream_without_chunks_is_not_waited_for_by_the_megabyte() -> None:
    may_go_on = Event()

    def lines() -> Iterator[bytes]:
        yield b'{"a":1}\n'
        may_go_on.wait(10.0)
        yield b'{"a":2}\n'

    with FakeApiServer(lambda _: Answer(lines=lines(), is_chunked=False)) as server:
        stream = calling(server).lines("/w", {}, 5.0)
        assert next(stream) == b'{"a":1}'
        may_go_on.set()
        assert list(stream) == [b'{"a":2}']


def test_a_stream_that_is_cut_is_transient_after_what_came() -> None:
    with FakeApiServer(lambda _: Answer(lines=[{"a": 1}], is_cut=True)) as server:
        stream = calling(server).lines("/w", {}, 5.0)
        assert next(stream) == b'{"a": 1}'
        with pytest.raises(TransientError, match="watch /w"):
            next(stream)


def test_a_stream_that_is_refused_never_opens() -> None:
    opened: list[bool] = []
    with FakeApiServer(lambda _: refusal(410)) as server, pytest.raises(GoneError):
        next(calling(server).lines("/w", {}, 5.0, on_open=lambda: opened.append(True)))
    assert opened == []
