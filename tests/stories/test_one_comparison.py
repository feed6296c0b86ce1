"""One figure for the same day, wherever it is asked for: the demo, `htas cost --against`, the Money page, the API."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from htas.adapters.sqlite.store import SqliteStore
from htas.cli.main import app
from htas.cli.ui_day import Played
from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.documents.alternatives import alternative
from htas.documents.books import books_of
from htas.documents.costs import cost_report
from htas.documents.forms import CostBy
from htas.execution.ports import Ports
from htas.model.constraints import Constraints
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.profiler.accounts import ALWAYS
from htas.sandbox.workloads.day import day
from htas.sandbox.world import World
from htas.web.reports.money import against


@pytest.mark.timeout(240)
def test_the_demo_the_command_and_the_page_print_the_same_figure() -> None:
    """Two hours of the demo's day: played by `htas demo`, and behind `htas ui --demo`."""
    demo = CliRunner().invoke(app, ["demo", "--hours", "2", "--seconds", "0"])
    assert demo.exit_code == 0, demo.stderr
    printed = " ".join(demo.stdout.split())
    played = Played(seed=1, hours=2.0, speed=0.0)
    played.play()
    seat, picture = played.seat, played.seat.picture()
    for way in ("homogeneous", "peak"):
        report = cost_report(books_of(seat.store(), picture.policy, ALWAYS, seat.present()), CostBy.GROUP, way)
        page = against(seat, picture, way, hours=24.0)
        assert (report.against in printed) == (way == "homogeneous")
        assert f"{page.told}: {float(page.amount):.2f} USD. " in report.against
        assert page.assumes == report.assumes
        assert way == "peak" or all(line in printed for line in report.assumes)


def without_moves_and_foresight(policy: Policy, flavour: str) -> Policy:
    """A policy of one flavour that launches for what is pending, at once, and deletes what is empty."""

    def plain(group: NodeGroup) -> NodeGroup:
        never = replace(group.cleaning.consolidation, enabled=False, shrinks=False)
        rules: CleaningRules = replace(group.cleaning, utilization_threshold=0.0, consolidation=never)
        return replace(group, flavours=(flavour,), cleaning=rules)

    return replace(
        policy,
        groups=tuple(map(plain, policy.groups)),
        look_ahead_s=0.0,
        moves_instead_of_buying=False,
        max_rental_lengthening=None,
        max_wait_for_capacity_s=0.0,
    )


@pytest.mark.timeout(240)
@pytest.mark.parametrize("flavour", ["m3.small", "m1.large"])
def test_the_figure_is_the_bill_of_a_cluster_that_has_that_flavour_alone(flavour: str) -> None:
    """Three hours of the day, without affinity, are played on one flavour. The figure made of the record is the bill."""
    policy = without_moves_and_foresight(load_configuration(config_file("htas.yaml")).policy, flavour)
    world = World(seed=2)
    work = day(2, length_s=3 * 3600)
    free = [replace(each, task=replace(each.task, constraints=Constraints())) for each in work.arrivals]
    world.load(replace(work, arrivals=tuple(free)))
    store, start = SqliteStore(":memory:"), world.clock.now()
    ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
    VirtualDriver(world, Daemon(ports, policy)).run_until(start + 3 * 3600)
    books = books_of(lambda: nullcontext(store), policy, ALWAYS, world.clock.now())
    played = alternative(books, f"homogeneous {flavour}").nano_seconds
    assert books.total == world.ledger.nano_seconds(policy.catalogue.billing, world.clock.now())
    assert played == pytest.approx(books.total, rel=0.03)
    store.close()
