"""The reference of the metrics: what the collectors say of themselves once a cycle has run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import load_configuration
from htas.daemon.cycle import CycleResult, Daemon
from htas.daemon.metrics import Metrics
from htas.daemon.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.model.savings import Savings
from htas.sandbox.world import World

ROOT = Path(__file__).resolve().parents[2]
HEAD = """# Metrics
Every metric of `/metrics`, as the daemon describes it. [Metrics and alerts](../metrics.md) says which matter.

| metric | type | labels | what it is |
|---|---|---|---|
"""


class Family(msgspec.Struct, frozen=True):
    """One metric: its name as queries write it, and what it says of itself."""

    name: str
    kind: str
    labels: tuple[str, ...]
    said: str


def metrics_page() -> str:
    """docs/reference/metrics.md."""
    return HEAD + "\n".join(_row(family) for family in families()) + "\n"


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{family.name}` | {family.kind} | {labels} | {family.said.replace('|', chr(92) + '|')} |"


def families() -> list[Family]:
    """Every metric, by name: those of a daemon that has looked at an empty cluster once."""
    metrics, policy = Metrics(), load_configuration(ROOT / "config/htas.yaml").policy
    result = _first_cycle()
    metrics.state.last = replace(result, savings=Savings(0.0, 1.0))
    metrics.state.policy = lambda: policy
    metrics.state.spent_nano_seconds = lambda now: 0
    metrics.state.awaits = lambda: 0
    return sorted(_families(metrics), key=lambda family: family.name)


def _first_cycle() -> CycleResult:
    world, seen = World(), list[CycleResult]()
    with closing(SqliteStore(":memory:")) as store:
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
        daemon = Daemon(ports, load_configuration(ROOT / "config/htas.yaml").policy)
        daemon.listeners.append(seen.append)
        VirtualDriver(world, daemon).run_until(world.clock.now() + 60.0, lambda: bool(seen))
    return seen[0]


def _families(metrics: Metrics) -> Iterator[Family]:
    registered: dict[str, Any] = metrics.registry._names_to_collectors  # the library tells labels nowhere else
    for family in metrics.registry.collect():
        of: Any = family if hasattr(family, "_labelnames") else registered[family.name]
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield Family(name, family.type, tuple(of._labelnames), family.documentation)
