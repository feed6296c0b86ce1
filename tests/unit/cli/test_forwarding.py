"""A daemon asked by its release's name: whom kubectl is told to forward to, and what is said where it cannot.

kubectl is a program that answers from files as an API server would; the real one is in tests/real/test_image.py.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from htas.cli.forwarding import Forwarded, forwarded
from htas.cli.main import app
from htas.documents.history import Cycles

Json = dict[str, Any]
WORKLOADS = "deployments,statefulsets"
KUBECTL = """#!{python}
import json, os, sys, time
from pathlib import Path

here, words = Path(__file__).parent, sys.argv[1:]
with (here / "asked").open("a") as asked:
    asked.write(" ".join(words) + chr(10))
if words[0] == "port-forward":
    (here / "pid").write_text(str(os.getpid()))
    said = (here / "forwarding").read_text()
    print("I1127 request.go:752] Waited for 1.2s due to client-side throttling", file=sys.stderr)
    print("a line of a plugin's", flush=True)
    if not said.startswith("Forwarding"):
        print(said, file=sys.stderr)
        sys.exit(1)
    print(said, flush=True)
    for _ in range(20_000):  # more than a pipe holds: whoever does not read has it stand still
        print("Handling connection for 8080", flush=True)
    (here / "drained").touch()
    time.sleep(60)
answer = here / (words[1] + ".json")
if not answer.exists():
    print("Error from server (Forbidden): " + words[1] + " is forbidden", file=sys.stderr)
    sys.exit(1)
print(answer.read_text())
"""


class Kubectl:
    """The program and its files; nothing is in the cluster at first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "kubectl"
        program.write_text(KUBECTL.format(python=sys.executable))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.holds("pods")
        self.holds("leases")
        self.holds(WORKLOADS, GRAFANA, workload())

    def holds(self, kind: str, *items: Json) -> None:
        (self.folder / f"{kind}.json").write_text(json.dumps({"items": items}))

    def keeps(self, token: str) -> None:
        data = {"data": {"token": b64encode(token.encode()).decode()}}
        (self.folder / "secret.json").write_text(json.dumps(data))

    def forwards_to(self, port: int) -> None:
        (self.folder / "forwarding").write_text(f"Forwarding from 127.0.0.1:{port} -> 8080")

    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return Kubectl(tmp_path)


def pod(name: str, *, is_ready: bool = True) -> Json:
    status = {"conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]}
    return {"metadata": {"name": name}, "status": status}


def workload(name: str = "htas", *, secret: str = "htas-token", is_tls: bool = False) -> Json:
    """What the chart makes; a sidecar with a port of that name comes first."""
    mounts = [{"name": "config", "mountPath": "/etc/htas"}]
    volumes: list[Json] = [{"name": "config", "configMap": {"name": "htas"}}]
    if secret:
        mounts.append({"name": "moves-token", "mountPath": "/etc/htas-moves/token"})
        volumes.append({"name": "moves-token", "secret": {"secretName": secret}})
    if is_tls:
        mounts.append({"name": "http-tls", "mountPath": "/etc/htas-http"})
    ports = [{"name": "http", "containerPort": 8080}, {"name": "health", "containerPort": 8081}]
    sidecar = {"name": "proxy", "ports": [{"name": "http", "containerPort": 15000}]}
    spec = {"containers": [sidecar, {"name": "htas", "ports": ports, "volumeMounts": mounts}], "volumes": volumes}
    selector = {"matchLabels": {"app.kubernetes.io/name": "htas", "app.kubernetes.io/instance": "htas"}}
    return {"metadata": {"name": name}, "spec": {"selector": selector, "template": {"spec": spec}}}


GRAFANA = {
    "metadata": {"name": "grafana"},
    "spec": {
        "selector": {"matchLabels": {"app.kubernetes.io/name": "grafana"}},
        "template": {"spec": {"containers": [{"name": "grafana", "ports": [{"name": "http", "containerPort": 3000}]}]}},
    },
}
"""Of the same release, where the chart is one of several."""


def lease(holder: str, name: str = "htas-prod") -> Json:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder}}


class Remembering(ThreadingHTTPServer):
    """A daemon that answers one document, and remembers what it was shown."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.shown: list[str] = []
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class _Answer(BaseHTTPRequestHandler):
    server: Remembering

    def do_GET(self) -> None:
        self.server.shown.append(self.headers.get("Authorization", ""))
        body = msgspec.json.encode(Cycles([]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing is written."""


