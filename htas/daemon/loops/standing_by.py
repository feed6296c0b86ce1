"""Standing by: until a daemon has seen all of its cluster, and until it leads there."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

import structlog

from htas.daemon.loops.leadership import Leadership
from htas.daemon.recommend.kubernetes import WatchedKubernetes
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.daemon.wiring.kubernetes import KubernetesWorld

log = structlog.get_logger()

SYNC_LOG_S = 10.0
"""How often a start that waits says what it waits for."""
LOOK_S = 0.05
"""Between looks at what is waited for."""


@dataclass(frozen=True, slots=True)
class StandingBy:
    """Waits, and tells those who probe and those who read the log what for."""

    stopping: Event
    health: Health
    metrics: Metrics

    def is_synced(self, world: KubernetesWorld | WatchedKubernetes) -> bool:
        """Whether every kind has been listed; False: told to stop before."""
        waited = 0
        while world.cluster.live.missing:
            if self.stopping.wait(LOOK_S):
                return False
            waited += 1
            if waited % int(SYNC_LOG_S / LOOK_S) == 0:
                why = world.cluster.complaint()
                self.health.failed(why)
                log.warning("waits to be synced", why=why)
        view = world.cluster.live.view()
        self.health.synced()
        self.health.succeeded("synced")
        log.info("synced", nodes=len(view.nodes), pods=len(view.pods))
        for problem in view.problems:
            said = "part of an object passed over" if problem.is_doubt else "object left out"
            log.warning(said, where=problem.where, what=problem.what)
        return True

    def leads(self, leadership: Leadership | None) -> bool:
        """Whether we lead; False: told to stop before. Until then every look at the lease is a success."""
        if leadership is None:
            self.metrics.leads(True)
            return True
        told, seen, waited = "", None, 0
        while not leadership.wait(LOOK_S):
            if self.stopping.is_set():
                return False
            waited += 1
            if leadership.error:
                self.health.failed(leadership.error)
                if waited % int(SYNC_LOG_S / LOOK_S) == 0:
                    log.warning("waits to lead", why=leadership.error)
            elif leadership.checked_at != seen:
                seen = leadership.checked_at
                self.health.succeeded("a look at the lease")
            if leadership.holder not in ("", told):
                told = leadership.holder
                log.info("stands by", leader=told)
        log.info("leads", identity=leadership.identity, term=leadership.term)
        self.metrics.leads(True)
        return True
