"""The reference of metrics: what a daemon exports, with the labels and the help text that Prometheus sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import load_configuration
from htas.daemon.loops.cycle import Daemon
from htas.daemon.telemetry.metrics import Metrics
from htas.documents.month import month_of
from htas.execution.ports import Ports
from htas.model.savings import Savings
from htas.sandbox.world import World

CONFIGURATION = Path(__file__).resolve().parents[2] / "config/htas.yaml"
HEAD = """# Metrics
What a daemon exports at `/metrics`. [Metrics and alerts](../metrics.md) says which to look at.
Prices are per hour, in the price file's currency. Those of the cluster come from the leader, after its first cycle.

| Metric | Labels | Type | Help |
|---|---|---|---|
"""


class MetricRow(NamedTuple):
    """A metric as queries name it: a counter with `_total`, a histogram without `_bucket`."""

    name: str
    labels: tuple[str, ...]
    kind: str
    says: str


def metrics_page() -> str:
    """docs/reference/metrics.md."""
    rows = (
        f"| `{row.name}` | {', '.join(row.labels)} | {row.kind} | {row.says.replace('|', chr(92) + '|')} |"
        for row in metric_rows()
    )
    return HEAD + "\n".join(rows) + "\n"


def metric_rows() -> list[MetricRow]:
    """Every metric, also those of the modes approve and recommend."""
    metrics = Metrics()
    policy = load_configuration(CONFIGURATION).policy
    world = World()
    store = SqliteStore(":memory:")
    ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
    result = Daemon(ports, policy).run_cycle()
    store.close()
    metrics.state.last = replace(result, savings=Savings(0.0, 1.0))
    metrics.state.policy = lambda: policy
    metrics.state.awaits = lambda: 0
    metrics.state.spent_nano_seconds = lambda _: 0
    metrics.state.month = lambda now: month_of((), policy.catalogue.billing, now)
    metrics.state.budget_nanos = lambda: 0
    return list(_rows(metrics))


def _rows(metrics: Metrics) -> Iterator[MetricRow]:
    """In the order of collection: a help text may refer to the one before it.

    A family that is made at a scrape knows its labels; of others the collector does.
    """
    made = metrics.registry._collector_to_names
    labels = {name: collector for collector, names in made.items() for name in names}
    for family in metrics.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        owner = family if hasattr(family, "_labelnames") else labels[name]
        yield MetricRow(name, tuple(getattr(owner, "_labelnames", ())), family.type, family.documentation)