@pytest.fixture
def answering() -> Iterator[Remembering]:
    server = Remembering()
    yield server
    server.shutdown()
    server.server_close()


def test_a_command_reaches_the_one_that_leads_with_the_charts_token_and_leaves_nothing_running(
    kubectl: Kubectl, answering: Remembering
) -> None:
    kubectl.holds("pods", pod("htas-5d4f-aaaaa"), pod("htas-5d4f-bbbbb"))
    kubectl.holds("leases", lease("htas-5d4f-aaaaa_1", "somebodys"), lease("htas-5d4f-bbbbb_0d9c"))
    kubectl.keeps("s3cret")
    kubectl.forwards_to(answering.server_address[1])
    command = [sys.executable, "-m", "htas", "history", "--cycles", "--server", "htas-system/htas", "-o", "jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert answering.shown == ["Bearer s3cret"]
    assert "app.kubernetes.io/instance=htas,app.kubernetes.io/name=htas" in kubectl.asked()[2]
    assert kubectl.asked()[-1] == "port-forward -n htas-system pod/htas-5d4f-bbbbb :8080 --address=127.0.0.1"
    with pytest.raises(ProcessLookupError):
        os.kill(int((kubectl.folder / "pid").read_text()), 0)


def test_a_token_of_ones_own_is_shown_instead(kubectl: Kubectl, answering: Remembering, tmp_path: Path) -> None:
    """And the Secret, which its owner may not be allowed to read, is not asked for."""
    kubectl.holds("pods", pod("htas-0"))
    kubectl.forwards_to(answering.server_address[1])
    (tmp_path / "token").write_text("mine")
    options = ["--server", "htas-system/htas", "--token-file", str(tmp_path / "token")]
    done = CliRunner().invoke(app, ["history", "--cycles", *options])
    assert done.exit_code == 0, done.output
    assert answering.shown == ["Bearer mine"]


def test_kubectl_is_read_on_so_that_it_never_stands_still(kubectl: Kubectl) -> None:
    kubectl.holds("pods", pod("htas-0"))
    kubectl.holds(WORKLOADS, workload(secret=""))
    kubectl.forwards_to(1)
    assert forwarded("htas-system/htas", wants_token=True) == Forwarded("http://127.0.0.1:1", "", None)
    for _ in range(500):
        if (kubectl.folder / "drained").exists():
            return
        time.sleep(0.02)
    pytest.fail("kubectl waits for somebody to read what it says")


def test_a_certificate_is_held_against_the_services_name(kubectl: Kubectl) -> None:
    kubectl.holds("pods", pod("cost-5d4f-aaaaa"))
    kubectl.holds(WORKLOADS, workload("cost", secret="", is_tls=True))
    kubectl.forwards_to(1)
    there = forwarded("ops/htas", wants_token=True)
    assert (there.url, there.host) == ("https://127.0.0.1:1", "cost.ops.svc")


def test_who_names_an_authority_speaks_to_nobody_who_has_none(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl.holds("pods", pod("htas-0"))
    kubectl.forwards_to(1)
    (tmp_path / "token").write_text("mine")
    options = ["--ca", str(tmp_path / "token"), "--token-file", str(tmp_path / "token")]
    done = CliRunner().invoke(app, ["cost", "--server", "htas-system/htas", *options])
    assert done.exit_code == 2
    assert "--ca: htas-system/htas serves HTTP" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("pods", "leases", "token", "forwarding", "said"),
    [
        pytest.param(
            [pod("htas-0", is_ready=False)],
            [],
            "s3cret",
            "",
            "no daemon is Ready in htas-system: htas-0",
            id="none is Ready",
        ),
        pytest.param([], [], "s3cret", "", "no daemon is Ready in htas-system: there is none", id="no pod"),
        pytest.param([pod("a"), pod("b")], [lease("c_1")], "s3cret", "", "none of its daemons leads", id="leaderless"),
        pytest.param([pod("a")], [], None, "", "secret is forbidden; name a token with --token-file", id="no secret"),
        pytest.param(
            [pod("a")], [], "s3cret\nline", "", "secret htas-system/htas-token: is of several lines", id="no token"
        ),
        pytest.param([pod("a")], [], "", "", "secret htas-system/htas-token: is empty", id="an empty token"),
        pytest.param([pod("a")], [], "s3cret", "error: unable to forward", "unable to forward", id="no forwarding"),
        pytest.param(
            [pod("a")],
            [],
            "s3cret",
            r"boom \[/red] x \[link=file:///x]y",
            r"boom \[/red] x \[link=file:///x]y",
            id="markup",
        ),
    ],
)
def test_what_is_in_the_way_is_told(
    pods: list[Json], leases: list[Json], token: str | None, forwarding: str, said: str, kubectl: Kubectl
) -> None:
    kubectl.holds("pods", *pods)
    kubectl.holds("leases", *leases)
    if token is not None:
        kubectl.keeps(token)
    (kubectl.folder / "forwarding").write_text(forwarding)
    done = CliRunner().invoke(app, ["cost", "--server", "htas-system/htas"])
    assert done.exit_code == 1, done.exception
    assert said in " ".join(done.output.split())
    assert "s3cret" not in done.output


def test_a_release_of_other_programs_has_no_daemon(kubectl: Kubectl) -> None:
    kubectl.holds(WORKLOADS, GRAFANA)
    done = CliRunner().invoke(app, ["cost", "--server", "htas-system/grafana"])
    assert done.exit_code == 2
    assert "has no daemon of a Helm release grafana; helm list -A" in " ".join(done.output.split())


def has_ended(pid: int) -> None:
    """Fails if it goes on; its parent may have yet to be told of its end."""
    for _ in range(500):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    pytest.fail("kubectl goes on forwarding")


@pytest.mark.parametrize("ignores", [False, True], ids=["it ends when asked", "it ignores that"])
def test_kubectl_ends_with_the_command_even_within_a_script(kubectl: Kubectl, ignores: bool) -> None:
    kubectl.holds("pods", pod("htas-0"))
    kubectl.keeps("s3cret")
    kubectl.forwards_to(1)
    real = kubectl.folder / "kubectl-real"
    (kubectl.folder / "kubectl").rename(real)
    script = kubectl.folder / "kubectl"
    trap = 'trap "" TERM' if ignores else ":"
    script.write_text(f'#!/bin/sh\n{trap}\n{real} "$@"\n')
    script.chmod(0o755)
    command = [sys.executable, "-m", "htas", "cost", "--server", "htas-system/htas"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    has_ended(int((kubectl.folder / "pid").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked to end it, which is Linux's")
def test_kubectl_ends_with_a_command_that_is_killed(kubectl: Kubectl) -> None:
    kubectl.holds("pods", pod("htas-0"))
    kubectl.keeps("s3cret")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection, and never answers
        kubectl.forwards_to(silent.getsockname()[1])
        command = [sys.executable, "-m", "htas", "cost", "--server", "htas-system/htas"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as asking:
            silent.settimeout(60.0)
            silent.accept()[0].close()
            asking.kill()
    has_ended(int((kubectl.folder / "pid").read_text()))


def test_without_kubectl_it_is_told_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(app, ["cost", "--server", "htas-system/htas"])
    assert done.exit_code != 0
    assert "a daemon is asked by name through kubectl" in " ".join(done.output.split())


@pytest.mark.parametrize(
    "answer", ["", "Warning: v1 is deprecated", "[" * 100_000, '{"items": [{"metadata": {}}]}', '{"items": 7}']
)
def test_an_answer_that_is_none_is_told(answer: str, kubectl: Kubectl) -> None:
    kubectl.keeps("s3cret")
    (kubectl.folder / "pods.json").write_text(answer)
    done = CliRunner().invoke(app, ["cost", "--server", "htas-system/htas"])
    assert done.exit_code == 1, done.exception
    assert "kubectl get pods: what it printed is no answer" in " ".join(done.output.split())


def test_a_daemon_that_is_on_its_way_out_is_not_asked(kubectl: Kubectl) -> None:
    leaving = pod("htas-old")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-27T00:00:00Z"
    kubectl.holds("pods", leaving, pod("htas-new"))
    kubectl.forwards_to(1)
    forwarded("htas-system/htas", wants_token=False)
    assert "pod/htas-new" in kubectl.asked()[-1]


def test_a_release_may_have_dots_in_its_name(kubectl: Kubectl) -> None:
    kubectl.holds(WORKLOADS)
    done = CliRunner().invoke(app, ["cost", "--server", "htas-system/htas.prod"])
    assert "has no daemon of a Helm release htas.prod" in " ".join(done.output.split())


@pytest.mark.parametrize("address", ["localhost:8080", "a/b/c", "htas", "/htas", "Htas/htas", "htas-system/"])
def test_what_is_neither_address_nor_release_is_refused(address: str) -> None:
    done = CliRunner().invoke(app, ["cost", "--server", address])
    assert done.exit_code == 2
    assert "is no address" in done.output
