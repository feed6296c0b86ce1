"""Notices over HTTP, to a server on loopback: what is sent, what is refused, and what never leaves."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from htas.adapters.webhook.forms import body_of
from htas.adapters.webhook.webhook import Secret, Webhook
from htas.model.notices import Form, Notice, Occasion
from htas.ports import PermanentError, TransientError

NOTICE = Notice(Occasion.BUDGET, "2026-11/80", "80 % is spent", "400 of 500 USD", 1_764_000_000.0, "main")


class Inbox(ThreadingHTTPServer):
    """Keeps what it is sent, and answers as it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.status = 204
        self.headers: dict[str, str] = {}
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hooks/s3cret"


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        inbox: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        inbox.got.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(inbox.status)
        for name, value in inbox.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with Inbox() as made:
        yield made
        made.shutdown()


def hook(url: str, **options: Any) -> Webhook:
    return Webhook("chat", Secret(value=url), options.pop("form", Form.JSON), is_insecure=True, **options)


def test_a_notice_is_posted_as_a_document(inbox: Inbox) -> None:
    hook(inbox.url, token=Secret(value="t0ken")).send(NOTICE)
    ((path, headers, body),) = inbox.got
    assert path == "/hooks/s3cret"
    assert headers["Authorization"] == "Bearer t0ken"
    assert body == {
        "version": 1,
        "id": "main/budget/2026-11/80/1764000000",
        "cluster": "main",
        "occasion": "budget",
        "key": "2026-11/80",
        "title": "80 % is spent",
        "text": "400 of 500 USD",
        "at": "2025-11-24T16:00:00Z",
        "times": 1,
    }


def test_in_slacks_form_what_others_wrote_is_text(inbox: Inbox) -> None:
    notice = msgspec.structs.replace(NOTICE, title="node <!channel> & co", text="<https://x|pay> *now*\nand", times=3)
    hook(inbox.url, form=Form.SLACK).send(notice)
    text = inbox.got[0][2]["text"]
    assert "`node &lt;!channel&gt; &amp; co` · `main` (3 times since the last notice)" in text
    assert "`&lt;https://x|pay&gt; *now* and`" in text


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("@channel @here @everyone @all <!channel> <@U012>", id="calls of everybody, and of one"),
        pytest.param("see https://there.example/pay or www.there.example", id="links"),
        pytest.param("` @channel `` https://there.example ```", id="what ends code"),
        pytest.param("a\n```\n@channel", id="lines"),
        pytest.param("a\x1b[2J\u202etxt.exe", id="what a terminal obeys, and what turns the line round"),
    ],
)
@pytest.mark.parametrize("field", ["title", "text", "cluster"])
def test_in_slacks_form_no_word_of_others_is_outside_of_code(field: str, word: str) -> None:
    """In code neither Slack nor Mattermost looks for names or links; Slack's three signs are obeyed there, too."""
    text = body_of(msgspec.structs.replace(NOTICE, **{field: word}), Form.SLACK)["text"]
    outside = text.split("`")[::2]
    assert len(outside) % 2 == 0, "code that is begun ends"
    assert not set("@<>/") & set("".join(outside))
    assert not set("<>\x1b\u202e") & set(text)


@pytest.mark.parametrize("form", Form)
def test_what_is_sent_is_bounded(form: Form) -> None:
    assert len(json.dumps(body_of(msgspec.structs.replace(NOTICE, text="x" * 10**6), form))) < 5_000


@pytest.mark.parametrize(
    ("status", "headers", "error", "wait_s"),
    [
        pytest.param(429, {"Retry-After": "30"}, TransientError, 30.0, id="too many, and when to come back"),
        pytest.param(503, {"Retry-After": "1000000"}, TransientError, 3600.0, id="an end of patience is bounded"),
        pytest.param(500, {}, TransientError, None, id="an error of theirs"),
        pytest.param(404, {}, PermanentError, None, id="gone for good"),
    ],
)
def test_refusals_tell_whether_to_try_again(
    inbox: Inbox, status: int, headers: dict, error: type, wait_s: float | None
) -> None:
    inbox.status, inbox.headers = status, headers
    with pytest.raises(error) as raised:
        hook(inbox.url).send(NOTICE)
    assert getattr(raised.value, "retry_after_s", None) == wait_s
    assert str(raised.value) == f"chat: answered {status}"


def test_no_redirect_is_followed(inbox: Inbox) -> None:
    inbox.status, inbox.headers = 302, {"Location": f"{inbox.url}/elsewhere"}
    with pytest.raises(PermanentError, match="redirect"):
        hook(inbox.url).send(NOTICE)
    assert len(inbox.got) == 1


