"""A defect in any step of a cycle costs no bind. While a fact is missing, nothing is launched, drained or deleted."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

import htas.daemon.loops.cycle as cycle
import htas.execution.machines as machines
from htas.daemon.loops.cycle import CycleResult, Daemon
from htas.daemon.loops.failed_searches import FailedSearches
from htas.daemon.loops.searching import Searching
from htas.daemon.loops.virtual import VirtualDriver
from htas.daemon.telemetry.metrics import Metrics
from htas.daemon.telemetry.status import status_of
from htas.execution.approvals import Approvals
from htas.execution.backoff import Backoffs
from htas.execution.bookkeeping import Bookkeeper
from htas.execution.cloud_calls import CloudCalls
from htas.execution.drainer import Drainer
from htas.execution.event_recorder import EventRecorder
from htas.execution.executor import Executor
from htas.execution.expectations import Expectations
from htas.execution.journal import Journal
from htas.execution.machines import Machines
from htas.execution.moves_seen import Retries
from htas.execution.rearrangement import RearrangementExecutor
from htas.execution.requested_moves import RequestedMoves
from htas.model.defects import Step
from htas.model.modes import Approval
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.reasons import Unplaced
from htas.planning.namespaces import pins
from htas.profiler.run_lengths import LearnedRunLengths
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.migration import SandboxMigration
from tests.builders import batch_group, make_node, make_policy
from tests.stories.play import Story, job

FACTS = (
    (Step.REPAIRS, Machines, "reconcile"),
    (Step.REPAIRS, Drainer, "advance"),
    (Step.REPAIRS, Bookkeeper, "remember"),
    (Step.JOURNAL, Journal, "business"),
    (Step.JOURNAL, Journal, "claims_made_since"),
    (Step.IDENTITY, machines, "identify"),
    (Step.IDENTITY, cycle, "strangers"),
    (Step.PINS, pins, "within_limits"),
    (Step.ALLOCATABLE, cycle, "capped_view"),
    (Step.RUN_LENGTHS, LearnedRunLengths, "applied"),
    (Step.EXPECTATIONS, Expectations, "applied"),
    (Step.EXPECTATIONS, Expectations, "settle"),
    (Step.FACTS, Expectations, "held_back"),
    (Step.FACTS, Backoffs, "current"),
    (Step.FACTS, Retries, "left_alone"),
    (Step.FACTS, SandboxMigration, "moving"),
    (Step.FACTS, cycle, "valid"),
    (Step.FACTS, cycle, "drains_of"),
    (Step.FACTS, cycle, "rearrangement_of"),
    (Step.FACTS, cycle, "orphans"),
    (Step.FACTS, cycle, "learned_allocatable"),
    (Step.SEARCHES, Searching, "settle"),
)
ACTS = (
    (Step.RECORDS, Approvals, "remember"),
    (Step.RECORDS, LearnedRunLengths, "learn"),
    (Step.MOVES, RequestedMoves, "carry_out"),
    (Step.EXPECTATIONS, Expectations, "expect_bind"),
    (Step.APPROVALS, Approvals, "gate"),
    (Step.APPROVALS, Approvals, "settle"),
    (Step.JOURNAL, cycle, "journal_settled"),
    (Step.LAUNCHES, Machines, "launch"),
    (Step.PROPOSALS, Executor, "begin"),
    (Step.REARRANGEMENT, RearrangementExecutor, "advance"),
    (Step.ANSWERS, CloudCalls, "answers"),
    (Step.SEARCHES, Searching, "ended"),
    (Step.SEARCHES, Searching, "ask"),
    (Step.SEARCHES, FailedSearches, "note"),
    (Step.EVENTS, EventRecorder, "announce"),
    (Step.HISTORY, cycle, "profile_rows"),
)
BEGUN = frozenset({Action.LAUNCH, Action.DRAIN, Action.DELETE})
FAILS_AT_S, MENDED_AT_S, END_S = 100.0, 700.0, 1400.0


def odd(*_: object, **__: object) -> Any:
    raise KeyError("flavor")


class Played:
    """A machine that has just become idle, a pod that fits on a node, and one that fits on none. Then a daemon starts
    of which one step fails, until it is mended.
    """

    def __init__(self, patch: pytest.MonkeyPatch, owner: Any, name: str, approval: Approval | None = None) -> None:
        policy = make_policy([batch_group()], approval=approval)
        story = self.story = Story(
            policy,
            job("first", runs_s=80.0),
            job("fits", at_s=110.0),
            job("large", at_s=110.0, cpu_m=7000),
            startup_s=30.0,
        )
        story.play(FAILS_AT_S)
        story.world.cluster.add_node(make_node("n-1", cpu="1", created_at=story.start))
        self.metrics, self.seen = Metrics(), list[CycleResult]()
        daemon = Daemon(story.ports, policy)
        daemon.listeners.append(self.seen.append)
        daemon.steps.on_defect = self.metrics.step_failed
        if owner is RequestedMoves:
            daemon.requested_moves.ask("default/first-1", "n-1")
        driver = VirtualDriver(story.world, daemon)
        patch.setattr(owner, name, odd)
        with capture_logs() as self.logs:
            driver.run_until(story.start + MENDED_AT_S)
        self.failed = list(self.seen)
        patch.undo()
        driver.run_until(story.start + END_S)

    def outcomes(self, *results: CycleResult) -> list[Outcome]:
        return [outcome for result in results for outcome in result.outcomes]

    def failures(self, step: Step) -> float:
        families = text_string_to_metric_families(self.metrics.render().decode())
        samples = [each for family in families for each in family.samples if each.labels.get("step") == step.value]
        (value,) = [each.value for each in samples if each.name == "htas_step_failures_total"]
        return float(value)

    def assert_told(self, step: Step) -> None:
        """The log has it once, with its traceback; the metric counts, and the status says why."""
        errors = [(entry["step"], str(entry["exc_info"])) for entry in self.logs if entry["log_level"] == "error"]
        assert errors.count((step.value, "'flavor'")) == 1
        told = [result for result in self.failed if step in {defect.step for defect in result.defects}]
        assert self.failures(step) >= len(told) >= 1
        status = status_of(told[-1], self.story.policy)
        assert any(f"a defect of htas: {step} failed" in problem for problem in status["problems"])
        assert status["store"] == "works"

    def assert_bound(self, *pods: str) -> None:
        bound = [
            each.subject for each in self.outcomes(*self.failed) if each.action is Action.BIND and each.status.is_well
        ]
        assert set(pods) <= set(bound)


@pytest.mark.parametrize(("step", "owner", "name"), FACTS, ids=[f"{step}: {name}" for step, _, name in FACTS])
def test_without_a_fact_pods_are_bound_and_nothing_else_begins(
    step: Step, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch, owner, name)
    played.assert_bound("default/fits-1")
    played.assert_told(step)
    assert [each for each in played.outcomes(*played.failed) if each.action in BEGUN] == []
    (waiting,) = {(item.pod, item.reason) for item in played.failed[-1].plan.unplaced}
    assert waiting == ("default/large-1", Unplaced.PLANNING_FAILED)
    assert "while these fail: " in (message := played.failed[-1].plan.unplaced[0].message)
    assert step in message
    assert played.seen[-1].defects == ()
    begun = {each.action for each in played.outcomes(*played.seen) if each.status is OutcomeStatus.DONE}
    assert begun >= BEGUN, "once it is mended, the pod gets its machine, and the idle one goes"


@pytest.mark.parametrize(("step", "owner", "name"), ACTS, ids=[f"{step}: {name}" for step, _, name in ACTS])
def test_an_act_that_fails_costs_no_bind(step: Step, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, owner, name, Approval(within_s=60.0) if owner is Approvals else None)
    played.assert_bound("default/fits-1")
    played.assert_told(step)


def test_without_the_gate_of_approvals_nobody_is_told_of_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, Approvals, "gate", Approval(within_s=60.0))
    assert not [result.plan.launch for result in played.failed if result.plan.launch]


def test_a_defect_in_a_bind_is_logged_once_and_the_pod_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, SandboxCluster, "bind")
    played.assert_told(Step.BINDS)
    binds = [each for each in played.outcomes(*played.failed) if each.action is Action.BIND]
    assert {each.status for each in binds} == {OutcomeStatus.FAILED}
    bound = [each for each in played.outcomes(*played.seen) if each.action is Action.BIND and each.status.is_well]
    assert "default/fits-1" in {each.subject for each in bound}
