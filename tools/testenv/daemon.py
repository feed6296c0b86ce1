"""`htas run` in a process of its own, and a configuration for it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import urllib3
import yaml

from tools.testenv.cluster import ROOT, Json, eventually

HTAS = Path(sys.executable).with_name("htas")
TOKEN = "let-me"
FLAVOURS = ROOT / "config" / "flavours" / "nectar.yaml"


class Htas:
    """A daemon in a process of its own; its log is `log`. As a context it is killed at the end, if it still runs."""

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

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:  # what it said last is part of the failure
            error.add_note(f"htas ({self.log.name}, exit {self.process.poll()}) said last:\n{self.tail()}")
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

    def says(self, event: str, within_s: float = 60.0, **facts: object) -> Json:
        """Wait for a log line."""

        def look() -> list[Json]:
            assert self.process.poll() is None or self.said(event, **facts), f"htas ended: {self.tail()}"
            return self.said(event, **facts)

        return eventually(look, within_s, f"htas says {event!r} {facts}")[0]

    def tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-15:])

    def get(self, path: str) -> tuple[int, str]:
        """Ask its HTTP server, with the token that its configuration names."""
        listens = self.says("listens")
        url = f"http://{listens['host']}:{listens['port']}{path}"
        answer = urllib3.request("GET", url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=10.0)
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
        "http": {"listen": f"127.0.0.1:{free_port()}", "tokenFile": "token"},
        "logging": {"format": "json"},
        "store": {"sqlite": {"path": f"{name}.db"}},
        "cycles": {
            "scheduling": "2s",
            "autoscaling": "2s",
            "cleaning": "2s",
            "batchIdle": "100ms",
            "batchMax": "500ms",
        },
        # Trials count their machines: none is bought ahead, none is saved by a move, and
        # jobs of seconds share.
        "lookAhead": "0s",
        "maxRentalLengthening": None,
        "moveInsteadOfLaunch": False,
        "limits": {"maxNodes": 100, "maxPricePerHour": "50"},
        "nodeGroups": [
            {"name": "services", "workload": "service", "cleaning": cleaning | {"migration": "evict"}},
            {"name": "batch", "workload": "batch", "cleaning": cleaning},
        ],
    }
    (directory / "token").write_text(f"{TOKEN}\n")
    path = directory / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document | changes, sort_keys=False))
    return path


def free_port() -> int:
    """One of loopback that nobody listened at a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
