"""A daemon whose searches fail: work is bound, and people learn of it once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.loops.cycle import CycleResult, Daemon
from htas.daemon.loops.failed_searches import FailedSearches
from htas.daemon.loops.virtual import VirtualDriver
from htas.daemon.telemetry.metrics import Metrics
from htas.model.outcomes import Action, OutcomeStatus
from htas.model.plan import Plan
from htas.model.reasons import OutcomeReason
from htas.model.search_failures import OptionalSearch, SearchFailure
from htas.planning.planner import plan
from htas.sandbox.cloud import SandboxCloud
from tests.builders import NOW, make_node, make_policy
from tests.laws.test_optional_search_laws import SEARCHES, Failing
from tests.stories.play import Story, job


class Played:
    """Two jobs in the sandbox, planned for with searches that all fail."""

    def __init__(self) -> None:
        self.story = Story(None, job("a"), job("b", at_s=60.0), startup_s=30.0)
        self.metrics, self.seen = Metrics(), list[CycleResult]()
        daemon = Daemon(self.story.ports, self.story.policy, planner=partial(plan, runner=Failing(*SEARCHES)))
        daemon.listeners += [self.metrics.observe, self.seen.append]
        VirtualDriver(self.story.world, daemon).run_until(self.story.start + 400.0)

    def failures(self, search: OptionalSearch) -> float:
        families = text_string_to_metric_families(self.metrics.render().decode())
        samples = [sample for family in families for sample in family.samples]
        (value,) = [
            sample.value
            for sample in samples
            if sample.name == "htas_search_failures_total" and sample.labels["search"] == search.value
        ]
        return float(value)


def test_jobs_run_although_every_search_fails() -> None:
    played = Played()
    bound = [o.subject for result in played.seen for o in result.outcomes if o.action is Action.BIND]
    assert bound == ["default/a-1", "default/b-1"]


def test_each_failure_is_counted_and_each_defect_recorded_once() -> None:
    played = Played()
    failed = [o for result in played.seen for o in result.outcomes if o.reason is OutcomeReason.SEARCH_FAILED]
    assert all(o.action is Action.SEARCH and o.status is OutcomeStatus.FAILED for o in failed)
    messages = [o.message for o in failed]
    assert len(messages) == len(set(messages)) >= 2
    in_plans = sum(len(result.plan.failures) for result in played.seen)
    assert sum(played.failures(search) for search in SEARCHES) == in_plans > len(messages)


class OddBooks(SqliteStore):
    """A store whose bills make the daemon stumble."""

    def bills(self, *_: object, **__: object) -> Any:
        raise ValueError("no such bill")


@dataclass
class OddCloud:
    """A cloud whose list makes the daemon stumble."""

    cloud: SandboxCloud

    def instances(self) -> Any:
        raise KeyError("flavor")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cloud, name)


@pytest.mark.parametrize(
    ("odd", "defects"),
    [
        pytest.param({"store": OddBooks(":memory:")}, {"ValueError: no such bill"}, id="its books"),
        pytest.param({"provider": None}, set(), id="an answer of the cloud"),
    ],
)
def test_a_defect_in_what_looks_after_machines_costs_no_bind(odd: dict[str, Any], defects: set[str]) -> None:
    story = Story(make_policy(), job("a"))
    story.world.cluster.add_node(make_node("n-1", created_at=story.start))
    if "provider" in odd:
        odd = {"provider": OddCloud(story.world.cloud)}
    daemon, seen = Daemon(replace(story.ports, **odd), story.policy), list[CycleResult]()
    daemon.listeners.append(seen.append)
    with capture_logs() as logs:
        VirtualDriver(story.world, daemon).run_until(story.start + 300.0)
    assert [o.subject for result in seen for o in result.outcomes if o.action is Action.BIND] == ["default/a-1"]
    assert {defect.error for result in seen for defect in result.defects} == defects
    assert daemon.store_problem == ""
    assert sum(entry["log_level"] == "error" for entry in logs) == 1, "told once"
    assert not any(result.plan.launches for result in seen)


def test_metrics_begin_with_nought() -> None:
    """A series that begins with 1 shows no increase, and the alert would miss it."""
    assert 'htas_search_failures_total{search="cheapest-mix"} 0.0' in Metrics().render().decode()


def test_a_defect_is_logged_once_whatever_its_words() -> None:
    failed = FailedSearches()
    with capture_logs() as logs:
        for number in range(3):
            error = f"ValueError: no row {number}"
            failed.note(Plan(NOW, failures=(SearchFailure(OptionalSearch.EDGE_MOVES, error, ("a:1 f", "b:2 g")),)))
        failed.note(Plan(NOW, failures=(SearchFailure(OptionalSearch.EDGE_MOVES, "ValueError: other", ("a:9 f",)),)))
    assert [(entry["search"], entry["error"], entry["where"]) for entry in logs] == [
        ("edge-moves", "ValueError: no row 0", ["a:1 f", "b:2 g"]),
        ("edge-moves", "ValueError: other", ["a:9 f"]),
    ]
