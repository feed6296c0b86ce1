"""Events, marks and the status, as they reach the API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from htas.adapters.kubernetes.announcing import KubernetesAnnouncer
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.model.news import EventReason, News
from tests.builders import make_pod
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request, refusal
from tests.waiting import until


@contextmanager
def announcing(
    answer: Callable[[Request], Answer | None] = lambda _: Answer(201), burst: int = 100
) -> Iterator[tuple[KubernetesAnnouncer, FakeApiServer, list[int]]]:
    dropped: list[int] = []
    with FakeApiServer(answer) as server:
        api = ApiServer(server.access(), RateLimit(1e9, 10**9))
        limit = RateLimit(1.0, burst, clock=lambda: 0.0)
        announcer = KubernetesAnnouncer(api, "space", "htas-x-status", "pod-1", limit, dropped.append)
        yield announcer, server, dropped
        announcer.close()


def test_an_event_says_who_what_and_of_which_object() -> None:
    with announcing() as (announcer, server, _):
        announcer.tell(
            [
                News("Pod", "team/web-1", EventReason.SCHEDULED, "went well", "uid-1"),
                News("Node", "n1", EventReason.SCALE_DOWN, "x" * 2000),
            ]
        )
        until(lambda: len(server.requests) == 2)
    pod, node = server.requests
    assert pod.path == "/apis/events.k8s.io/v1/namespaces/team/events"
    assert pod.body["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web-1",
        "namespace": "team",
        "uid": "uid-1",
    }
    assert (pod.body["reason"], pod.body["type"], pod.body["note"]) == ("Scheduled", "Normal", "went well")
    assert (pod.body["reportingController"], pod.body["reportingInstance"]) == ("htas.io/htas", "pod-1")
    assert node.path == "/apis/events.k8s.io/v1/namespaces/default/events", "where events of nodes belong"
    assert len(node.body["note"]) == 1024


def test_a_note_is_cut_by_its_bytes() -> None:
    with announcing() as (announcer, server, _):
        announcer.tell([News("Pod", "team/web-1", EventReason.FAILED_SCHEDULING, "\u673a" * 1000)])
        until(lambda: len(server.requests) == 1)
    assert server.requests[0].body["note"] == "\u673a" * 341, "three bytes each"


def test_what_is_over_the_limit_is_dropped_and_counted() -> None:
    with announcing(burst=2) as (announcer, server, dropped):
        announcer.tell(News("Pod", f"default/p{i}", EventReason.SCHEDULED, "") for i in range(5))
        until(lambda: len(server.requests) == 2)
        assert sum(dropped) == 3


def test_a_waiting_pod_is_marked_as_kube_scheduler_would() -> None:
    with announcing() as (announcer, server, _):
        announcer.mark_waiting(make_pod("p"), "no room")
        until(lambda: server.requests)
    (request,) = server.requests
    assert (request.method, request.path) == ("PATCH", "/api/v1/namespaces/default/pods/p/status")
    (condition,) = request.body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert condition["message"] == "no room"
    assert request.headers["Content-Type"] == "application/strategic-merge-patch+json"


def test_the_status_is_made_where_there_is_none_and_not_written_twice() -> None:
    with announcing(lambda request: refusal(404) if request.method == "PATCH" else Answer(201)) as (
        announcer,
        server,
        _,
    ):
        announcer.publish("all: well\n")
        announcer.publish("all: well\n")
        until(lambda: len(server.requests) == 2)
    patch, post = server.requests
    assert patch.path == "/api/v1/namespaces/space/configmaps/htas-x-status"
    assert post.body["data"] == {"status": "all: well\n"}


def test_a_server_that_refuses_holds_nobody_up() -> None:
    with announcing(lambda _: refusal(500)) as (announcer, server, _):
        announcer.tell([News("Pod", "default/p", EventReason.SCHEDULED, "")])
        announcer.publish("x")
        until(lambda: len(server.requests) == 2)
