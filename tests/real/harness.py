"""A real cluster and real daemons for the tests: started, looked at, broken and stopped. Nothing here knows a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import msgspec
import urllib3
import yaml

from htas.adapters.kubernetes.access import load_access
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.ports import HTASError, NotFoundError

ROOT = Path(__file__).parents[2]
TESTENV = ROOT / "tools" / "testenv"
FLAVOURS = ROOT / "config" / "flavours" / "nectar.yaml"
CORE, APPS, BATCH, POLICY = "/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/policy/v1"
PODS, NODES = f"{CORE}/pods", f"{CORE}/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CONFIG_MAPS = f"{CORE}/namespaces/default/configmaps"
Json = dict[str, Any]
T = TypeVar("T")
HTAS = Path(sys.executable).with_name("htas")


def eventually(look: Callable[[], T], within_s: float, what: str) -> T:
    """What `look` returns, as soon as it is true; fails after so long, saying what it last was."""
    deadline = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what}: not within {within_s:g} s (last: {found!r})"
        time.sleep(0.1)


class Cluster:
    """etcd, API server, controller manager, scheduler and KWOK in `directory`."""

    def __init__(self, directory: Path, binaries: Path, **options: str) -> None:
        self.directory, self.binaries = directory, binaries
        self.env = {**os.environ, "HTAS_KUBE_BIN": str(binaries), "HTAS_KUBE_DIR": str(directory), **options}
        self.kubeconfig = directory / "admin.kubeconfig"
        self.start()
        self.api = ApiServer(load_access(self.kubeconfig, None, 16), RateLimit(10_000, 10_000))

    def start(self) -> None:
        """Start what does not run."""
        self._script("kube-up.sh")

    def stop(self, *names: str, kill: bool = False) -> None:
        """Stop some of the processes, or all."""
        self._script("kube-down.sh", *(["--kill"] if kill else []), *names)

    def purge(self) -> None:
        self._script("kube-down.sh", "--purge")

    def _script(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [TESTENV / name, *arguments], env=self.env, capture_output=True, text=True, timeout=180, check=False
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        command = [self.binaries / "kubectl", f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def items(self, path: str, **query: str) -> list[Json]:
        found: list[Json] = msgspec.json.decode(self.api.get(path, query))["items"]
        return found

    def pods(self, **query: str) -> list[Json]:
        return self.items(PODS, **query)

    def nodes(self, **query: str) -> list[Json]:
        return self.items(NODES, **query)

    def create(self, *manifests: Json) -> None:
        for manifest in manifests:
            self.api.post(_collection(manifest), manifest)

    def delete(self, path: str) -> None:
        with suppress(NotFoundError):
            self.api.delete(path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    def wipe(self) -> None:
        """Leave nothing of a test behind: controllers first, or they would make their pods anew."""
        space = "namespaces/default"
        for path in (f"{APPS}/{space}/deployments", f"{APPS}/{space}/replicasets", f"{BATCH}/{space}/jobs"):
            self.delete(path)
        self.delete(f"{POLICY}/{space}/poddisruptionbudgets")
        eventually(lambda: self._is_swept(), 90, "the cluster is swept")

    def _is_swept(self) -> bool:
        self.delete(f"{CORE}/namespaces/default/pods")
        self.delete(NODES)
        for path in (LEASES, CONFIG_MAPS):
            for item in self.items(path):
                if item["metadata"]["name"] != "kube-root-ca.crt":
                    self.delete(f"{path}/{item['metadata']['name']}")
        return not self.pods() and not self.nodes() and not self.items(f"{APPS}/replicasets")


def _collection(manifest: Json) -> str:
    version, kind = manifest["apiVersion"], manifest["kind"]
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    plural = f"{kind.lower()}s" if not kind.endswith("ss") else f"{kind.lower()}es"
    if kind in ("Node", "PriorityClass", "Namespace"):
        return f"{root}/{plural}"
    return f"{root}/namespaces/{manifest['metadata'].get('namespace', 'default')}/{plural}"


class Htas:
    """A daemon in a process of its own; its log is `log`. Used as a context it is killed at the end, if it still runs."""

    def __init__(self, config: Path, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.config, self.log = config, log
        with log.open("ab") as stream:
            self.process = subprocess.Popen(
                [HTAS, "run", "--config", str(config)],
                stderr=stream,
                stdout=stream,
                env={**os.environ, **(env or {})},
            )

    def __enter__(self) -> Htas:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()

    def stop(self, within_s: float = 20.0) -> int:
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    @property
    def lines(self) -> list[Json]:
        """What it logged (JSON lines); what is not JSON comes as an event of its own."""
        return [_parsed(line) for line in self.log.read_text().splitlines()]

    def said(self, event: str, **facts: object) -> list[Json]:
        """Log lines of an event with these facts."""
        return [line for line in self.lines if line.get("event") == event and facts.items() <= line.items()]

    def says(self, event: str, within_s: float = 30.0, **facts: object) -> Json:
        """Wait for a log line."""

        def look() -> list[Json]:
            assert self.process.poll() is None or self.said(event, **facts), f"htas ended: {self.tail()}"
            return self.said(event, **facts)

        return eventually(look, within_s, f"htas says {event!r} {facts}")[0]

    def tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-15:])

    def get(self, path: str) -> tuple[int, str]:
        """Ask its HTTP server."""
        listens = self.says("listens")
        answer = urllib3.request("GET", f"http://{listens['host']}:{listens['port']}{path}", timeout=10.0)
        return answer.status, answer.data.decode()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples with these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        samples = [
            line.rpartition(" ")
            for line in self.get("/metrics")[1].splitlines()
            if line.split("{")[0].split(" ")[0] == name and all(each in line for each in wanted)
        ]
        return sum(float(value) for _, _, value in samples)


def _parsed(line: str) -> Json:
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return {"event": line}
    return found if isinstance(found, dict) else {"event": line}


def htas(*arguments: str, config: Path) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    command = [HTAS, *arguments, "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def configuration(directory: Path, kubeconfig: Path, name: str = "htas", **changes: Any) -> Path:
    """A configuration file for a trial that is over in minutes; `changes` replace whole sections."""
    cleaning = {"migration": "checkpoint", "underutilizedFor": "5s", "queueEmptyFor": "5s", "migrationTime": "2s"}
    prices = yaml.safe_load(FLAVOURS.read_text())
    prices["billing"] = {
        "granularity": "1s",
        "minimum": "1s",
    }  # work of seconds could never pay for a move by the minute
    document: Json = {
        "apiVersion": "htas.io/v1alpha1",
        "kind": "HTASConfiguration",
        "cluster": "trial",
        "flavours": prices,
        "provider": {"kwok": {"startupDelay": "2s"}},
        "kubernetes": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms"},
        "http": {"listen": f"127.0.0.1:{_free_port()}"},
        "logging": {"format": "json"},
        "store": {"sqlite": {"path": f"{name}.db"}},
        "cycles": {
            "scheduling": "2s",
            "autoscaling": "2s",
            "cleaning": "2s",
            "batchIdle": "100ms",
            "batchMax": "500ms",
        },
        "limits": {"maxNodes": 100, "maxPricePerHour": "50"},
        "nodeGroups": [
            {"name": "services", "workload": "service", "cleaning": cleaning | {"migration": "evict"}},
            {"name": "batch", "workload": "batch", "cleaning": cleaning},
        ],
    }
    path = directory / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document | changes, sort_keys=False))
    return path


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Watcher:
    """Sees every change of a collection, as an outsider does; `on_event` is called with type and object."""

    def __init__(self, api: ApiServer, path: str, on_event: Callable[[str, Json], None]) -> None:
        self._api, self._path, self._on_event = api, path, on_event
        self._stopping = Event()
        self.problem: Exception | None = None
        found = msgspec.json.decode(api.get(path))
        for item in found["items"]:
            on_event("ADDED", item)
        self._version: str = found["metadata"]["resourceVersion"]
        self._thread = Thread(target=self._run, name=f"watcher {path}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                for kind, item in self._events():
                    if kind != "BOOKMARK":
                        self._on_event(kind, item)
                    self._version = item["metadata"]["resourceVersion"]
                    if self._stopping.is_set():
                        return
            except HTASError:
                self._stopping.wait(0.2)  # the API server is away: part of some tests
            except Exception as error:
                self.problem = error
                return

    def _events(self) -> Iterator[tuple[str, Json]]:
        query = {"watch": 1, "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        for line in self._api.lines(self._path, query, 300.0):
            event = msgspec.json.decode(line)
            assert event["type"] != "ERROR", event
            yield event["type"], event["object"]

    def stop(self) -> None:
        """Raises what `on_event` raised."""
        self._stopping.set()
        if self.problem is not None:
            raise self.problem
