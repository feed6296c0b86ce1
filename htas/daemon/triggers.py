"""When cycles run in real time: APScheduler's periodic jobs as a net, and a batching window on events.

One worker thread runs the cycles one after another; triggers only say which stages are due.
"""

from __future__ import annotations

from threading import Condition, Event
from time import monotonic

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from htas.daemon.cycle import Daemon
from htas.daemon.virtual import EVENT_STAGES
from htas.model.stages import Stage
from htas.ports import HTASError

log = structlog.get_logger()

POLL_S = 0.05
"""How often the cluster is asked whether something changed, in real seconds."""


class Triggers:
    """Runs a daemon until it is stopped. Periods are divided by the clock's speed: a fast world is served fast."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._speed = daemon.ports.clock.speed
        self._due: set[Stage] = set(Stage)
        self._wake = Condition()
        self._stopping = Event()
        self._scheduler = BackgroundScheduler()
        cycles = daemon.policy.cycles
        for stage, seconds in (
            (Stage.SCHEDULING, cycles.scheduling_s),
            (Stage.AUTOSCALING, cycles.autoscaling_s),
            (Stage.CLEANING, cycles.cleaning_s),
        ):
            self._scheduler.add_job(
                self.request,
                "interval",
                args=[frozenset({stage})],
                seconds=max(seconds / self._speed, 0.01),
                coalesce=True,
                max_instances=1,
                misfire_grace_time=None,
            )
        if cycles.batch_max_s > 0:
            self._scheduler.add_job(
                self._watch, "interval", seconds=POLL_S, coalesce=True, max_instances=1, misfire_grace_time=None
            )
        self._seen: int | None = None
        self._first_change: float | None = None
        self._last_change = 0.0

    def request(self, stages: frozenset[Stage]) -> None:
        """Say that stages are due; the worker runs them as soon as it is free."""
        with self._wake:
            self._due |= stages
            self._wake.notify()

    def run(self) -> None:
        """Run cycles until `stop`; the cycle under way is finished."""
        self._scheduler.start()
        try:
            while not self._stopping.is_set():
                with self._wake:
                    self._wake.wait_for(lambda: self._due or self._stopping.is_set())
                    stages, self._due = frozenset(self._due), set()
                if not self._stopping.is_set():
                    self._cycle(stages)
        finally:
            self._scheduler.shutdown(wait=True)

    def stop(self) -> None:
        with self._wake:
            self._stopping.set()
            self._wake.notify()

    def _cycle(self, stages: frozenset[Stage]) -> None:
        """One guarded cycle: a call that fails ends this cycle, never the daemon."""
        try:
            result = self._daemon.run_cycle(stages)
        except HTASError as error:
            log.warning("cycle given up, tried again", stages=sorted(stages), error=str(error))
            return
        except Exception:
            log.exception("cycle failed on a defect of htas, tried again", stages=sorted(stages))
            return
        for outcome in result.outcomes:
            log.info(outcome.verb, subject=outcome.subject, status=outcome.status.value, message=outcome.message)

    def _watch(self) -> None:
        """Open a batching window when something changed, and ask for a cycle when it ends."""
        try:
            changes = self._daemon.ports.cluster.changes()
        except HTASError as error:
            log.warning("cannot ask for changes", error=str(error))
            return
        now = monotonic()
        if self._seen is not None and changes != self._seen:
            self._last_change = now
            if self._first_change is None:
                self._first_change = now
        self._seen = changes
        cycles = self._daemon.policy.cycles
        if self._first_change is not None and (
            now - self._last_change >= cycles.batch_idle_s / self._speed
            or now - self._first_change >= cycles.batch_max_s / self._speed
        ):
            self._first_change = None
            self.request(EVENT_STAGES)