DRIPS = [
    pytest.param("http", b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="go on, for ever"),
    pytest.param("http", b"HTTP/1.1 200 OK\r\nX: ", b"x", id="a header without an end"),
    pytest.param("https", b"\x16\x03\x03\x3f\xff", b"x", id="a handshake without an end"),
]


@pytest.mark.parametrize(("scheme", "first", "then"), DRIPS)
def test_a_receiver_that_never_comes_to_an_end_is_left(scheme: str, first: bytes, then: bytes) -> None:
    """Each byte began the timeouts anew, so that such a sender was busy for as long as the receiver liked."""
    left = threading.Event()

    def drip(listener: socket.socket) -> None:
        connected, _ = listener.accept()
        with connected, suppress(OSError):
            connected.sendall(first)
            while not left.wait(0.005):
                connected.sendall(then)
        left.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip, args=(listener,))
        dripping.start()
        receiver = hook(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/s3cret", whole_s=0.2)
        with pytest.raises(TransientError, match=r"^chat: has not answered within 0\.2 s$"):
            receiver.send(NOTICE)
        dripping.join(10.0)
        assert not dripping.is_alive(), "the connection is ended"


@pytest.mark.parametrize("kind", ["a pipe", "a device"])
def test_an_address_in_what_is_no_file_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = tmp_path / "pipe" if kind == "a pipe" else Path("/dev/zero")
    with pytest.raises(PermanentError, match="is no file; name one"):
        Webhook("chat", Secret(file=file), Form.JSON).send(NOTICE)


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254/latest",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::1]/",
        "http://[::a9fe:a9fe]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://0.0.0.0:PORT/",
    ],
)
def test_nothing_is_sent_to_an_address_of_the_link(address: str, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a name is looked up as: here every connection ends at our own inbox and says it is elsewhere."""
    port = str(inbox.server_address[1])
    told = address.partition("//")[2].rpartition("/")[0].partition("/")[0].strip("[]").replace(":PORT", "")

    class Connected:
        closed = False

        def getpeername(self) -> tuple[str, int]:
            return (told, 80)

        def close(self) -> None:
            self.closed = True

    connected = Connected()
    monkeypatch.setattr("urllib3.util.connection.create_connection", lambda *_, **__: connected)
    with pytest.raises(PermanentError, match="address of the link"):
        hook(address.replace("PORT", port)).send(NOTICE)
    assert connected.closed
    assert inbox.got == []


def test_an_address_in_the_clear_must_be_meant(inbox: Inbox) -> None:
    with pytest.raises(PermanentError, match="https://"):
        Webhook("chat", Secret(value=inbox.url), Form.JSON).send(NOTICE)
    assert inbox.got == []


def test_a_secret_is_read_anew_and_never_told(inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "url"
    file.write_text(f"{inbox.url}\n")
    Webhook("chat", Secret(file=file), Form.JSON, is_insecure=True).send(NOTICE)
    file.write_text("http://127.0.0.1:1/hooks/s3cret")  # nobody listens there
    with pytest.raises(TransientError) as raised:
        Webhook("chat", Secret(file=file), Form.JSON, is_insecure=True).send(NOTICE)
    assert "s3cret" not in str(raised.value)
    monkeypatch.delenv("HOOK", raising=False)
    with pytest.raises(PermanentError, match="HOOK is not set"):
        Webhook("chat", Secret(variable="HOOK"), Form.JSON).send(NOTICE)
    monkeypatch.setenv("HOOK", inbox.url)
    Webhook("chat", Secret(variable="HOOK"), Form.JSON, is_insecure=True).send(NOTICE)
    assert len(inbox.got) == 2


@pytest.mark.parametrize("token", ["SECRETUSER\nSECRETPW", "SECR\u2100T"], ids=["two lines", "not ASCII"])
def test_a_token_that_cannot_be_sent_is_not_told(token: str, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", token)
    with pytest.raises(PermanentError, match="one line of printable") as raised:
        Webhook("chat", Secret(value=inbox.url), Form.JSON, Secret(variable="TOKEN"), is_insecure=True).send(NOTICE)
    assert "SECR" not in str(raised.value)


@pytest.mark.parametrize("address", ["https://SECRET\u2100.example/x", "https://[SECRET", "https://SECRET..x/SECRET"])
def test_an_address_that_is_none_is_not_told(address: str) -> None:
    with pytest.raises((PermanentError, TransientError)) as raised:
        Webhook("chat", Secret(value=address), Form.JSON).send(NOTICE)
    assert "secret" not in str(raised.value).lower()
