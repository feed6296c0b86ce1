"""Price lists as providers publish them: by the hours of the clock, by zone, up to a month's most.

In each story what `htas cost` says is the sandbox cloud's own invoice, to the last digit.
"""

from __future__ import annotations

import csv
from decimal import Decimal
from io import StringIO
from pathlib import Path

import msgspec
from typer.testing import CliRunner

from htas.adapters.sqlite.store import SqliteStore
from htas.cli.main import app
from htas.config.loader import load_configuration
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.execution.ports import Ports
from htas.model.constraints import Constraints
from htas.model.money import bill_amount
from htas.model.nodes import ZONE_LABEL
from htas.model.resources import Resources
from htas.sandbox.ledger import Rental
from htas.sandbox.workload import Arrival, Workload
from htas.sandbox.world import World
from tests.stories.play import GIB, job

HOUR = 3600.0
TEN = 1_790_762_400.0
"""An hour that is full."""
CONFIG = """
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: demo
flavours: prices.yaml
provider: {sandbox: {}}
nodeGroups: [{name: any}]
"""


class Priced:
    """A world that begins at an instant, and the daemon that a price file and its configuration make."""

    def __init__(self, folder: Path, prices: str, start: float, *arrivals: Arrival) -> None:
        self.config = folder / "htas.yaml"
        self.config.write_text(CONFIG)
        (folder / "prices.yaml").write_text(prices)
        self.policy = load_configuration(self.config).policy
        self.world = World(start=start, startup_s=60.0)
        self.world.load(Workload("story", arrivals))
        self.store = SqliteStore(str(folder / "htas.db"))
        world = self.world
        ports = Ports(world.clock, world.cluster, world.cloud, world.migration, self.store, world.announcer)
        VirtualDriver(world, Daemon(ports, self.policy)).run_until(start + 4.5 * HOUR)
        self.store.close()

    @property
    def rentals(self) -> list[Rental]:
        return self.world.ledger.rentals

    def assert_billed_as_invoiced(self) -> str:
        """What was spent, as the command line has it."""
        end = self.world.clock.now()
        assert self.world.ledger.running_machines() == 0, "else the present of both is not the same"
        invoice = bill_amount(self.world.ledger.nano_seconds(self.policy.catalogue.billing, end))
        told = CliRunner().invoke(app, ["cost", "-c", str(self.config)])
        assert told.exit_code == 0, told.stderr
        (total,) = (line.split()[1] for line in told.stdout.splitlines() if line.startswith("total"))
        assert total == f"{invoice}"
        return f"{invoice}"


def test_by_the_clock_an_empty_machine_goes_before_the_hour_is_full(tmp_path: Path) -> None:
    """A job of ten minutes comes at 09:40: its machine is gone by ten, and costs one hour."""
    prices = """
billing: {granularity: 1h, minimum: 1h, alignment: clock}
flavours: [{name: m, cpu: 2, memory: 4Gi, pricePerHour: "0.0508"}]
"""
    story = Priced(tmp_path, prices, TEN - HOUR / 3, job("short", 1.0, 600.0))
    (rental,) = story.rentals
    assert rental.ended_at is not None
    assert TEN - 180.0 < rental.ended_at <= TEN, "kept for as long as it is paid for, and no longer"
    assert story.assert_billed_as_invoiced() == "0.050800"


def test_from_its_start_the_same_machine_is_kept_for_its_own_hour(tmp_path: Path) -> None:
    prices = """
billing: {granularity: 1h, minimum: 1h}
flavours: [{name: m, cpu: 2, memory: 4Gi, pricePerHour: "0.0508"}]
"""
    story = Priced(tmp_path, prices, TEN - HOUR / 3, job("short", 1.0, 600.0))
    (rental,) = story.rentals
    assert rental.ended_at is not None
    assert HOUR - 180.0 < rental.ended_at - rental.started_at <= HOUR
    assert story.assert_billed_as_invoiced() == "0.050800"


