"""The agent on a node: whom it obeys, what it pushes, and what it will not touch."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
import urllib3

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.migration.copying.agent import Agent, Clean, Push, Pushed
from htas.adapters.migration.copying.agent_server import LONGEST_BODY, SHORTEST_TOKEN, AgentServer
from htas.adapters.migration.copying.oci_registry import OciRegistry
from htas.adapters.migration.copying.registry_copies import RegistryCopies
from htas.adapters.migration.method import Delivered, StepFailedError
from htas.adapters.migration.methods.kubelet_checkpoint import KubeletCheckpoint, Kubelets
from htas.adapters.migration.objects import Objects
from htas.model.migrations import Failure, ImageRegistry
from htas.ports import NotFoundError, PermanentError
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request
from tests.unit.adapters.migration.pods import a_node, a_pod, a_record

ARCHIVE = "checkpoint-train-x_default-main-2026-11-21T10:00:00Z.tar"
CONTENT = b"pages" * 3000
TOKEN = "let-me-in-please"


class Registry(ThreadingHTTPServer):
    """An OCI registry in memory: as much of the distribution protocol as there is here, digests verified."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _RegistryHandler)
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.authorizations: set[str | None] = set()
        self.page = 100
        """So many tags are told at one time."""
        self.turns_back = False
        """The last part names the first as the next."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _RegistryHandler(BaseHTTPRequestHandler):
    server: Registry

    def _handle(self) -> None:
        self.server.authorizations.add(self.headers.get("Authorization"))
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        name = path.rpartition("/")[2]
        match self.command, path.removeprefix("/v2/htas/").partition("/")[0]:
            case "POST", "blobs":
                self._answer(202, location="/v2/htas/upload/1?state=x")
            case "PUT", "upload":
                digest = query.partition("digest=")[2]
                is_right = digest == f"sha256:{hashlib.sha256(body).hexdigest()}"
                if is_right:
                    self.server.blobs[digest] = body
                self._answer(201 if is_right else 400)
            case "PUT", "manifests":
                self.server.manifests[name] = body
                self._answer(201)
            case "GET", "tags":
                last = dict(parse_qsl(query)).get("last", "")
                rest = sorted(tag for tag in self.server.manifests if tag > last)
                part = rest[: self.server.page]
                link = f'</v2/htas/tags/list?last={part[-1]}>; rel="next"' if len(part) < len(rest) else ""
                if not link and self.server.turns_back:
                    link = '</v2/htas/tags/list>; rel="next"'
                self._answer(200, json.dumps({"tags": part}).encode(), link=link)
            case "GET", "manifests" if name in self.server.manifests:
                found = self.server.manifests[name]
                self._answer(200, found, digest=f"sha256:{hashlib.sha256(found).hexdigest()}")
            case "DELETE", "manifests":
                kept = {
                    tag: raw
                    for tag, raw in self.server.manifests.items()
                    if hashlib.sha256(raw).hexdigest() not in name
                }
                self.server.manifests = kept
                self._answer(202)
            case "DELETE" | "HEAD", "blobs" if name in self.server.blobs:
                if self.command == "DELETE":
                    del self.server.blobs[name]
                self._answer(200)
            case _:
                self._answer(404)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 # the library's own names

    def _answer(self, code: int, body: bytes = b"", location: str = "", digest: str = "", link: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        if link:
            self.send_header("Link", link)
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    (directory / ARCHIVE).write_bytes(CONTENT)
    return directory


@pytest.fixture
def agent(registry: Registry, archives: Path) -> Agent:
    return Agent(OciRegistry(registry.url, "htas"), archives)


@pytest.fixture
def copies(registry: Registry, agent: Agent, tmp_path: Path) -> Iterator[RegistryCopies]:
    """The transfer, and the agent as it listens."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with AgentServer(agent, tmp_path / "token", "127.0.0.1", 0) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        setting = ImageRegistry(
            registry.url,
            "registry.example/htas",
            agent_port=server.server_address[1],
            agent_token_file=str(tmp_path / "token"),
        )
        yield RegistryCopies(setting, lambda node: "127.0.0.1")
        server.shutdown()


