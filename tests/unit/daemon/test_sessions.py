"""A browser's session: begun with a token, shown as a cookie, over when it is old, ended or the token is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3
from cryptography import x509

from htas.daemon.http.app import Endpoints, HttpServer
from htas.daemon.http.authorization import Gate
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.http.server import Certificate
from htas.daemon.http.sessions import IDLE_S, LASTS_S, MOST, Sessions, cookie_name
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.model.policy import Cycles
from htas.web.seat import Seat
from tests.builders import make_policy
from tools.testenv.certificates import write_pem

CLOSE = {"Connection": "close"}
"""A listener that ends waits for connections that idle."""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("steps", "is_known"),
    [
        pytest.param([IDLE_S - 1], True, id="a while later"),
        pytest.param([IDLE_S + 1], False, id="nobody asked for too long"),
        pytest.param([IDLE_S - 1] * 5, True, id="somebody asks now and then"),
        pytest.param([IDLE_S - 1] * int(LASTS_S / (IDLE_S - 1) + 1), False, id="a working day is over"),
    ],
)
def test_how_long_it_lasts(steps: list[float], is_known: bool) -> None:
    clock = Clock()
    sessions = Sessions(clock)
    secret, found = sessions.begin("Bearer x"), ""
    for step in steps:
        clock.now += step
        found = sessions.authorization(secret)
    assert bool(found) is is_known


def test_there_are_not_too_many() -> None:
    sessions = Sessions()
    first = sessions.begin("Bearer x")
    for _ in range(MOST):
        sessions.begin("Bearer y")
    assert sessions.authorization(first) == ""


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("let-me\n")
    return path


@contextmanager
def serving(token_file: Path, certificate: Certificate | None = None) -> Iterator[int]:
    desks = Endpoints(Health(Cycles()), Metrics(), MigrateEndpoint(), OptimizeEndpoint(), Seat("live", make_policy))
    server = HttpServer(("127.0.0.1", 0), desks, Gate(token_file), certificate=certificate)
    server.start()
    yield server.port
    server.stop()


@pytest.fixture
def url(token_file: Path) -> Iterator[str]:
    with serving(token_file) as port:
        yield f"http://127.0.0.1:{port}"


def log_in(url: str, token: str = "let-me", **headers: str) -> urllib3.BaseHTTPResponse:
    return urllib3.request(
        "POST", f"{url}/session", json={"token": token}, headers=headers | CLOSE, timeout=10.0, retries=False
    )


def cookie_of(answer: urllib3.BaseHTTPResponse) -> dict[str, str]:
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


def status(url: str, path: str = "/api/v1/cluster", method: str = "GET", **headers: str) -> int:
    return urllib3.request(method, f"{url}{path}", headers=headers | CLOSE, timeout=10.0, retries=False).status


def test_over_tls_the_cookie_is_never_sent_in_the_clear(token_file: Path, tmp_path: Path) -> None:
    cert_file, key_file = write_pem(tmp_path, "tls", "htas", x509.IPAddress(ip_address("127.0.0.1")))
    with (
        serving(token_file, Certificate(cert_file, key_file)) as port,
        urllib3.PoolManager(ca_certs=str(cert_file)) as pool,
    ):
        answer = pool.request(
            "POST", f"https://127.0.0.1:{port}/session", json={"token": "let-me"}, headers=CLOSE, timeout=10.0
        )
    assert "secure" in {part.strip().lower() for part in answer.headers["Set-Cookie"].split(";")[1:]}


def test_nor_is_it_where_a_proxy_ends_tls(url: str) -> None:
    headers = {"X-Forwarded-Proto": "https", **CLOSE}
    answer = urllib3.request("POST", f"{url}/session", json={"token": "let-me"}, headers=headers, timeout=10.0)
    assert "secure" in {part.strip().lower() for part in answer.headers["Set-Cookie"].split(";")[1:]}


def test_the_cookie_is_for_this_site_and_for_no_script(url: str) -> None:
    answer = log_in(url)
    assert answer.status == 204
    attributes = {part.strip().lower() for part in answer.headers["Set-Cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert "secure" not in attributes, "in the clear, as through a port-forward, it would never be sent"
    assert answer.headers["Set-Cookie"].startswith(f"{cookie_name(urlsplit(url).netloc)}=")
    assert status(url, **cookie_of(answer)) == 503  # let in; there is no cycle yet


@pytest.mark.parametrize(
    ("token", "headers", "expected"),
    [
        pytest.param("guess", {}, 401, id="another token"),
        pytest.param("", {}, 401, id="none"),
        pytest.param("let-me", {"Origin": "https://elsewhere.example"}, 403, id="from a page elsewhere"),
    ],
)
def test_who_is_not_let_in(token: str, headers: dict[str, str], expected: int, url: str) -> None:
    answer = log_in(url, token, **headers)
    assert (answer.status, "Set-Cookie" in answer.headers) == (expected, False)


def test_a_form_is_not_taken(url: str) -> None:
    sent = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = urllib3.request(
        "POST", f"{url}/session", body="token=let-me", headers=sent | CLOSE, timeout=10.0, retries=False
    )
    assert answer.status == 415


def test_it_ends_with_a_log_out_and_with_its_token(url: str, token_file: Path) -> None:
    first, second = cookie_of(log_in(url)), cookie_of(log_in(url))
    assert status(url, "/session", "DELETE", **first) == 204
    assert (status(url, **first), status(url, **second)) == (401, 503)
    token_file.write_text("another\n")
    assert status(url, **second) == 401


def test_a_session_whose_token_was_replaced_is_no_guess(url: str, token_file: Path) -> None:
    """Pages that are left open ask every few seconds: they would slow people behind the same proxy."""
    cookie = cookie_of(log_in(url))
    token_file.write_text("another\n")
    assert status(url, **cookie) == 401
    metrics = urllib3.request("GET", f"{url}/metrics", headers=CLOSE, timeout=10.0).data.decode()
    assert "htas_http_wrong_tokens_total 0.0" in metrics


def test_logging_in_again_ends_the_session_before(url: str) -> None:
    first = cookie_of(log_in(url))
    second = cookie_of(log_in(url, **first))
    assert (status(url, **first), status(url, **second)) == (401, 503)


def test_a_cookie_that_was_made_up_opens_nothing(url: str) -> None:
    assert status(url, Cookie=f"{cookie_name(urlsplit(url).netloc)}=guess") == 401


def test_what_a_page_of_another_origin_sends_with_the_cookie_is_refused(url: str) -> None:
    shown = cookie_of(log_in(url))
    assert status(url, "/api/optimize", "POST", Origin="https://elsewhere.example", **shown) == 403


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        pytest.param("same-origin", 503, id="our page"),
        pytest.param("none", 503, id="an address typed in"),
        pytest.param("same-site", 403, id="a page of another port of the host, whose requests bear the cookie"),
        pytest.param("cross-site", 403, id="a page from elsewhere"),
    ],
)
def test_the_cookie_is_taken_from_our_pages_alone(site: str, expected: int, url: str) -> None:
    shown = cookie_of(log_in(url))
    assert status(url, **{"Sec-Fetch-Site": site}, **shown) == expected


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:8080", "htas-session-8080"),
        ("[::1]:9090", "htas-session-9090"),
        ("htas.example", "htas-session"),
        ("[::1", "htas-session"),
        ("x:99999", "htas-session"),
    ],
)
def test_daemons_on_two_ports_have_a_cookie_each(host: str, name: str) -> None:
    assert cookie_name(host) == name


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/cluster", "/api/v1/none", "/none", "/planz"])
@pytest.mark.parametrize("is_known", [True, False], ids=["with a session", "without"])
def test_no_answer_may_be_framed_or_taken_for_something_else(path: str, is_known: bool, url: str) -> None:
    headers = CLOSE | (cookie_of(log_in(url)) if is_known else {})
    answer = urllib3.request("GET", f"{url}{path}", headers=headers, timeout=10.0, retries=False)
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_pages_are_open_and_allow_nothing_from_elsewhere(url: str) -> None:
    for path in ("/", "/assets/app.js", "/assets/style.css"):
        answer = urllib3.request("GET", f"{url}{path}", headers=CLOSE, timeout=10.0, retries=False)
        assert answer.status == 200
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
    assert status(url, "/assets/../seat.py") in (401, 404)
    home = urllib3.request("GET", f"{url}/", headers=CLOSE, timeout=10.0, retries=False).data.decode()
    assert "<script>" not in home and "http://" not in home and "https://" not in home