BY_ZONE = """
billing: {granularity: 1s, minimum: 1s, feePerHour: "0.004"}
flavours:
  - name: m
    cpu: 2
    memory: 4Gi
    prices: [{zone: az-1, perHour: "0.20"}, {zone: az-3, perHour: "0.26"}]
"""


def in_zone(zone: str) -> Constraints:
    return Constraints(node_selector=((ZONE_LABEL, zone),))


def test_each_machine_costs_what_its_zone_costs(tmp_path: Path) -> None:
    """One job does not mind where it runs, and one has to be in the dearer zone."""
    story = Priced(
        tmp_path,
        BY_ZONE,
        TEN,
        job("anywhere", 1.0, HOUR, 1500),
        job("there", 1.0, HOUR, 1500, constraints=in_zone("az-3")),
    )
    assert story.world.ledger.finished == 2
    billed = {each.nanos_per_hour: -int(-((each.ended_at or 0.0) - each.started_at) // 1) for each in story.rentals}
    assert sorted(billed) == [204_000_000, 264_000_000], "a price and the fee, of each zone"
    spent = sum(nanos * seconds for nanos, seconds in billed.items())
    assert story.assert_billed_as_invoiced() == f"{bill_amount(spent)}"


def test_a_month_costs_no_more_than_its_cap(tmp_path: Path) -> None:
    """Hours before the month ends its cap is reached: the empty machine costs nothing, and stays for the second job."""
    prices = """
billing: {granularity: 1h, minimum: 1h}
flavours: [{name: m, cpu: 2, memory: 4Gi, pricePerHour: "1.00", monthlyCap: "1.50"}]
"""
    month_ends = TEN + 14 * HOUR
    story = Priced(tmp_path, prices, month_ends - 4 * HOUR, job("a", 1.0, 1.8 * HOUR), job("b", 2.8 * HOUR, 300.0))
    (rental,) = story.rentals
    assert rental.ended_at is not None
    third_hour_ends = rental.started_at + 3 * HOUR
    assert month_ends - HOUR < third_hour_ends, "the fourth ends in the next month, where it costs"
    assert third_hour_ends - 180.0 < rental.ended_at <= third_hour_ends
    assert story.assert_billed_as_invoiced() == "1.500000"


def test_who_has_the_only_gpu_pays_the_greater_part(tmp_path: Path) -> None:
    """A training with the GPU and one core of eight, beside a build of six: 57 and 43 % of the hour in which both run."""
    prices = """
billing: {granularity: 1s, minimum: 1s}
flavours: [{name: g1, cpu: 8, memory: 64Gi, pricePerHour: "1.15", extended: {nvidia.com/gpu: 1}}]
"""
    asked = Resources(1000, 4 * GIB, 0, 1, (("nvidia.com/gpu", 1),))
    train = job("train", 1.0, HOUR, namespace="ml")
    with_gpu = msgspec.structs.replace(train, task=msgspec.structs.replace(train.task, requests=asked))
    story = Priced(tmp_path, prices, TEN, with_gpu, job("compile", 1.0, HOUR, 6000, 24.0, namespace="ci"))
    assert len(story.rentals) == 1
    spent = Decimal(story.assert_billed_as_invoiced())
    told = CliRunner().invoke(app, ["cost", "-c", str(story.config), "--by", "namespace", "-o", "csv"])
    parts = {row["key"]: Decimal(row["amount"]) for row in csv.DictReader(StringIO(told.stdout))}
    both = Decimal("1.15")
    assert [round(100 * parts[name] / both) for name in ("ml", "ci")] == [57, 43]
    assert abs(parts["ml"] + parts["ci"] - both) < Decimal("0.000003"), "nothing of that hour is idle"
    assert abs(sum(parts.values()) - spent) < Decimal("0.000003"), "each line is rounded to a millionth"