def test_an_archive_is_pushed_as_an_image_of_one_layer(
    copies: RegistryCopies, registry: Registry, archives: Path
) -> None:
    sent = copies.deliver(a_record(), "main", str(archives / ARCHIVE), 20.0)
    name = copies.image_of(a_record(), "main")
    assert sent == Delivered((name,), (hashlib.sha256(CONTENT).hexdigest(),), len(CONTENT))
    ((tag, raw),) = registry.manifests.items()
    assert name == f"registry.example/htas:{tag}"
    manifest: Any = json.loads(raw)
    assert registry.blobs[manifest["layers"][0]["digest"]] == CONTENT
    assert manifest["annotations"] == {"org.criu.checkpoint.container.name": "main"}


def test_the_image_is_for_the_architecture_of_the_target(
    copies: RegistryCopies, registry: Registry, archives: Path
) -> None:
    """Another's would be refused by the runtime that pulls it."""
    nodes = {"a": a_node("a"), "b": a_node("b")}
    nodes["b"]["status"]["nodeInfo"]["architecture"] = "arm64"

    def answer(request: Request) -> Answer:
        return Answer(body=nodes[request.path.rpartition("/")[2]])

    with FakeApiServer(answer) as server:
        objects, access = Objects(ApiServer(server.access(), RateLimit(1e9, 10**9))), server.access()
        method = KubeletCheckpoint(objects, Kubelets(access, 10_250, None, None), copies)
        copies.archives = str(archives)
        method.deliver(a_record(containers=("main",), archive=str(archives / ARCHIVE)), a_pod(), 20.0)
    ((_, raw),) = registry.manifests.items()
    config = json.loads(registry.blobs[json.loads(raw)["config"]["digest"]])
    assert (config["architecture"], config["os"]) == ("arm64", "linux")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize(
    ("host", "address"),
    [
        pytest.param("::1", "::1", id="IPv6"),
        pytest.param("127.0.0.1", "127.0.0.1", id="IPv4"),
        pytest.param("", "::1", id="every address, asked at one of IPv6"),
        pytest.param("", "127.0.0.1", id="every address, asked at one of IPv4"),
    ],
)
def test_agents_are_reached_at_addresses_of_both_kinds(
    host: str, address: str, agent: Agent, registry: Registry, archives: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    with AgentServer(agent, tmp_path / "token", host, 0) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        port = server.server_address[1]
        setting = ImageRegistry(registry.url, "r/htas", agent_port=port, agent_token_file=str(tmp_path / "token"))
        RegistryCopies(setting, lambda node: address).deliver(a_record(), "main", str(archives / ARCHIVE), 20.0)
        server.shutdown()
    assert len(registry.manifests) == 1


def test_what_is_forgotten_is_gone_from_the_registry_and_no_more(
    copies: RegistryCopies, registry: Registry, archives: Path
) -> None:
    for move, target in (("m1", "b"), ("m2", "b"), ("m3", "c")):
        (archives / ARCHIVE).write_text(f"the memory of {move}")
        copies.deliver(a_record(id=move, target=target), "main", str(archives / ARCHIVE), 20.0)
    copies.sweep("b", ["m2"])
    assert sorted(tag.split("-")[1] for tag in registry.manifests) == ["m2", "m3"]
    copies.forget("b", "m2")
    copies.forget("b", "m2")
    assert [tag.split("-")[1] for tag in registry.manifests] == ["m3"]


def test_a_registry_that_tells_its_tags_by_parts_is_asked_for_all(
    copies: RegistryCopies, registry: Registry, archives: Path
) -> None:
    registry.page = 2
    for move in ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "dddddddddddd", "eeeeeeeeeeee"):
        (archives / ARCHIVE).write_text(f"the memory of {move}")
        copies.deliver(a_record(id=move), "main", str(archives / ARCHIVE), 20.0)
    copies.sweep("b", ["cccccccccccc"])
    assert [tag.split("-")[1] for tag in registry.manifests] == ["cccccccccccc"]


def test_a_registry_whose_parts_go_round_is_not_asked_without_end(registry: Registry) -> None:
    registry.page, registry.turns_back = 1, True
    registry.manifests |= {"one": b"", "two": b""}
    assert set(OciRegistry(registry.url, "htas").tags()) == {"one", "two"}


