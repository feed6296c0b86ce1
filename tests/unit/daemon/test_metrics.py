"""Metrics of a story that the sandbox plays, and their list in the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from htas.daemon.telemetry.metrics import Metrics
from htas.daemon.telemetry.status import StatusBoard
from htas.documents.month import looked_at, month_of
from htas.model.edge import Tier
from htas.model.holds import HoldReason
from htas.model.migrations import Failure, Refusal
from htas.model.nodes import GROUP_LABEL
from htas.model.orphans import OrphanReason
from htas.model.policy import Cycles, NodeGroup
from htas.model.reasons import Kept, OutcomeReason, Unplaced
from htas.model.resources import Resources
from htas.model.savings import Savings
from htas.profiler import accounts
from htas.profiler.meter import Meter
from tests.builders import batch_group, make_node, make_policy
from tests.stories.play import GIB, Story, job, service
from tools.site.metrics import metric_rows

RARELY_CLEANED = Cycles(cleaning_s=60.0)
"""A quiet world is looked at no more once it has been cleaned: cycles go on for as long as these tests look."""
DOCS = Path(__file__).parents[3] / "docs"


class Played:
    """A day of two jobs, observed by everything that `htas run` has observe it."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.story = Story(
            make_policy([batch_group()], cycles=RARELY_CLEANED), job("a"), job("b", runs_s=150.0), startup_s=30.0
        )
        meter = Meter(self.story.store)
        self.metrics.state.policy = lambda: self.story.policy
        self.metrics.state.spent_nano_seconds = lambda now: meter.nano_seconds(self.billing, now)
        self.metrics.state.month = lambda now: month_of(self.story.store.bills(looked_at(now)), self.billing, now)
        self.metrics.state.awaits = lambda: self.story.daemon.approvals.waiting
        board = StatusBoard(self.story.ports.announcer, "me", lambda: self.story.policy)
        self.story.daemon.listeners += [self.metrics.observe, board.observe]

    @property
    def billing(self):  # type: ignore[no-untyped-def] # of the catalogue
        return self.story.policy.catalogue.billing

    def __getitem__(self, name: str) -> float:
        """The sum of a metric's samples."""
        return sum(value for sample, _, value in self.samples() if sample == name)

    def of(self, name: str, **labels: str) -> float:
        return sum(value for sample, has, value in self.samples() if sample == name and labels.items() <= has.items())

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for family in text_string_to_metric_families(self.metrics.render().decode()):
            yield from ((sample.name, sample.labels, sample.value) for sample in family.samples)


@pytest.fixture
def played() -> Played:
    return Played()


def test_a_story_in_numbers(played: Played) -> None:
    played.story.play(100)
    assert (played["htas_nodes"], played.of("htas_claims", state="Ready"), played["htas_pods"]) == (1, 1, 2)
    assert played.of("htas_actions_total", verb="bind", status="done") == 2
    assert played["htas_nodes_launched_total"] == 1
    assert played["htas_node_startup_seconds_sum"] == pytest.approx(30.0, abs=5.0)
    assert played["htas_pod_bind_wait_seconds_count"] == 2
    assert played.of("htas_requested", resource="cpu") == 1.0
    assert played["htas_cost_per_hour"] > 0
    played.story.play(4000)
    assert (played["htas_nodes"], played["htas_cost_per_hour"], played["htas_nodes_deleted_total"]) == (0, 0, 1)
    assert played["htas_deleted_cost_per_hour_total"] > 0
    played.story.assert_over(2)


def test_a_month_is_compared_with_its_budget_where_one_is_set(played: Played) -> None:
    played.story.play(100)
    assert "htas_month" not in {each[0][:10] for each in played.samples()}
    played.metrics.state.budget_nanos = lambda: 500 * 10**9
    assert played["htas_month_budget"] == 500
    so_far = played.of("htas_month_cost", part="so-far", currency="USD")
    assert so_far == pytest.approx(played["htas_cost_total"]) and so_far > 0
    assert played.of("htas_month_cost", part="forecast") > so_far


def test_machines_without_a_place_and_labels_set_back_are_counted_and_told(played: Played) -> None:
    story = played.story
    story.play(100)
    assert [each for each in played.samples() if each[0] == "htas_orphans"] == [
        ("htas_orphans", {"reason": reason.value}, 0.0) for reason in sorted(OrphanReason)
    ], "from 0 on"
    assert "orphans" not in story.world.announcer.status
    story.world.cluster.arrive(job("long", runs_s=4000.0))
    story.world.cluster.relabel(story.nodes[0], {GROUP_LABEL: "unknown"})
    story.play(300)
    assert played["htas_node_labels_restored_total"] == 1
    assert played["htas_orphans"] == 0
    story.daemon.adopt(make_policy([NodeGroup("other")], cycles=RARELY_CLEANED))
    story.play(600)
    assert played.of("htas_orphans", reason="UnknownGroup") == 1
    status = yaml.safe_load(story.world.announcer.status)["orphans"]
    assert status["machines"] == {"UnknownGroup": 1}
    assert "htas adopt" in status["first"][0]


def test_the_total_is_the_sum_of_the_bills_whenever_it_is_asked_for(played: Played) -> None:
    for until in (50, 100, 130, 400, 700, 4000):
        played.story.play(until)
        now = played.story.seen[-1].snapshot.taken_at
        bills = accounts.total(played.story.store.bills(), played.billing, now)
        assert played["htas_cost_total"] == pytest.approx(bills / 3600e9)


def test_before_the_first_cycle_it_says_nothing_of_the_cluster() -> None:
    text = Metrics().render().decode()
    assert "htas_nodes{" not in text
    assert "htas_build_info" in text


