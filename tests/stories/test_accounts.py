"""Every cent: what the command line says was spent, beside the sandbox cloud's own invoice."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from htas.adapters.sqlite.store import SqliteStore
from htas.cli.main import app
from htas.config.loader import load_configuration
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.model.money import bill_amount
from htas.model.resources import Resources
from htas.sandbox.workload import Rescale, Task, Workload
from htas.sandbox.world import World
from tests.stories.play import GIB, job, service

DAYS = 30
MIDDLE = "2026-01-15T07:31:11Z"
"""An instant within a machine's billed minutes, as likely as not."""
PRICES = Path(__file__).parents[2] / "config/flavours/nectar.yaml"
CONFIG = f"""
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: demo
flavours: {PRICES}
provider: {{sandbox: {{}}}}
cycles: {{scheduling: 1h, autoscaling: 1h, cleaning: 1h}}
nodeGroups: [{{name: services, workload: service}}, {{name: batch, workload: batch}}]
"""


def month() -> Workload:
    """Three teams: one keeps a service, which is larger by day; two run jobs, a few each day."""
    random = Random(7)
    arrivals, rescales = [service("web", 2, namespace="shop")], []
    for day in range(DAYS):
        start = day * 86_400.0
        rescales += [Rescale(start + 8 * 3600, "shop", "web", 6), Rescale(start + 18 * 3600, "shop", "web", 2)]
        for i in range(4):
            at, runs = start + random.uniform(0, 86_000), random.uniform(300, 9000)
            team = ("science", "reports")[i % 2]
            arrivals.append(job(f"{team}-{day}-{i}", at, runs, random.choice([300, 900, 3000]), 2.0, namespace=team))
    agent = Task("agent", Resources(50, GIB // 16, 0, 1), namespace="kube-system")
    return Workload("month", tuple(arrivals), tuple(rescales), daemons=(agent,))


def told(config: Path, *words: str) -> str:
    result = CliRunner().invoke(app, [*words, "-c", str(config)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def sums(config: Path, *words: str) -> dict[str, Decimal]:
    rows = csv.DictReader(StringIO(told(config, "cost", "-o", "csv", *words)))
    return {row["key"]: Decimal(row["amount"]) for row in rows}


@pytest.mark.timeout(240)
def test_a_months_costs_are_the_clouds_own_invoice(tmp_path: Path) -> None:
    config = tmp_path / "htas.yaml"
    config.write_text(CONFIG)
    policy = load_configuration(config).policy
    world = World(seed=3)
    world.load(month())
    store, start = SqliteStore(str(tmp_path / "htas.db")), world.clock.now()
    for until in (11, DAYS):  # another daemon goes on after eleven days
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
        VirtualDriver(world, Daemon(ports, policy)).run_until(start + until * 86_400.0)
    store.close()
    # Services run on: the store's present is its newest cycle, and the invoice is drawn at that instant.
    newest = json.loads(told(config, "history", "--cycles", "-o", "jsonl", "--limit", "1"))
    invoice = bill_amount(
        world.ledger.nano_seconds(policy.catalogue.billing, datetime.fromisoformat(newest["at"]).timestamp())
    )
    days = sums(config, "--by", "day")
    assert len(days) == DAYS
    for found in (days, *(sums(config, "--by", by) for by in ("group", "flavour", "namespace", "owner"))):
        assert abs(sum(found.values()) - invoice) < Decimal("0.0001"), found  # each line is rounded to a millionth
    assert f"{invoice}" in told(config, "cost")
    teams = sums(config, "--by", "namespace")
    assert set(teams) == {"(idle)", "kube-system", "reports", "science", "shop"}
    assert sums(config, "--by", "owner")["shop ReplicaSet/web"] == teams["shop"]
    halves = [sums(config, "--by", "namespace", *window) for window in (("--until", MIDDLE), ("--since", MIDDLE))]
    for team, amount in teams.items():
        assert abs(halves[0][team] + halves[1][team] - amount) < Decimal("0.0001")
    assert "The peak of the same work, " in told(config, "cost", "--against", "peak")
    assert "The same work on m1.large alone: " in told(config, "cost", "--against", "homogeneous m1.large")