def test_archives_of_the_pod_are_removed_and_no_others(copies: RegistryCopies, archives: Path) -> None:
    others = (
        "checkpoint-train-x_default-b-main-2026-11-21T10:00:00Z.tar",
        "checkpoint-other_default-main-2026-11-21T10:00:00Z.tar",
        "checkpoint-train-x_default-notes.txt",
    )
    for name in others:
        (archives / name).write_text("kept")
    old = archives / ARCHIVE.replace("10:00", "09:00")
    old.write_text("from before the move")
    os.utime(old, (500.0, 500.0))
    copies.clean_source(a_record(started_at=time.time() - 60.0))
    assert {path.name for path in archives.iterdir()} == {*others, old.name}


def test_archives_are_as_old_as_the_nodes_own_clock_says(agent: Agent, archives: Path) -> None:
    """Three seconds behind HTAS's: what was written after the move began seems to be from before."""
    alike = archives / ARCHIVE.replace("_default-", "_default-b-")
    for path in (alike, archives / ARCHIVE):
        path.write_text("memory")
        os.utime(path, (time.time() - 3.0, time.time() - 3.0))
    agent.clean(Clean("default", "train-x", ["main"], age_s=5.0))
    assert list(archives.iterdir()) == [alike], "the namespace default-b keeps its own"


def test_an_archive_that_is_named_is_removed_however_old_it_is(agent: Agent, archives: Path) -> None:
    os.utime(archives / ARCHIVE, (500.0, 500.0))
    agent.clean(Clean("default", "train-x", ["main"], 1.0, [str(archives / ARCHIVE)]))
    assert not list(archives.iterdir())