def test_calls_and_failures_are_counted() -> None:
    metrics = Metrics()
    metrics.called("GET", 200, 0.1)
    metrics.called("GET", 0, 0.1)
    metrics.failed("why")
    metrics.dropped(3)
    metrics.restarted("Pod")
    metrics.reloaded(False)
    metrics.leads(True)
    text = metrics.render().decode()
    for line in (
        'htas_apiserver_requests_total{code="200",method="GET"} 1.0',
        'htas_apiserver_requests_total{code="none",method="GET"} 1.0',
        'htas_cycles_total{result="failed"} 1.0',
        "htas_events_dropped_total 3.0",
        'htas_watch_restarts_total{kind="Pod"} 1.0',
        'htas_config_reloads_total{result="refused"} 1.0',
        "htas_leader 1.0",
    ):
        assert line in text


def test_the_edge_in_numbers(played: Played) -> None:
    """Of two services with two pods of a core each, the edge of 3 cores has all of one and half of the other."""
    story = played.story
    story.world.add_nodes([make_node("e", "3500m", labels={"htas.io/tier": "edge"}), make_node("far")])
    for name in ("web", "api"):
        story.world.cluster.arrive(service(name, 2, requests=Resources(1000, GIB, 0, 1), qos=0.5))
    story.play(100)
    shares = [played.of("htas_edge_ratio", service=f"default/ReplicaSet/{name}") for name in ("web", "api")]
    assert sorted(shares) == [0.5, 1.0]
    assert played["htas_edge_qos"] == pytest.approx(2 * 10 + 0.5 * 0.5)
    assert 0 < played.of("htas_edge_fragmentation", node="e") < 0.5, "half a core is of no use to anybody"


def test_every_metric_is_documented_and_every_documented_one_exists(played: Played) -> None:
    played.story.play(100)
    assert played.metrics.last is not None
    played.metrics.state.last = replace(played.metrics.last, savings=Savings(0.0, 1.0))  # as one that only recommends
    played.metrics.state.budget_nanos = lambda: 0
    families = text_string_to_metric_families(played.metrics.render().decode())
    exist = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    documented = {row.name for row in metric_rows()}
    assert documented == exist


def test_pages_name_no_metric_that_does_not_exist() -> None:
    text = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    named = set(re.findall(r"\bhtas_[a-z_]+[a-z]\b", text))
    assert len(named) > 30
    assert named - {row.name for row in metric_rows()} == set()


def test_the_runbook_knows_the_reasons() -> None:
    text = (DOCS / "runbook.md").read_text()
    silent = {Unplaced.AUTOSCALING_NOT_DUE, Unplaced.NOMINATED, Kept.BLOCKED_BY_ON_COMPLETION_POD}
    missing = [
        reason.value
        for reason in (*Unplaced, *Kept, *OutcomeReason)
        if reason not in silent and f"`{reason.value}`" not in text
    ]
    assert missing == []


def test_the_runbook_knows_what_a_plan_keeps_room_for() -> None:
    text = (DOCS / "runbook.md").read_text()
    elsewhere = {HoldReason.NOMINATED, HoldReason.MOVE}  # told as what waits without room, and as a move
    assert [each.value for each in HoldReason if each not in elsewhere and f"| `{each.value}`" not in text] == []


def test_room_that_is_kept_is_counted_by_what_for(played: Played) -> None:
    import yaml

    played.story.play(30)
    assert played.of("htas_reservations", reason="MachineStarting") == played["htas_nominated_pods"] > 0
    status = yaml.safe_load(played.story.world.announcer.status)
    assert status["pods"]["reservations"] == {"MachineStarting": played["htas_reservations"]}


def test_the_guide_to_moves_knows_why_they_are_refused_or_taken_back() -> None:
    text = (DOCS / "migration.md").read_text()
    missing = [each.value for each in (*Refusal, *Failure) if f"`{each.value}`" not in text]
    assert missing == []


def test_the_status_is_yaml_that_people_can_read(played: Played) -> None:
    import yaml

    played.story.play(100)
    status = yaml.safe_load(played.story.world.announcer.status)
    assert status["leader"] == "me"
    assert status["nodes"]["batch"]["ready"] == 1
    assert status["pods"]["running"] == 2
    assert "launch" in status["last"]
    assert next(iter(status)) == "time"


def test_the_status_names_a_group_that_waits_for_its_nodes() -> None:
    import yaml

    near = NodeGroup("near", tier=Tier.EDGE, is_elastic=False)
    story = Story(make_policy([near, batch_group()], cycles=RARELY_CLEANED), job("a"), startup_s=30.0)
    board = StatusBoard(story.ports.announcer, "me", lambda: story.policy)
    story.daemon.listeners.append(board.observe)
    story.play(50)
    told = "group near is of tier edge and no node belongs to it: label nodes htas.io/group=near"
    assert yaml.safe_load(story.world.announcer.status)["problems"] == [told]
    story.world.add_nodes([make_node("e", labels={GROUP_LABEL: "near"})])
    story.play(100)
    assert yaml.safe_load(story.world.announcer.status)["problems"] == []


def test_the_status_is_not_written_at_every_cycle_but_never_grows_old(played: Played) -> None:
    written: list[str] = []
    publish = played.story.world.announcer.publish
    played.story.world.announcer.publish = lambda status: (written.append(status), publish(status))  # type: ignore[method-assign, assignment, func-returns-value] # listens in
    played.story.play(600)
    cycles = len(played.story.seen)
    assert 600 / 60 - 2 <= len(written) < cycles
