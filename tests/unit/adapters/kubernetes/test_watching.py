"""List and watch over real HTTP, with everything that can go wrong on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest

from htas.adapters.kubernetes.api import ApiServer, GoneError
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.kubernetes.resources import RESOURCES
from htas.adapters.kubernetes.watching import Watching, list_into
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request, refusal
from tests.waiting import until

Json = dict[str, Any]
NODES = next(resource for resource in RESOURCES if resource.kind == "Node")


def node(name: str, version: int = 1, **spec: Any) -> Json:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "spec": spec, "status": {}}


def page(*items: Json, version: int = 10, more: str = "") -> Answer:
    return Answer(body={"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)})


def event(kind: str, item: Json) -> Json:
    return {"type": kind, "object": item}


class Script:
    """Answers lists and watches in turn; the last watch stays open until the test ends."""

    def __init__(self, lists: list[Answer], watches: list[Answer]) -> None:
        self.lists, self.watches = lists, watches
        self.ended = Event()

    def __call__(self, request: Request) -> Answer:
        if "watch" in request.query:
            return self.watches.pop(0) if self.watches else Answer(lines=self._silence())
        return self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]

    def _silence(self) -> Iterator[Json]:
        self.ended.wait(20.0)
        yield from ()


@contextmanager
def watching(script: Script) -> Iterator[tuple[LiveView, FakeApiServer, Watching]]:
    view, stopping = LiveView("htas"), Event()
    with FakeApiServer(script) as server:
        api = ApiServer(server.access(), RateLimit(1e9, 10**9))
        watch = Watching(api, NODES, view, stopping)
        watch.start()
        yield view, server, watch
        stopping.set()
        script.ended.set()
        watch.join(10.0)
        assert not watch.is_alive()


def names(view: LiveView) -> list[str]:
    return sorted(node.name for node in view.view().nodes)


def watched_from(server: FakeApiServer) -> list[str]:
    return [request.query["resourceVersion"] for request in server.asked("GET") if "watch" in request.query]


def test_a_list_of_several_pages_is_one_list() -> None:
    view = LiveView("htas")
    script = Script([page(node("a"), more="next"), page(node("b"))], [])
    with FakeApiServer(script) as server:
        version = list_into(view, ApiServer(server.access(), RateLimit(1e9, 10**9)), NODES, 1)
        first, second = server.requests
    assert (version, names(view)) == ("10", ["a", "b"])
    assert (first.query, second.query) == ({"limit": "1"}, {"limit": "1", "continue": "next"})


def test_a_token_that_grew_too_old_begins_the_list_anew() -> None:
    view = LiveView("htas")
    with FakeApiServer(Script([page(node("a"), more="next"), refusal(410)], [])) as server, pytest.raises(GoneError):
        list_into(view, ApiServer(server.access(), RateLimit(1e9, 10**9)), NODES, 1)
    assert "Node" in view.missing, "half a list is none"


def test_changes_are_followed() -> None:
    changes = [
        event("ADDED", node("b", 11)),
        event("MODIFIED", node("a", 12, unschedulable=True)),
        event("DELETED", node("b", 13)),
    ]
    with watching(Script([page(node("a"))], [Answer(lines=changes)])) as (view, server, _):
        until(lambda: len(watched_from(server)) == 2)
        assert [(n.name, n.is_unschedulable) for n in view.view().nodes] == [("a", True)]
        assert watched_from(server) == ["10", "13"], "the next watch begins where this one ended"


def test_a_bookmark_moves_the_version_on() -> None:
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "99"}})
    with watching(Script([page(node("a"))], [Answer(lines=[bookmark])])) as (view, server, _):
        until(lambda: len(watched_from(server)) == 2)
        assert watched_from(server)[1] == "99"
        assert names(view) == ["a"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(refusal(410), id="at once"),
        pytest.param(Answer(lines=[event("ERROR", {"code": 410, "message": "too old"})]), id="within the stream"),
    ],
)
def test_a_version_that_is_too_old_lists_again_and_drops_what_is_gone(answer: Answer) -> None:
    with watching(Script([page(node("a"), node("b")), page(node("b"), version=50)], [answer])) as (view, server, _):
        until(lambda: "50" in watched_from(server))
        assert names(view) == ["b"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(lines=[event("ADDED", node("b", 11))], is_cut=True), id="cut between events"),
        pytest.param(Answer(lines=[event("ADDED", node("b", 11)), b'{"type":"ADD'], is_cut=True), id="cut within one"),
        pytest.param(
            Answer(lines=[event("ADDED", node("b", 11)), event("ERROR", {"code": 500, "message": "x"})]), id="an error"
        ),
    ],
)
def test_a_broken_watch_is_taken_up_where_it_was(answer: Answer) -> None:
    with watching(Script([page(node("a"))], [answer])) as (view, server, watch):
        until(lambda: len(watched_from(server)) == 2)
        assert watched_from(server) == ["10", "11"]
        assert names(view) == ["a", "b"]
        until(lambda: watch.failing_since is None)


def test_a_server_that_refuses_is_asked_again_and_the_reason_is_kept_until_it_works() -> None:
    with watching(Script([refusal(403, message="you may not list"), page(node("a"))], [])) as (view, _, watch):
        until(lambda: watch.error)
        assert "you may not list" in watch.error
        until(lambda: names(view) == ["a"])
        until(lambda: not watch.error)


def test_an_object_that_makes_no_sense_does_not_end_the_watch() -> None:
    odd = {"metadata": {"name": "odd", "resourceVersion": "11"}, "spec": {"taints": "none"}}
    with watching(Script([page(node("a"))], [Answer(lines=[event("ADDED", odd), event("ADDED", node("b", 12))])])) as (
        view,
        _,
        _watch,
    ):
        until(lambda: names(view) == ["a", "b"])
        (problem,) = view.view().problems
        assert problem.where == "Node odd"
