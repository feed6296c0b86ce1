"""`htas run`: one process from its start to its clean end, on the sandbox or on a real cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock, Thread, Timer

import structlog

from htas.adapters.owning import owned
from htas.config.loader import Loaded
from htas.daemon.http.app import Endpoints, HttpServer
from htas.daemon.http.audit import audit_of
from htas.daemon.http.authorization import Gate, NotConnectedYet
from htas.daemon.http.host_names import HostNames
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.http.server import Certificate
from htas.daemon.loops.cycle import CycleResult, Daemon
from htas.daemon.loops.cycle_view import seen, seen_of_course
from htas.daemon.loops.cycling import Cycling
from htas.daemon.loops.leadership import Leadership, LeaseTiming
from htas.daemon.loops.optimizer import ProcessOptimizer
from htas.daemon.loops.reloading import Reloading
from htas.daemon.loops.standing_by import StandingBy
from htas.daemon.loops.triggers import OFTEN, Triggers
from htas.daemon.recommend.kubernetes import WatchedKubernetes
from htas.daemon.recommend.recommender import Recommender
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.logs import set_up_logs
from htas.daemon.telemetry.metrics import Metrics
from htas.daemon.telemetry.orphan_log import OrphanLog
from htas.daemon.telemetry.status import StatusBoard
from htas.daemon.wiring.kubernetes import Hooks, KubernetesWorld, identity
from htas.daemon.wiring.remote_store import attend, attend_overtaking, begin
from htas.daemon.wiring.sandbox_daemon import refuse_another_worlds, sandbox_daemon
from htas.daemon.wiring.stores import open_store, reading_store, store_path
from htas.documents.month import looked_at, month_of
from htas.execution.calls import ParallelCalls
from htas.execution.steps import Steps
from htas.model.defects import Step
from htas.ports import HTASError, PermanentError, StorePort
from htas.profiler.meter import Meter
from htas.web.seat import RECOMMEND, Seat

log = structlog.get_logger()

STAND_ASIDE_S = 60.0
"""How long a leader that has made way for a command does nothing: what that did is not to be undone at once."""


def gate_of(loaded: Loaded) -> Gate:
    """Who may ask this daemon, as configured."""
    setting = loaded.settings.http
    token_file = loaded.directory / setting.token_file if setting.token_file is not None else None
    return Gate(token_file, NotConnectedYet() if setting.token_review else None)


def certificate_of(loaded: Loaded) -> Certificate | None:
    """The configured certificate, with its key; raises PermanentError where it cannot be read."""
    tls = loaded.settings.http.tls
    if tls.cert_file is None or tls.key_file is None:
        return None
    return Certificate(loaded.directory / tls.cert_file, loaded.directory / tls.key_file)


PREDECESSOR_S = 5.0
"""How long a process that is ending may still have the journal."""


class Service:
    """What `htas run` runs. `stop` and `reload` may be called from signal handlers.

    It ends by itself where a command takes its place (`htas handback`), a while after it has made way for that.
    """

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._stopping = Event()
        self._lock = Lock()
        self._has_made_way = False
        self._triggers: Triggers | None = None
        self._health = Health(loaded.policy.cycles)
        self._metrics = Metrics()
        self._reports = Steps()
        self._reports.on_defect = self._metrics.step_failed
        self._gate = gate_of(loaded)
        self._moves, self._searches = MigrateEndpoint(), OptimizeEndpoint()
        self._seat = Seat("live", lambda: self._loaded.policy, partial(reading_store, loaded))
        self._seat.budget_nanos = lambda: self._loaded.settings.monthly_budget
        self._reloading = Reloading(loaded, self._adopt, self._metrics.reloaded)

    def stop(self) -> None:
        """Finish the cycle under way and end."""
        self._stopping.set()
        if self._triggers is not None:
            self._triggers.stop()

    def reload(self) -> None:
        """Read the configuration again, soon."""
        self._reloading.look_now()

    def run(self, for_s: float | None = None) -> None:
        """Run until `stop`, or for so many seconds. Raises PermanentError when another daemon has taken the lease."""
        with ExitStack() as stack:
            if for_s is not None:
                timer = Timer(for_s, self.stop)
                timer.daemon = True
                timer.start()
                stack.callback(timer.cancel)
            set_up_logs(self._loaded.settings.logging)
            log.info("htas runs", cluster=self._loaded.policy.cluster, groups=len(self._loaded.policy.groups))
            self._own_the_journal(stack)
            self._serve(stack)
            self._reloading.start()
            stack.callback(self._reloading.stop)
            setting = self._loaded.sandbox
            if self._loaded.settings.mode == "recommend":
                self._recommend_on_kubernetes(stack)
            elif setting is not None:
                optimizer = ProcessOptimizer()
                stack.callback(optimizer.close)
                daemon = stack.enter_context(sandbox_daemon(self._loaded, setting, optimizer))
                self._begin_in_sandbox(daemon, is_new=setting.address is None)
                self._health.synced()
                self._cycle(daemon, None, identity())
            else:
                self._run_on_kubernetes(stack)
        log.info("htas ended")

    def _own_the_journal(self, stack: ExitStack) -> None:
        """Where no lease keeps a second daemon from acting, only one may have the file; raises PermanentError.

        With a lease several may: the lock keeps `htas store restore` alone from the file.
        """
        loaded = self._loaded
        is_guarded = loaded.sandbox is None and loaded.settings.leader_election.enabled
        if loaded.sqlite is not None and not (is_guarded and loaded.sqlite.path == ":memory:"):
            what = "end it, or name another store.sqlite.path"
            what += "" if loaded.sandbox is not None else ", or set leaderElection.enabled: true"
            stack.callback(os.close, owned(store_path(loaded), PREDECESSOR_S, what, is_shared=is_guarded))

    def _begin_in_sandbox(self, daemon: Daemon, is_new: bool) -> None:
        store = daemon.ports.store
        self._health.remark = attend(store, self._metrics.store)
        begin(store)
        if is_new:
            refuse_another_worlds(store, store_path(self._loaded), daemon.ports.clock.now())

    def _serve(self, stack: ExitStack) -> None:
        """Listen before anything else, so that probes are answered while the rest starts."""
        setting = self._loaded.settings.http
        if setting.address is not None:
            desks = Endpoints(self._health, self._metrics, self._moves, self._searches, self._seat)
            audit = audit_of(self._loaded)
            if audit is not None:
                audit.start()
                stack.callback(audit.close)
            certificate, hosts = certificate_of(self._loaded), HostNames(setting.hosts)
            server = HttpServer(setting.address, desks, self._gate, setting.health_address, certificate, audit, hosts)
            server.start()
            stack.callback(server.stop)
            log.info("listens", host=setting.address[0], port=server.port, healthPort=server.health_port)

    def _stand_aside(self) -> None:
        """Answer probes alone, once everything else has ended."""
        if self._has_made_way:
            log.info("stands aside", seconds=STAND_ASIDE_S)
            self._stopping.wait(STAND_ASIDE_S)

    def _run_on_kubernetes(self, stack: ExitStack) -> None:
        loaded, told = self._loaded, self._metrics
        stack.callback(self._stand_aside)
        store = self._opened_store(stack)
        world = KubernetesWorld(loaded, Hooks(told.called, told.called_cloud, told.restarted, told.dropped))
        leads, leadership = self._lead(world, stack)
        if not leads:
            return
        begin(store)

        def may_act() -> bool:
            return leadership is None or leadership.is_leader

        world.fence(may_act)
        calls = ParallelCalls(loaded.settings.kubernetes.connections, may_act)
        stack.callback(calls.close)
        cloud_calls = ParallelCalls(world.supply.calls_at_once)  # the fence stops each call by itself
        stack.callback(cloud_calls.close)
        optimizer = ProcessOptimizer()
        stack.callback(optimizer.close)
        daemon = Daemon(
            world.ports(store), self._loaded.policy, calls=calls, cloud_calls=cloud_calls, optimizer=optimizer
        )
        attend_overtaking(store, daemon.note_overtaken)
        if leadership is not None:
            self._take_over(daemon, leadership)
        world.lead()
        Thread(target=self._check_cloud, args=(world,), name="cloud check", daemon=True).start()
        stack.callback(world.rest)
        self._cycle(daemon, leadership, leadership.identity if leadership is not None else identity())

    def _recommend_on_kubernetes(self, stack: ExitStack) -> None:
        """As `_run_on_kubernetes`, on ports that cannot act."""
        loaded, told = self._loaded, self._metrics
        store = self._opened_store(stack)
        world = WatchedKubernetes(loaded, Hooks(on_call=told.called, on_restart=told.restarted))
        leads, leadership = self._lead(world, stack)
        if not leads:
            return
        begin(store)
        world.fence(lambda: leadership is None or leadership.is_leader)
        ports = world.ports(store)
        recommender = Recommender(ports, loaded.policy, loaded.settings.recommend.model())
        stack.callback(recommender.close)
        name = leadership.identity if leadership is not None else identity()
        self._seat.mode = RECOMMEND
        recommender.course_listeners.append(self._tell_of_course)
        self._run_cycles(recommender, StatusBoard(ports.announcer, name, lambda: recommender.policy), leadership)

    def _opened_store(self, stack: ExitStack) -> StorePort:
        store = open_store(self._loaded)
        stack.callback(store.close)
        self._health.remark = attend(store, self._metrics.store)
        return store

    def _lead(self, world: KubernetesWorld | WatchedKubernetes, stack: ExitStack) -> tuple[bool, Leadership | None]:
        """Watch a cluster until all of it is seen and we lead there; False: told to stop before."""
        stack.callback(world.close)
        if self._loaded.settings.http.token_review:
            self._gate.reviewer = world.reviewer
        world.watch()
        leadership = self._leadership(world)
        if leadership is not None:
            stack.callback(leadership.stop)
        standing_by = StandingBy(self._stopping, self._health, self._metrics)
        return standing_by.is_synced(world) and standing_by.leads(leadership), leadership

    def _tell_of_course(self, result: CycleResult, number: int | None) -> None:
        """What would have been done in a cycle of the course with HTAS."""
        snapshot, plan, outcomes, number = seen_of_course(result, number)
        self._seat.chronicle.observe(snapshot, plan, outcomes, number)
        self._metrics.observe_course(outcomes)
        for outcome in outcomes:
            if outcome.action not in OFTEN:
                log.info("with htas", action=outcome.action.value, subject=outcome.subject, message=outcome.message)

    def _check_cloud(self, world: KubernetesWorld) -> None:
        """Say what the configuration names that the cloud lacks: beside the cycles, and once."""
        try:
            for problem in world.supply.problems():
                log.warning("the cloud is not as configured", problem=problem)
        except HTASError as error:
            log.warning("the cloud could not be checked", error=str(error))

    def _leadership(self, world: KubernetesWorld | WatchedKubernetes) -> Leadership | None:
        setting = self._loaded.settings.leader_election
        if not setting.enabled:
            return None
        timing = LeaseTiming(setting.lease_duration, setting.renew_deadline, setting.retry_period)
        leadership = Leadership(world.lease(), f"{identity()}_{token_hex(4)}", timing)
        leadership.start()
        return leadership

    def _take_over(self, daemon: Daemon, leadership: Leadership) -> None:
        """Unless nobody has led since this journal's daemon did, what the journal still intends is dropped.

        So it is with a journal that all daemons share: a leader that was cut off from it may have undone since what
        stands there. The term is noted last: a crash in between leaves it to be done again.
        """
        path = Path(f"{store_path(self._loaded)}.term")
        try:
            last = path.read_text().strip() if path.exists() else ""
            if last != str(leadership.previous_term):
                for outcome in daemon.take_over():
                    log.info(
                        outcome.action.value,
                        subject=outcome.subject,
                        status=outcome.status.value,
                        message=outcome.message,
                    )
            path.write_text(f"{leadership.term}\n")
        except Exception as error:  # a full disk, say, or a defect: work is placed meanwhile
            what = "the journal of another term is dropped as soon as it can be written"
            log.warning(what, error=str(error), exc_info=not isinstance(error, HTASError | OSError))
            daemon.note_overtaken()

    def _cycle(self, daemon: Daemon, leadership: Leadership | None, name: str) -> None:
        meter = Meter(daemon.ports.store, lambda: daemon.bookkeeper.revisions)
        board = StatusBoard(daemon.ports.announcer, name, lambda: daemon.policy)
        self._metrics.state.spent_nano_seconds = lambda now: meter.nano_seconds(daemon.policy.catalogue.billing, now)
        self._metrics.state.budget_nanos = lambda: self._loaded.settings.monthly_budget
        self._metrics.state.month = lambda now: month_of(
            daemon.ports.store.bills(looked_at(now)), daemon.policy.catalogue.billing, now
        )
        daemon.steps.on_defect = self._metrics.step_failed
        daemon.searching.on_answer = self._metrics.searches.answered
        self._moves.requests = daemon.requested_moves
        self._searches.searching = daemon.searching
        self._seat.approvals = daemon.approvals
        self._metrics.state.awaits = lambda: daemon.approvals.waiting
        try:
            self._run_cycles(daemon, board, leadership)
        finally:
            self._moves.requests = None
            self._searches.searching = None
            self._seat.approvals = None

    def _run_cycles(self, daemon: Cycling, board: StatusBoard, leadership: Leadership | None) -> None:
        """Run cycles until told to stop, or until another daemon is to lead; everybody who looks is told of each."""

        def may_go_on() -> bool:
            return leadership is None or (leadership.is_leader and not leadership.successor)

        self._metrics.state.policy = lambda: daemon.policy
        daemon.listeners += [lambda _: self._health.succeeded("a cycle"), self._metrics.observe, board.observe]
        daemon.listeners.append(OrphanLog().observe)
        self._tell_the_seat(daemon)
        self._tell_of_store(daemon)
        reports = [partial(self._report, listener) for listener in daemon.listeners]
        daemon.listeners[:] = [self._begin_reports, *reports]
        triggers = Triggers(daemon, on_failure=self._failed, may_go_on=may_go_on)
        board.upcoming = self._seat.upcoming = triggers.upcoming
        with self._lock:
            self._triggers = triggers
            if self._loaded.policy is not daemon.policy:  # read anew in the meantime
                triggers.adopt(self._loaded.policy)
        if not self._stopping.is_set():
            triggers.run()
        if leadership is not None and leadership.is_leader and leadership.successor:
            self._metrics.leads(False)
            self._has_made_way = True
            log.info("makes way", successor=leadership.successor)
        elif not may_go_on():
            self._metrics.leads(False)
            raise PermanentError("another daemon may lead now; this one ends, to be started again as a stand-by")

    def _begin_reports(self, _: CycleResult) -> None:
        self._reports.taken()

    def _report(self, listener: Callable[[CycleResult], None], result: CycleResult) -> None:
        """Have one listener look at a cycle; a defect of it costs neither the others nor the next cycle."""
        self._reports.attempt(Step.REPORTS, partial(listener, result), None)

    def _tell_the_seat(self, daemon: Cycling) -> None:
        """Have the API and the pages show each cycle. A sandbox's clock is not the wall's."""
        self._seat.present = daemon.ports.clock.now
        self._seat.policy = lambda: daemon.policy
        daemon.listeners.append(lambda result: self._seat.observe(seen(result, daemon)))

    def _tell_of_store(self, daemon: Cycling) -> None:
        """Have probes and metrics tell when nothing can be written down, beside what the store says of itself."""
        remark = self._health.remark

        def remarks() -> str:
            problem = daemon.store_problem
            told = f"the store cannot be written, HTAS launches and drains nothing: {problem}" if problem else ""
            last, reports = self._metrics.last, [each.message for each in self._reports.failed]
            return "\n".join(filter(None, (told, *(last.remarks if last is not None else ()), *reports, remark())))

        self._health.remark = remarks
        self._metrics.store.problem = lambda: daemon.store_problem

    def _failed(self, why: str) -> None:
        self._health.failed(why)
        self._metrics.failed(why)

    def _adopt(self, loaded: Loaded) -> None:
        """A configuration that was read anew: from the next cycle on."""
        set_up_logs(loaded.settings.logging)
        self._health.adopt(loaded.policy.cycles)
        with self._lock:
            self._loaded = loaded
            if self._triggers is not None:
                self._triggers.adopt(loaded.policy)
