"""Clients that dawdle, crowds of them, and certificates that are renewed."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPResponse
from ipaddress import ip_address
from pathlib import Path
from threading import Event

import pytest
import urllib3
from cryptography import x509
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from htas.daemon.http.server import Certificate, Limits, Listener, _Loop
from htas.ports import PermanentError
from htas.web.sent import RequestRefusedError, sent_body
from tests.waiting import until
from tools.testenv.certificates import write_pem

LARGE = b"x" * 64_000_000


def refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefusedError)
    return error.response()


def application(asked: Event) -> Starlette:
    def small(_: Request) -> Response:
        return PlainTextResponse("ok")

    def large(_: Request) -> Response:
        asked.set()
        return Response(LARGE)

    async def body(request: Request) -> Response:
        asked.set()
        return PlainTextResponse(str(len(await sent_body(request, 100))))

    async def never(_: Request) -> Response:
        asked.set()
        await asyncio.sleep(600.0)
        return PlainTextResponse("late")

    def works(_: Request) -> Response:
        asked.set()
        time.sleep(4.0)
        return PlainTextResponse("late")

    routes = [
        Route("/", small),
        Route("/large", large),
        Route("/body", body, methods=["POST"]),
        Route("/never", never),
        Route("/works", works),
    ]
    return Starlette(routes=routes, exception_handlers={RequestRefusedError: refused})


@pytest.fixture
def listeners() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listening(
    listeners: ExitStack, limits: Limits, certificate: Certificate | None = None, asked: Event | None = None
) -> Listener:
    """`asked` is set when an answer that takes its time is asked for."""
    made = Listener(("127.0.0.1", 0), application(asked or Event()), "test", certificate, limits)
    made.start()
    listeners.callback(made.stop)
    return made


def connected(listeners: ExitStack, listener: Listener, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", listener.port), timeout=10.0)
    listeners.callback(connection.close)
    connection.sendall(sent)
    return connection


def is_ended(connection: socket.socket) -> bool:
    """Whether the other side ends it before our patience does: reads until it has."""
    with suppress(ConnectionError):
        while connection.recv(65536):
            pass
    return True


GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HALF_A_BODY = b"POST /body HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing at all"),
        pytest.param(GET[:-2], id="half a head"),
        pytest.param(GET + GET[:-2], id="half a head after a whole request"),
    ],
)
def test_half_a_request_is_waited_for_so_long_and_no_longer(sent: bytes, listeners: ExitStack) -> None:
    listener = listening(listeners, Limits(request_s=0.2))
    assert is_ended(connected(listeners, listener, sent))


def test_an_answer_that_nobody_takes_is_given_up(listeners: ExitStack) -> None:
    listener = listening(listeners, Limits(answer_s=0.2))
    connection = connected(listeners, listener, GET.replace(b"/ ", b"/large "))
    connection.recv(1)
    until(lambda: listener.connections == 0)
    read = 0
    with suppress(ConnectionError):
        while piece := connection.recv(1_000_000):
            read += len(piece)
    assert read < len(LARGE), "what the kernel held, and no more"


def test_a_body_that_goes_on_after_the_answer_is_not_read_to_its_end(listeners: ExitStack) -> None:
    listener = listening(listeners, Limits())
    size = 100_000_000
    connection = connected(listeners, listener, GET.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % size))
    with pytest.raises(ConnectionError):
        for _ in range(size // 65_536):
            connection.sendall(b"x" * 65_536)


def test_in_a_crowd_of_dawdlers_the_oldest_goes_and_a_probe_is_answered(listeners: ExitStack) -> None:
    listener = listening(listeners, Limits(connections=8))
    crowd = [connected(listeners, listener, GET[:-2]) for _ in range(20)]
    assert all(is_ended(each) for each in crowd[:12])
    assert urllib3.request("GET", f"http://127.0.0.1:{listener.port}/", timeout=10.0).data == b"ok"


def test_among_clients_that_take_no_answer_the_oldest_goes_and_a_probe_is_answered(listeners: ExitStack) -> None:
    listener = listening(listeners, Limits(connections=8))
    for _ in range(20):
        connected(listeners, listener, GET.replace(b"/ ", b"/large "))
    assert urllib3.request("GET", f"http://127.0.0.1:{listener.port}/", timeout=10.0).data == b"ok"


def test_no_request_sent_ahead_gives_more_time_to_take_an_answer(listeners: ExitStack) -> None:
    listener = listening(listeners, Limits(answer_s=0.3))
    connected(listeners, listener, GET.replace(b"/ ", b"/large ") * 40)
    until(lambda: listener.connections == 0, 3.0)


def test_requests_one_after_the_other_go_over_one_connection(listeners: ExitStack) -> None:
    listener = listening(listeners, Limits())
    connection = connected(listeners, listener)
    for _ in range(3):
        connection.sendall(GET)
        answer = HTTPResponse(connection)
        answer.begin()
        assert answer.read() == b"ok"


def test_requests_sent_at_once_are_answered_in_turn(listeners: ExitStack) -> None:
    connection = connected(
        listeners, listening(listeners, Limits()), GET + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    )
    said = b""
    while piece := connection.recv(65536):
        said += piece
    assert said.count(b"200 OK") == 2


@pytest.mark.parametrize(
    ("sent", "leave_s"),
    [
        pytest.param(HALF_A_BODY, 0.1, id="half a body"),
        pytest.param(GET.replace(b"/ ", b"/large "), 0.1, id="an answer that nobody takes"),
        pytest.param(GET.replace(b"/ ", b"/never "), 0.1, id="an answer that takes for ever"),
        pytest.param(GET.replace(b"/ ", b"/works "), 0.1, id="one that a thread works out"),
    ],
)
def test_at_the_end_nobody_is_waited_for_and_nothing_is_logged_as_an_error(
    sent: bytes, leave_s: float, listeners: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Event()
    listener = listening(listeners, Limits(leave_s=leave_s), asked=asked)
    connection = connected(listeners, listener, sent)
    assert asked.wait(10.0)
    listener.stop()
    assert is_ended(connection)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR" or record.exc_info] == []


def test_what_is_worked_out_for_somebody_who_has_gone_is_no_error_at_the_end(
    listeners: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Event()
    listener = listening(listeners, Limits(leave_s=0.1), asked=asked)
    connected(listeners, listener, GET.replace(b"/ ", b"/works ")).close()
    assert asked.wait(10.0)
    until(lambda: listener.connections == 0)
    listener.stop()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def written(folder: Path, name: str = "htas") -> tuple[Path, Path]:
    return write_pem(folder, "tls", name, x509.IPAddress(ip_address("127.0.0.1")))


def test_a_renewed_certificate_is_shown_without_a_new_start(listeners: ExitStack, tmp_path: Path) -> None:
    cert_file, key_file = written(tmp_path)
    listener = listening(listeners, Limits(), Certificate(cert_file, key_file))

    def ask() -> bytes:
        with urllib3.PoolManager(ca_certs=str(cert_file)) as pool:
            return pool.request("GET", f"https://127.0.0.1:{listener.port}/", timeout=10.0, retries=False).data

    assert ask() == b"ok"
    cert_file.unlink()
    written(tmp_path, "renewed")
    assert ask() == b"ok", "it is trusted by the new file alone"


def test_a_certificate_that_is_broken_later_leaves_the_former(listeners: ExitStack, tmp_path: Path) -> None:
    cert_file, key_file = written(tmp_path)
    trusted = ssl.create_default_context(cadata=cert_file.read_text())
    listener = listening(listeners, Limits(), Certificate(cert_file, key_file))
    cert_file.write_text("half")
    plain = socket.create_connection(("127.0.0.1", listener.port), timeout=10.0)
    with trusted.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
        secure.sendall(GET)
        assert secure.recv(12) == b"HTTP/1.1 200"


def test_a_handshake_that_is_never_ended_is_not_waited_for(listeners: ExitStack, tmp_path: Path) -> None:
    listener = listening(listeners, Limits(request_s=0.2), Certificate(*written(tmp_path)))
    assert is_ended(connected(listeners, listener, b"\x16\x03\x01"))


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match=r"http\.tls: .*tls\.crt.*name a certificate and its key"):
        Certificate(tmp_path / "tls.crt", tmp_path / "tls.key")


def test_a_shortage_of_descriptors_is_logged_once_with_its_remedy() -> None:
    loop = _Loop(10.0)
    try:
        with capture_logs() as logged:
            for _ in range(60):
                error = OSError(errno.EMFILE, "Too many open files")
                loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": error})
    finally:
        loop.close()
    assert [(line["error"], "ulimit -n" in line["remedy"]) for line in logged] == [("Too many open files", True)]