def test_who_does_not_know_the_token_is_not_obeyed(
    copies: RegistryCopies, registry: Registry, archives: Path, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{copies.agent_port}/push"
    order = msgspec.json.encode(Push(str(archives / ARCHIVE), "main", "t"))
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        assert urllib3.request("POST", url, body=order, headers=headers, retries=False).status == 401
    assert not registry.manifests


UNFIT = [
    pytest.param(None, "No such file", id="missing"),
    pytest.param(b"", "is empty", id="empty"),
    pytest.param(b"\n", "is empty", id="a blank line"),
    pytest.param(TOKEN[:15].encode(), "less than 16 characters", id="short"),
    pytest.param(TOKEN.encode() * 2 + b"\xff", "no text", id="no text"),
    pytest.param(f"{TOKEN}\n{TOKEN}".encode(), "several lines", id="two lines"),
]


@pytest.mark.parametrize(("content", "words"), UNFIT)
def test_it_does_not_begin_without_a_token_worth_the_name(
    content: bytes | None, words: str, agent: Agent, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(PermanentError, match=words):
        AgentServer(agent, tmp_path / "token", "127.0.0.1", 0)


@pytest.mark.parametrize(("content", "words"), UNFIT)
def test_a_token_that_is_spoiled_later_opens_to_nobody(
    content: bytes | None, words: str, copies: RegistryCopies, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{copies.agent_port}"
    assert urllib3.request("GET", f"{url}/readyz", retries=False).status == 200
    (tmp_path / "token").unlink()
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    for shown in ("Bearer ", f"Bearer {TOKEN}", ""):
        answer = urllib3.request("POST", f"{url}/push", body=b"{}", headers={"Authorization": shown}, retries=False)
        assert (answer.status, words in answer.data.decode()) == (500, True)
        assert TOKEN.encode()[:15] not in answer.data
    assert urllib3.request("GET", f"{url}/readyz", retries=False).status == 503
    assert urllib3.request("GET", f"{url}/healthz", retries=False).status == 200, "a new start would mend nothing"


@pytest.mark.parametrize(
    ("path", "length", "code"),
    [
        pytest.param("/push", "many", 400, id="no number"),
        pytest.param("/push", "-1", 400, id="below nothing"),
        pytest.param("/push", "²", 400, id="a digit of another kind"),
        pytest.param("/push", "", 400, id="empty"),
        pytest.param("/push", str(LONGEST_BODY + 1), 413, id="too much"),
        pytest.param("/pull", "2", 404, id="another order"),
        pytest.param("/push", "2", 422, id="an order that says nothing"),
    ],
)
def test_an_order_has_a_length_that_is_a_number(path: str, length: str, code: int, copies: RegistryCopies) -> None:
    wanted = f"Content-Length: {length}\r\nAuthorization: Bearer {TOKEN}"
    assert answered(copies, f"POST {path} HTTP/1.1\r\n{wanted}\r\n\r\n{{}}") == code


def test_nothing_of_a_body_is_waited_for_where_the_token_is_wrong(copies: RegistryCopies) -> None:
    request = "POST /push HTTP/1.1\r\nContent-Length: 60000\r\nAuthorization: Bearer wrong\r\n\r\n"
    assert answered(copies, request) == 401


def answered(copies: RegistryCopies, request: str) -> int:
    """The code of the answer to bytes as they are, the connection being left open."""
    with socket.create_connection(("127.0.0.1", copies.agent_port), timeout=5.0) as connection:
        connection.sendall(request.encode())
        return int(connection.recv(4096).split()[1])


def test_who_says_nothing_is_hung_up_on(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("x" * SHORTEST_TOKEN)
    with AgentServer(agent, tmp_path / "token", "127.0.0.1", 0) as server:
        monkeypatch.setattr(server.RequestHandlerClass, "timeout", 0.05)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=5.0) as connection:
            connection.sendall(b"POST /push HTTP/1.1\r\n")
            assert connection.recv(1) == b""
        server.shutdown()


@pytest.mark.parametrize("path", ["/etc/shadow", "{}/../{}", "{}/notes.tar", "relative.tar"])
def test_nothing_but_an_archive_is_pushed(path: str, agent: Agent, archives: Path) -> None:
    with pytest.raises(PermanentError, match="no checkpoint archive"):
        agent.push(Push(path.format(archives, ARCHIVE), "main", "t"))


@pytest.mark.parametrize(
    ("tag", "container"),
    [
        pytest.param("../../other/manifests/latest", "main", id="another repository"),
        pytest.param("t?x=y", "main", id="a query"),
        pytest.param("", "main", id="no tag"),
        pytest.param("-t", "main", id="a tag begins with a letter, a digit or _"),
        pytest.param("t" * 129, "main", id="a tag has 128 characters"),
        pytest.param("t\n", "main", id="a line's end"),
        pytest.param("t", "Main", id="a container's name is in small letters"),
        pytest.param("t", "a.b", id="and has no dots"),
        pytest.param("t", "c" * 64, id="and 63 characters"),
        pytest.param("t", "", id="but some"),
    ],
)
def test_a_push_has_a_tag_and_a_container_as_the_specifications_have_them(
    tag: str, container: str, agent: Agent, registry: Registry, archives: Path
) -> None:
    with pytest.raises(PermanentError, match="is no tag, or"):
        agent.push(Push(str(archives / ARCHIVE), container, tag))
    assert not registry.authorizations, "nothing was asked of it"


def test_a_link_is_not_followed(agent: Agent, archives: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    link = archives / ARCHIVE.replace("10:00", "11:00")
    link.symlink_to(tmp_path / "secret")
    with pytest.raises(NotFoundError):
        agent.push(Push(str(link), "main", "t"))


def test_an_archive_that_is_gone_fails_the_attempt(copies: RegistryCopies, archives: Path) -> None:
    (archives / ARCHIVE).unlink()
    with pytest.raises(StepFailedError, match="No such file") as failed:
        copies.deliver(a_record(), "main", str(archives / ARCHIVE), 20.0)
    assert failed.value.reason is Failure.TRANSFER_FAILED


def test_credentials_go_to_the_registry(registry: Registry, archives: Path, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("htas:secret\n")
    there = OciRegistry(registry.url, "htas", str(tmp_path / "credentials"))
    pushed = Agent(there, archives).push(Push(str(archives / ARCHIVE), "main", "t"))
    assert pushed == Pushed(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    assert registry.authorizations == {"Basic aHRhczpzZWNyZXQ="}


def test_cleaning_an_empty_directory_is_done(agent: Agent, archives: Path) -> None:
    agent.clean(Clean("default", "nobody", ["main"], 1e9))
    assert (archives / ARCHIVE).exists()
