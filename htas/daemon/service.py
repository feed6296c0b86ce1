"""`htas run`: one process from its start to its clean end, on the sandbox or on a real cluster."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex
from threading import Event, Timer

import structlog

from htas.adapters.kubernetes.lease import KubernetesLease
from htas.config.loader import Loaded
from htas.daemon.cycle import Daemon
from htas.daemon.kubernetes_wiring import KubernetesWorld, identity
from htas.daemon.leadership import Leadership, Timing
from htas.daemon.triggers import Triggers
from htas.daemon.wiring import open_store, sandbox_daemon, store_path
from htas.execution.calls import ParallelCalls
from htas.ports import PermanentError

log = structlog.get_logger()

SYNC_LOG_S = 10.0
"""How often a start that waits says what it waits for."""


class Service:
    """What `htas run` runs. `stop` and `reload` may be called from signal handlers."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._stopping = Event()
        self._triggers: Triggers | None = None

    def stop(self) -> None:
        """Finish the cycle under way and end."""
        self._stopping.set()
        if self._triggers is not None:
            self._triggers.stop()

    def reload(self) -> None:
        """Read the configuration again, soon."""

    def run(self, for_s: float | None = None) -> None:
        """Run until `stop`, or for so many seconds. Raises PermanentError when another daemon has taken the lease."""
        timer = Timer(for_s, self.stop) if for_s is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        log.info("htas runs", cluster=self._loaded.policy.cluster, groups=len(self._loaded.policy.groups))
        setting = self._loaded.sandbox
        if setting is not None:
            with sandbox_daemon(self._loaded, setting) as daemon:
                self._cycle(daemon, None)
        else:
            self._run_on_kubernetes()
        log.info("htas ended")

    def _run_on_kubernetes(self) -> None:
        loaded = self._loaded
        provider = loaded.settings.provider.kwok
        assert provider is not None
        with ExitStack() as stack:
            store = open_store(loaded)
            stack.callback(store.close)
            world = KubernetesWorld(loaded, provider)
            stack.callback(world.close)
            world.watch()
            leadership = self._leadership(world)
            if leadership is not None:
                stack.callback(leadership.stop)
            if not self._is_synced(world) or not self._leads(leadership):
                return
            calls = ParallelCalls(
                loaded.settings.kubernetes.connections, lambda: leadership is None or leadership.is_leader
            )
            stack.callback(calls.close)
            daemon = Daemon(world.ports(store), loaded.policy, calls=calls)
            if leadership is not None and not self._led_last(leadership):
                daemon.take_over()
            world.lead()
            self._cycle(daemon, leadership)

    def _leadership(self, world: KubernetesWorld) -> Leadership | None:
        setting = self._loaded.settings.leader_election
        if not setting.enabled:
            return None
        lease = KubernetesLease(world.api, world.namespace, f"htas-{self._loaded.policy.cluster}")
        timing = Timing(setting.lease_duration, setting.renew_deadline, setting.retry_period)
        leadership = Leadership(lease, f"{identity()}_{token_hex(4)}", timing)
        leadership.start()
        return leadership

    def _is_synced(self, world: KubernetesWorld) -> bool:
        """Whether every kind has been listed; False: told to stop before."""
        waited = 0
        while world.cluster.live.missing:
            if self._stopping.wait(0.05):
                return False
            waited += 1
            if waited % int(SYNC_LOG_S / 0.05) == 0:
                log.info("waits to be synced", missing=world.cluster.live.missing)
        log.info("synced", nodes=len(world.cluster.live.view().nodes), pods=len(world.cluster.live.view().pods))
        return True

    def _leads(self, leadership: Leadership | None) -> bool:
        """Whether we lead; False: told to stop before."""
        if leadership is None:
            return True
        told = ""
        while not leadership.wait(0.1):
            if self._stopping.is_set():
                return False
            if leadership.holder not in ("", told):
                told = leadership.holder
                log.info("stands by", leader=told)
        log.info("leads", identity=leadership.identity, term=leadership.term)
        return True

    def _led_last(self, leadership: Leadership) -> bool:
        """Whether nobody has led since this journal's daemon did; from now on it is ours."""
        path = Path(f"{store_path(self._loaded)}.term")
        last = path.read_text().strip() if path.exists() else ""
        path.write_text(f"{leadership.term}\n")
        return last == str(leadership.previous_term)

    def _cycle(self, daemon: Daemon, leadership: Leadership | None) -> None:
        def may_go_on() -> bool:
            return leadership is None or leadership.is_leader

        self._triggers = Triggers(daemon, may_go_on=may_go_on)
        if not self._stopping.is_set():
            self._triggers.run()
        if not may_go_on():
            raise PermanentError("another daemon may lead now; this one ends, to be started again as a stand-by")
