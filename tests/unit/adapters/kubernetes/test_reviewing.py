"""Whose token it is and what they may ask for, as the API server answers, and what its refusals become."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.kubernetes.reviewing import ACCESS_REVIEWS, KEPT_S, TOKEN_REVIEWS, KubernetesReviewer
from htas.ports import HTASError, PermanentError, TransientError, User
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request, refusal

Json = dict[str, Any]
ALICE = User("alice", "7", ("ops", "system:authenticated"), (("scopes", ("a", "b")),))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def reviewing(answer: Callable[[Request], Answer], clock: Clock) -> Iterator[tuple[KubernetesReviewer, FakeApiServer]]:
    with FakeApiServer(answer) as server:
        api = ApiServer(server.access(), RateLimit(1e9, 10**9), pause=lambda _: None)
        yield KubernetesReviewer(api, clock), server


def knows_alice(request: Request) -> Answer:
    """A server that knows one token and one rule."""
    spec = request.body["spec"]
    if request.path == TOKEN_REVIEWS:
        user = {"username": "alice", "uid": "7", "groups": list(ALICE.groups), "extra": {"scopes": ["a", "b"]}}
        known = {"authenticated": True, "user": user}
        return Answer(201, {"status": known if spec["token"] == "alices" else {"error": "unknown"}})
    assert request.path == ACCESS_REVIEWS
    asked = spec["user"], spec["groups"], spec["extra"], spec["nonResourceAttributes"]
    rule = "alice", list(ALICE.groups), {"scopes": ["a", "b"]}, {"path": "/planz", "verb": "get"}
    return Answer(201, {"status": {"allowed": asked == rule}})


def test_a_token_is_its_users_and_a_user_may_what_the_rules_say() -> None:
    with reviewing(knows_alice, Clock()) as (reviewer, _):
        assert reviewer.user_of("alices") == ALICE
        assert reviewer.user_of("nobodys") is None
        assert reviewer.may(ALICE, "get", "/planz")
        assert not reviewer.may(ALICE, "post", "/planz")


def test_an_answer_counts_for_a_while_and_no_longer() -> None:
    clock = Clock()
    with reviewing(knows_alice, clock) as (reviewer, server):
        for _ in range(5):
            reviewer.user_of("alices")
        assert len(server.requests) == 1
        clock.now = KEPT_S
        reviewer.user_of("alices")
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(refusal(403, "Forbidden"), PermanentError, id="we may not ask"),
        pytest.param(refusal(500, "InternalError"), TransientError, id="it is not well"),
        pytest.param(Answer(201, {"status": {"authenticated": "yes"}}), PermanentError, id="an answer without sense"),
    ],
)
def test_where_it_cannot_be_found_out_nobody_is_anybody_and_the_next_is_asked_for_anew(
    answer: Answer, error: type[HTASError]
) -> None:
    answers = iter([answer])
    with reviewing(lambda request: next(answers, None) or knows_alice(request), Clock()) as (reviewer, _):
        with pytest.raises(error):
            reviewer.user_of("alices")
        assert reviewer.user_of("alices") == ALICE
