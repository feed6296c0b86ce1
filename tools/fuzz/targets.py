"""What inputs are given to, and what must not come of it."""

from __future__ import annotations

import re
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from htas.adapters.kubernetes.dump import DumpError, read_dump
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kubernetes.resources import RESOURCES
from htas.config.loader import ConfigurationError, load_catalogue, load_configuration
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.planner import plan
from tools.adversary.network import target
from tools.adversary.scene import shipped_policy
from tools.fuzz import strategies

NOW = 1_767_603_700.0
BY_KIND = {resource.kind: resource for resource in RESOURCES}


@dataclass(frozen=True, slots=True)
class Target:
    """A reader of inputs: `take` returns, or raises what is a defect."""

    name: str
    inputs: st.SearchStrategy[Any]
    take: Callable[[Any], None]


def _plan_for(view: ClusterView) -> None:
    """What a cycle does with a view: plan, and write view and plan down."""
    snapshot = ClusterSnapshot(taken_at=NOW, cluster=view)
    msgspec.json.encode(plan(snapshot, shipped_policy(), NOW))
    msgspec.json.decode(msgspec.json.encode(snapshot), type=ClusterSnapshot)


def take_dump(text: bytes) -> None:
    with suppress(DumpError):
        _plan_for(read_dump(text, "fuzzed"))


def take_events(events: list[tuple[str, Any]]) -> None:
    """Each event by itself, as a watch brings them; whatever has no known kind any more is told as a Pod."""
    view = LiveView("htas")
    for kind, item in events:
        named = item.get("kind") if isinstance(item, dict) else None
        resource = BY_KIND.get(named if isinstance(named, str) else "Pod", BY_KIND["Pod"])
        raw = msgspec.json.encode(item)
        view.remove(resource, raw) if kind == "DELETED" else view.put(resource, raw)
    _plan_for(view.view())


def _in_a_file(text: bytes, load: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "fuzzed.yaml"
        path.write_bytes(text)
        with suppress(ConfigurationError):
            load(path)


def take_configuration(text: bytes) -> None:
    _in_a_file(text, load_configuration)


def take_prices(text: bytes) -> None:
    _in_a_file(text, load_catalogue)


class HttpDefectError(Exception):
    """An answer that must not be."""


@dataclass(frozen=True, slots=True)
class _Http:
    port: int

    def take(self, sent: bytes) -> None:
        """Send it without a token, say that no more comes, and read to the end."""
        said = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20.0) as connection, suppress(ConnectionError):
            connection.sendall(sent)
            with suppress(OSError):  # ended by the other side already
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65_536):
                said += piece
        statuses = [int(each) for each in re.findall(rb"HTTP/1\.[01] (\d{3}) ", said)]
        if (
            any(status in (202, 500, 502) for status in statuses)
            or b"\r\ncontent-type: application/json" in said.lower()
        ):
            raise HttpDefectError(f"answered {statuses}: {said[:300]!r}")


@contextmanager
def targets() -> Iterator[list[Target]]:
    """All of them; the HTTP server listens until the block is left."""
    with target() as server:
        yield [
            Target("dumps", strategies.dumps, take_dump),
            Target("watch events", strategies.watch_events, take_events),
            Target("configurations", strategies.configurations, take_configuration),
            Target("price files", strategies.price_files, take_prices),
            Target("HTTP requests", strategies.requests, _Http(server.port).take),
        ]
