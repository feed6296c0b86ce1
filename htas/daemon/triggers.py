"""When cycles run in real time: APScheduler's periodic jobs as a net, and a batching window on events.

One worker runs the cycles one after another; triggers only say which stages are due.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Event, Thread
from time import monotonic

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from htas.daemon.cycle import CycleResult, Daemon
from htas.model.policy import Policy
from htas.model.record import OutcomeStatus
from htas.model.stages import EVENT_STAGES, Stage
from htas.ports import HTASError

log = structlog.get_logger()

POLL_S = 0.02
"""How often the cluster is asked whether something changed, in real seconds: a look at one number."""
LONGEST_WAIT_S = 0.2
"""How long a worker without anything to do waits before it looks for answers, and whether it may go on."""
OFTEN = frozenset({"bind", "evict", "migrate", "move", "displace"})
"""Outcomes too many to be told one by one where they went well: 5,000 binds are one line each cycle."""


class Triggers:
    """Runs a daemon until it is stopped. Periods are divided by the clock's speed: a fast world is served fast.

    `on_failure` is told of cycles that failed, and why. With `may_go_on` false no cycle is begun any more.
    """

    def __init__(
        self,
        daemon: Daemon,
        on_failure: Callable[[str], None] = lambda why: None,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._daemon = daemon
        self._may_go_on = may_go_on
        self._on_failure = on_failure
        self._speed = daemon.ports.clock.speed
        self._due: set[Stage] = set(Stage)
        self._wake = Condition()
        self._stopping = Event()
        self._policy: Policy | None = None
        self._scheduler = BackgroundScheduler()
        self._schedule()
        self._seen: int | None = None
        self._first_change: float | None = None
        self._last_change = 0.0

    def request(self, stages: frozenset[Stage]) -> None:
        """Say that stages are due; the worker runs them as soon as it is free."""
        with self._wake:
            self._due |= stages
            self._wake.notify()

    def _request_one(self, stage: Stage) -> None:
        if stage is not Stage.EDGE or self._daemon.has_edge:
            self.request(frozenset({stage}))

    def adopt(self, policy: Policy) -> None:
        """Have the daemon go on with a new policy, after the cycle under way."""
        with self._wake:
            self._policy = policy
            self._due |= set(Stage)
            self._wake.notify()

    def run(self) -> None:
        """Run cycles until `stop`; the cycle under way is finished."""
        with suppress(HTASError):  # from before the first cycle on: what it did not see must bring the next
            self._seen = self._daemon.changes()
        self._scheduler.start()
        watcher = Thread(target=self._watch, name="changes", daemon=True)
        watcher.start()
        try:
            while not self._stopping.is_set() and self._may_go_on():
                with self._wake:
                    self._wake.wait_for(lambda: self._due or self._stopping.is_set(), LONGEST_WAIT_S)
                    stages, self._due = frozenset(self._due), set()
                    policy, self._policy = self._policy, None
                if policy is not None:
                    self._daemon.adopt(policy)
                    self._schedule()
                if not stages and self._daemon.has_answers:
                    stages = EVENT_STAGES
                if stages and not self._stopping.is_set() and self._may_go_on():
                    self._cycle(stages)
        finally:
            self._stopping.set()
            self._scheduler.shutdown(wait=True)
            watcher.join()

    def stop(self) -> None:
        self._stopping.set()
        with self._wake:
            self._wake.notify()

    def _schedule(self) -> None:
        """Periodic cycles as the policy has them; jobs that are there already get its periods."""
        cycles = self._daemon.policy.cycles
        for stage, seconds in (
            (Stage.SCHEDULING, cycles.scheduling_s),
            (Stage.AUTOSCALING, cycles.autoscaling_s),
            (Stage.CLEANING, cycles.cleaning_s),
            (Stage.EDGE, self._daemon.policy.edge.period_s),
        ):
            self._scheduler.add_job(
                self._request_one,
                "interval",
                args=[stage],
                seconds=max(seconds / self._speed, 0.01),
                id=stage.value,
                replace_existing=True,
                coalesce=True,
                max_instances=1,
                misfire_grace_time=None,
            )

    def _cycle(self, stages: frozenset[Stage]) -> None:
        """One guarded cycle: a call that fails ends this cycle, never the daemon."""
        try:
            result = self._daemon.run_cycle(stages)
        except HTASError as error:
            log.warning("cycle given up, tried again", stages=sorted(stages), error=str(error))
            self._on_failure(str(error))
            return
        except Exception as error:
            log.exception("cycle failed on a defect of htas, tried again", stages=sorted(stages))
            self._on_failure(repr(error))
            return
        _log(result)

    def _watch(self) -> None:
        while not self._stopping.wait(POLL_S):
            cycles = self._daemon.policy.cycles
            if cycles.batch_max_s > 0:
                self._look(cycles.batch_idle_s / self._speed, cycles.batch_max_s / self._speed)

    def _look(self, idle_s: float, longest_s: float) -> None:
        """Open a batching window when something changed, and ask for a cycle when it ends."""
        try:
            changes = self._daemon.changes()
        except HTASError as error:
            log.warning("cannot ask for changes", error=str(error))
            self._stopping.wait(1.0)
            return
        now = monotonic()
        if changes != self._seen:
            self._last_change = now
            if self._first_change is None:
                self._first_change = now
        self._seen = changes
        if self._first_change is not None and (
            now - self._last_change >= idle_s or now - self._first_change >= longest_s
        ):
            self._first_change = None
            self.request(EVENT_STAGES)


def _log(result: CycleResult) -> None:
    """What a cycle did: each outcome that matters by itself, the rest in one line."""
    many: dict[str, int] = {}
    for outcome in result.outcomes:
        if outcome.verb in OFTEN and outcome.status is OutcomeStatus.DONE:
            many[outcome.verb] = many.get(outcome.verb, 0) + 1
            continue
        say = log.info if outcome.status is OutcomeStatus.DONE else log.warning
        say(outcome.verb, subject=outcome.subject, status=outcome.status.value, message=outcome.message)
    if many:
        took_ms = round(1000 * result.planning_s)
        log.info("cycle", **many, unplaced=len(result.plan.unplaced), planning_ms=took_ms)
