"""When cycles run in real time: the agenda says when, and news of the world wakes whoever waits for that.

One worker runs the cycles one after another. It is woken by what happens, and looks at nothing meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Event
from time import monotonic

import structlog

from htas.daemon.loops.agenda import Agenda
from htas.daemon.loops.cycle import CycleResult
from htas.daemon.loops.cycling import Cycling
from htas.model.outcomes import Action, OutcomeStatus
from htas.model.policy import Policy
from htas.model.stages import ALL_STAGES, Stage
from htas.ports import HTASError

log = structlog.get_logger()

LONGEST_WAIT_S = 0.5
"""How long a worker without anything to do waits before it asks whether it may go on."""
OFTEN = frozenset({"bind", "evict", "migrate", "move", "displace"})
"""Outcomes too many to be told one by one where they went well: 5,000 binds are one line each cycle."""


class Triggers:
    """Runs a daemon until it is stopped. Periods are divided by the clock's speed: a fast world is served fast.

    `on_failure` is told of cycles that failed, and why. With `may_go_on` false no cycle is begun any more.
    """

    def __init__(
        self,
        daemon: Cycling,
        on_failure: Callable[[str], None] = lambda why: None,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._daemon = daemon
        self._may_go_on = may_go_on
        self._on_failure = on_failure
        self._speed = daemon.ports.clock.speed
        self._asked: set[Stage] = set(ALL_STAGES)
        self._wake = Condition()
        self._is_listening = False
        """Whether news is to wake the worker. While some is waited with, or a cycle runs, more of it need not."""
        self._has_news = False
        self._stopping = Event()
        self._policy: Policy | None = None
        self._agenda = Agenda(*self._times(), monotonic())
        self._seen: int | None = None

    def request(self, stages: frozenset[Stage]) -> None:
        """Say that stages are due; the worker runs them as soon as it is free."""
        with self._wake:
            self._asked |= stages
            self._wake.notify()

    def adopt(self, policy: Policy) -> None:
        """Have the daemon go on with a new policy, after the cycle under way."""
        with self._wake:
            self._policy = policy
            self._asked |= ALL_STAGES
            self._wake.notify()

    def run(self) -> None:
        """Run cycles until `stop`; the cycle under way is finished."""
        with suppress(HTASError):  # from before the first cycle on: what it did not see must bring the next
            self._seen = self._daemon.changes()
        self._daemon.on_news(self._hear)
        try:
            while self._goes_on():
                stages = self._next()
                if stages and self._goes_on():
                    self._cycle(stages)
        finally:
            self._stopping.set()
            self._daemon.on_news(lambda: None)

    def upcoming(self) -> dict[Stage, float]:
        """When each stage runs next by its period, by the world's clock. For the thread that runs cycles."""
        now, started = self._daemon.ports.clock.now(), monotonic()
        return {stage: now + (at - started) * self._speed for stage, at in self._agenda.upcoming().items()}

    def stop(self) -> None:
        self._stopping.set()
        with self._wake:
            self._wake.notify()

    def _goes_on(self) -> bool:
        return not self._stopping.is_set() and self._may_go_on()

    def _times(self) -> tuple[dict[Stage, float], float, float]:
        """Periods and window of the policy, in real seconds."""
        cycles = self._daemon.policy.cycles
        every_s = {
            Stage.SCHEDULING: cycles.scheduling_s / self._speed,
            Stage.AUTOSCALING: cycles.autoscaling_s / self._speed,
            Stage.CLEANING: cycles.cleaning_s / self._speed,
        }
        return every_s, cycles.batch_idle_s / self._speed, cycles.batch_max_s / self._speed

    def _hear(self) -> None:
        """Something has happened. Called from any thread, thousands of times a second while work pours in."""
        if self._is_listening:
            with self._wake:
                self._has_news = True
                self._wake.notify()

    def _next(self) -> frozenset[Stage]:
        """What is due, after waiting for it; nothing, if it is time to ask whether to go on."""
        self._is_listening = True  # before looking: what comes after the look must wake
        self._look()
        if self._agenda.expects:
            self._is_listening = False
        with self._wake:
            self._wake.wait_for(self._is_called, self._pause_s())
            self._is_listening = self._has_news = False
            self._agenda.ask(frozenset(self._asked))
            self._asked.clear()
            policy, self._policy = self._policy, None
        if policy is not None:
            self._daemon.adopt(policy)
            self._agenda.adopt(*self._times(), monotonic())
        self._look()
        return self._agenda.due(monotonic())

    def _is_called(self) -> bool:
        return bool(self._has_news or self._asked or self._policy is not None or self._stopping.is_set())

    def _pause_s(self) -> float:
        return max(0.0, min(LONGEST_WAIT_S, self._agenda.next_at() - monotonic()))

    def _look(self) -> None:
        """Note what has changed since the last look."""
        with suppress(HTASError):  # whoever cannot be asked is found away by the next cycle
            changes = self._daemon.changes()
            if changes != self._seen:
                self._seen = changes
                self._agenda.changed(monotonic())
        if self._daemon.has_answers:
            self._agenda.answered(monotonic())

    def _cycle(self, stages: frozenset[Stage]) -> None:
        """One guarded cycle: a call that fails ends this cycle, never the daemon."""
        began = monotonic()
        self._agenda.began(stages, began)
        result = self._guarded(stages)
        if result is None:
            self._agenda.failed(stages, monotonic())
        else:
            self._agenda.ended(began, monotonic(), waits_to_buy=result.waits_to_buy)
        period_s = self._daemon.policy.edge.period_s / self._speed if self._daemon.has_edge else None
        self._agenda.follow(Stage.EDGE, period_s, monotonic())

    def _guarded(self, stages: frozenset[Stage]) -> CycleResult | None:
        try:
            result = self._daemon.run_cycle(stages)
        except HTASError as error:
            log.warning("cycle given up, tried again", stages=sorted(stages), error=str(error))
            self._on_failure(str(error))
            return None
        except Exception as error:
            log.exception("cycle failed on a defect of htas, tried again", stages=sorted(stages))
            self._on_failure(repr(error))
            return None
        _log(result)
        return result


def _log(result: CycleResult) -> None:
    """What a cycle did: each outcome that matters by itself, the rest in one line."""
    many: dict[str, int] = {}
    for outcome in result.outcomes:
        if outcome.status is OutcomeStatus.RECOMMENDED:
            continue  # the same again in each cycle: the course with HTAS tells what is new
        if outcome.action in OFTEN and outcome.status is OutcomeStatus.DONE:
            many[outcome.action] = many.get(outcome.action, 0) + 1
            continue
        is_well = outcome.status is OutcomeStatus.DONE and outcome.action is not Action.OTHER_FLAVOUR
        say = log.info if is_well else log.warning
        say(outcome.action.value, subject=outcome.subject, status=outcome.status.value, message=outcome.message)
    if many:
        took_ms = round(1000 * result.planning_s)
        log.info("cycle", **many, unplaced=len(result.plan.unplaced), planning_ms=took_ms)
