"""Stories of a daemon that only recommends: beside kube-scheduler on a fixed set of nodes, on virtual time."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.daemon.recommend.recommender import Recommender
from htas.daemon.recommend.watching import WatchingPorts
from htas.execution.ports import Ports
from htas.model.modes import Charge
from htas.model.nodes import CLUSTER_LABEL, Node
from htas.model.outcomes import Action, OutcomeStatus
from htas.model.policy import Fallback, FallbackMode, NodeGroup, Policy
from htas.model.savings import Savings
from htas.sandbox.fixed_nodes import nodes_for
from htas.sandbox.workload import Arrival, Rescale, Workload
from htas.sandbox.world import World
from tests.builders import amounts, make_flavour, make_policy
from tests.stories.play import job, jobs, service
from tools.bench.recommended import Case, compared
from tools.lab.baselines import fixed_set

BIG = make_flavour("big", "8", "32Gi", "0.40")
SMALL = make_flavour("small", "2", "8Gi", "0.10")
HOUR_S = 3600.0
LOOK_S = 60.0
"""Between two looks of HTAS: what came in between happens at its own time."""
CENTS = 3600 * 10**7


def policy(**changes: object) -> Policy:
    made = make_policy([NodeGroup("any")], flavours=[BIG, SMALL], fallback=Fallback(mode=FallbackMode.OFF))
    return msgspec.structs.replace(made, **changes)


def nodes(count: int) -> tuple[Node, ...]:
    found = nodes_for(BIG, [job("peak", runs_s=60.0, cpu_m=8000)], least=count)
    return tuple(replace_name(node, i) for i, node in enumerate(found[:count]))


def replace_name(node: Node, number: int) -> Node:
    return msgspec.structs.replace(node, name=f"fixed-{number + 1:03d}")


class Watched:
    """A cluster that kube-scheduler runs on nodes that are there, and HTAS looking on."""

    def __init__(
        self,
        arrivals: Iterable[Arrival],
        rescales: Iterable[Rescale] = (),
        charge: Charge | None = None,
        count: int = 4,
        begins_s: float = 0.0,
    ) -> None:
        self.world = World(start=1_000_000.0)
        self.world.add_nodes(nodes(count))
        self.world.load(Workload("work", tuple(arrivals), tuple(rescales)))
        self.start = self.world.clock.now()
        world = self.world
        ports = Ports(
            world.clock, world.cluster, world.cloud, world.migration, SqliteStore(":memory:"), world.announcer
        )
        scheduler = Daemon(ports, policy(), keeps_history=False, planner=fixed_set.plan)
        self._driver = VirtualDriver(world, scheduler)
        self.store = SqliteStore(":memory:")
        self.charge = charge or Charge()
        self._driver.run_until(self.start + begins_s)
        self.begin()

    def begin(self) -> None:
        """Start HTAS, for the first time or anew on the same store."""
        world = self.world
        ports = WatchingPorts(world.clock, world.cluster, self.store, world.announcer)
        self.htas = Recommender(ports, policy(), self.charge)
        self.htas.run_cycle()

    def play(self, until_s: float) -> Savings:
        while self.world.clock.now() < self.start + until_s:
            self._driver.run_until(min(self.start + until_s, self.world.clock.now() + LOOK_S))
            self.htas.run_cycle()
        savings = self.htas.savings()
        assert savings is not None
        return savings


def test_what_is_told_to_be_saved_is_what_is_saved_once_htas_is_in_charge() -> None:
    work = [*jobs(25, every_s=90.0, runs_s=400.0, cpu_m=1500), service("web", 3)]
    found = compared(Case(Workload("work", tuple(work)), nodes(4), policy(), startup_s=60.0))
    assert found.made_saving > 0
    assert found.off == pytest.approx(0.0, abs=0.05)


def test_an_idle_cluster_would_have_been_given_back() -> None:
    watched = Watched([service("web", 2)])
    savings = watched.play(2 * HOUR_S)
    assert savings.real.machines == 4
    assert savings.real.nano_seconds == 4 * 40 * CENTS * 2
    assert savings.with_htas.machines == 1
    assert savings.with_htas.nano_seconds < savings.real.nano_seconds / 2
    assert savings.share > 0.5


def test_nothing_is_done_to_the_cluster_that_is_watched() -> None:
    watched = Watched([service("web", 2), *jobs(6, every_s=120.0)])
    watched.play(HOUR_S)
    view = watched.world.cluster.observe()
    assert [node.name for node in view.nodes] == [f"fixed-{i:03d}" for i in range(1, 5)]
    assert not any(node.taints or node.is_unschedulable or CLUSTER_LABEL in node.labels for node in view.nodes)
    ledger = watched.world.ledger
    assert (ledger.evictions, ledger.preempted, ledger.migrations, ledger.rentals) == (0, 0, 0, [])
    assert watched.store.claims() == []
    assert watched.store.bills() == []


def test_history_tells_what_would_have_been_done_and_says_that_it_was_not() -> None:
    watched = Watched([service("web", 2), *jobs(6, every_s=120.0)])
    watched.play(HOUR_S)
    records = list(watched.store.cycles(limit=1000))
    told = {(each.action, each.status) for record in records for each in record.outcomes}
    assert (Action.DRAIN, OutcomeStatus.RECOMMENDED) in told
    assert (Action.DELETE, OutcomeStatus.RECOMMENDED) in told
    assert not any(status is OutcomeStatus.DONE for _, status in told)
    assert all(record.savings is not None for record in records)


def test_a_restart_goes_on_where_the_course_was() -> None:
    work = [service("web", 2), *jobs(20, every_s=300.0, runs_s=600.0, cpu_m=3000)]
    whole = Watched(work).play(2 * HOUR_S)
    watched = Watched(work)
    watched.play(HOUR_S)
    watched.begin()
    savings = watched.play(2 * HOUR_S)
    assert savings.since == whole.since
    assert savings.real.nano_seconds == pytest.approx(whole.real.nano_seconds, rel=0.01)
    assert savings.with_htas.nano_seconds == pytest.approx(whole.with_htas.nano_seconds, rel=0.05)
    assert savings.real.waits.pods == whole.real.waits.pods


def test_while_it_is_away_both_courses_go_on() -> None:
    watched = Watched([service("web", 2)])
    watched.play(HOUR_S)
    watched._driver.run_until(watched.start + 2 * HOUR_S)
    watched.begin()
    savings = watched.play(3 * HOUR_S)
    assert savings.real.nano_seconds == pytest.approx(4 * 40 * CENTS * 3, rel=0.01)
    assert savings.with_htas.nano_seconds == pytest.approx(savings.real.nano_seconds / 4, rel=0.35)


def test_a_service_that_is_really_scaled_down_is_so_in_the_course_with_htas() -> None:
    watched = Watched([service("web", 12, requests=amounts("2", "1Gi", 1))], [Rescale(HOUR_S, "default", "web", 2)])
    before = watched.play(HOUR_S)
    after = watched.play(2 * HOUR_S)
    assert before.with_htas.machines > after.with_htas.machines


def test_nodes_beyond_its_charge_stay_and_cost_nothing_of_it() -> None:
    watched = Watched([service("web", 2)], charge=Charge(nodes={"pool": "elastic"}))
    savings = watched.play(HOUR_S)
    assert (savings.real.nano_seconds, savings.with_htas.nano_seconds) == (0, 0)


def test_pods_beyond_its_charge_are_never_moved() -> None:
    watched = Watched([service(f"web-{i}", 1) for i in range(4)], charge=Charge(without=("default",)), begins_s=60.0)
    savings = watched.play(2 * HOUR_S)
    assert (savings.evicted, savings.moved) == (0, 0)
    assert savings.with_htas.machines == 4


def test_pods_that_wait_really_and_not_with_htas_are_held_against_it() -> None:
    """Two nodes for work of six: what would have ended long ago is counted until its length is known."""
    watched = Watched(jobs(12, every_s=1.0, runs_s=1200.0, cpu_m=8000), count=2)
    savings = watched.play(3 * HOUR_S)
    assert savings.real.waits.mean_s > savings.with_htas.waits.mean_s
    assert savings.overrun_s > 0
