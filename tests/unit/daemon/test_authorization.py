"""Who may ask a daemon for what: the token of a file, tokens of the API server, pages of other origins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import urllib3

from htas.daemon.http.app import Endpoints, HttpServer
from htas.daemon.http.authorization import Gate, NotConnectedYet
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.http.wrong_tokens import FREE
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.model.policy import Cycles
from htas.ports import User
from htas.web.seat import Seat
from tests.builders import make_policy

LOOKS = ["/planz", "/snapshotz", "/api/optimize", "/api/migrate/1"]
OPEN = ["/", "/healthz", "/readyz", "/metrics"]


class Tokens:
    """Tokens, whose they are, and what each user may do: an API server's answers, in memory."""

    users: ClassVar = {"alice": User("alice", groups=("ops",)), "bob": User("bob")}
    rules: ClassVar = {("alice", "get", "/planz"), ("alice", "post", "/api/optimize"), ("bob", "get", "/metrics")}

    def user_of(self, token: str) -> User | None:
        return self.users.get(token)

    def may(self, user: User, verb: str, path: str) -> bool:
        return (user.name, verb, path) in self.rules


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def server(gate: Gate) -> Iterator[HttpServer]:
    desks = Endpoints(Health(Cycles()), Metrics(), MigrateEndpoint(), OptimizeEndpoint(), Seat("live", make_policy))
    made = HttpServer(("127.0.0.1", 0), desks, gate, health_address=("127.0.0.1", 0))
    made.start()
    yield made
    made.stop()


def status(server: HttpServer, path: str, method: str = "GET", token: str = "", **headers: str) -> int:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    return urllib3.request(method, f"http://127.0.0.1:{server.port}{path}", headers=sent, timeout=10.0).status


@pytest.mark.parametrize("path", OPEN)
def test_health_and_metrics_are_open(path: str, server: HttpServer) -> None:
    assert status(server, path) in (200, 503)


@pytest.mark.parametrize("path", LOOKS)
def test_without_a_configured_token_nobody_sees_or_asks(path: str, server: HttpServer) -> None:
    assert status(server, path, token="anything") == 403
    assert status(server, path, "POST", token="anything") == 403


@pytest.mark.parametrize("path", LOOKS)
def test_the_token_of_the_file_opens_all(path: str, server: HttpServer, gate: Gate, tmp_path: Path) -> None:
    gate.token_file = tmp_path / "token"
    gate.token_file.write_text("let-me\n")
    assert status(server, path) == 401
    assert status(server, path, token="other") == 401
    assert status(server, path, token="let-me") in (404, 503)


@pytest.mark.parametrize(
    ("token", "method", "path", "expected"),
    [
        pytest.param("alice", "GET", "/planz", 503, id="a user with the rule: no plan yet"),
        pytest.param("alice", "POST", "/api/optimize", 503, id="a user with the rule for post: nobody leads"),
        pytest.param("alice", "GET", "/snapshotz", 403, id="a user without the rule for this path"),
        pytest.param("alice", "GET", "/api/optimize", 403, id="post is not get"),
        pytest.param("bob", "GET", "/planz", 403, id="a user who is known and has no rule"),
        pytest.param("mallory", "GET", "/planz", 401, id="a token that nobody knows"),
        pytest.param("", "GET", "/planz", 401, id="no token"),
    ],
)
def test_tokens_of_the_api_server(
    token: str, method: str, path: str, expected: int, server: HttpServer, gate: Gate
) -> None:
    gate.reviewer = Tokens()
    assert status(server, path, method, token) == expected


def test_both_ways_may_be_open(server: HttpServer, gate: Gate, tmp_path: Path) -> None:
    gate.token_file, gate.reviewer = tmp_path / "token", Tokens()
    gate.token_file.write_text("let-me\n")
    assert status(server, "/planz", token="let-me") == 503
    assert status(server, "/planz", token="alice") == 503
    gate.token_file.unlink()
    assert status(server, "/planz", token="alice") == 503, "a Secret that is gone bars nobody whom the API server knows"


def test_while_the_api_server_is_away_nobody_is_let_in(server: HttpServer, gate: Gate) -> None:
    gate.reviewer = NotConnectedYet()
    assert status(server, "/planz", token="alice") == 503
    assert status(server, "/healthz") == 200


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, 503, id="curl without a body"),
        pytest.param({"Content_Type": "application/json; charset=utf-8"}, 503, id="JSON"),
        pytest.param({"Content_Type": "application/x-www-form-urlencoded"}, 415, id="a form"),
        pytest.param({"Content_Type": "text/plain"}, 415, id="what a form may call text"),
        pytest.param({"Origin": "https://elsewhere.example"}, 403, id="a page from elsewhere"),
        pytest.param({"Origin": "null"}, 403, id="a sandboxed page"),
        pytest.param({"Origin": "http://[::1"}, 403, id="what is no address: it was answered with a traceback"),
    ],
)
def test_no_page_asks_with_the_token_of_its_visitor(
    headers: dict[str, str], expected: int, server: HttpServer, gate: Gate, tmp_path: Path
) -> None:
    gate.token_file = tmp_path / "token"
    gate.token_file.write_text("let-me\n")
    assert status(server, "/api/optimize", "POST", "let-me", **headers) == expected


def test_health_has_a_listener_of_its_own_that_tells_nothing_else(
    server: HttpServer, gate: Gate, tmp_path: Path
) -> None:
    gate.token_file = tmp_path / "token"
    gate.token_file.write_text("let-me\n")
    url = f"http://127.0.0.1:{server.health_port}"
    assert urllib3.request("GET", f"{url}/healthz", timeout=10.0).status == 200
    headers = {"Authorization": "Bearer let-me"}
    for path in ("/planz", "/metrics", "/api/optimize"):
        assert urllib3.request("GET", url + path, headers=headers, timeout=10.0).status == 404


@pytest.mark.parametrize(("path", "expected"), [("/metrics", 421), ("/", 421), ("/planz", 421), ("/healthz", 200)])
def test_a_name_of_somebody_else_is_refused_before_anything_else(
    path: str, expected: int, server: HttpServer, gate: Gate, tmp_path: Path
) -> None:
    gate.token_file = tmp_path / "token"
    gate.token_file.write_text("let-me\n")
    assert status(server, path, token="let-me", Host=f"evil.example:{server.port}") == expected


def test_wrong_tokens_are_counted_and_a_right_one_after_many_is_answered(
    server: HttpServer, gate: Gate, tmp_path: Path
) -> None:
    gate.token_file = tmp_path / "token"
    gate.token_file.write_text("let-me\n")
    for number in range(FREE + 2):
        assert status(server, "/planz", token=f"guess-{number}") == 401
    assert status(server, "/planz") == 401, "no token at all is no guess"
    told = urllib3.request("GET", f"http://127.0.0.1:{server.port}/metrics", timeout=10.0).data.decode()
    assert f"htas_http_wrong_tokens_total {FREE + 2}.0" in told
    assert status(server, "/planz", token="let-me") == 503
