"""A daemon that only recommends: it watches, plans and records, and follows what would have come of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter

import msgspec
import structlog

from htas.daemon.loops.cycle import REMEMBER_AGAIN_S, REMEMBERED_RUNS, CycleResult
from htas.daemon.recommend.in_charge import is_in_charge_of, snapshot_in_charge
from htas.daemon.recommend.proposed import proposed
from htas.daemon.recommend.real_course import RealCourse
from htas.daemon.recommend.shadow import Shadow
from htas.daemon.recommend.watching import WatchingPorts
from htas.model.edge import Tier
from htas.model.modes import Charge
from htas.model.outcomes import Outcome
from htas.model.policy import Policy
from htas.model.record import CycleRecord, Run
from htas.model.savings import Savings
from htas.model.snapshot import ClusterView, Memory
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.namespaces import pins
from htas.planning.planner import Planner, plan
from htas.ports import HTASError
from htas.profiler.rows import profile_rows
from htas.profiler.run_lengths import LearnedRunLengths
from htas.profiler.stays import Stays

log = structlog.get_logger()


class Recommender:
    """Runs cycles as the daemon that acts does, on ports that cannot act.

    Each cycle plans for the cluster as it is, were HTAS in charge of it from now on, and takes the course with HTAS
    (`Shadow`), which began with the first cycle on record, up to the present.
    """

    def __init__(self, ports: WatchingPorts, policy: Policy, charge: Charge, *, planner: Planner = plan) -> None:
        self.ports = ports
        self.policy = policy
        self.listeners: list[Callable[[CycleResult], None]] = []
        self.course_listeners: list[Callable[[CycleResult, int | None], None]] = []
        """Told of each cycle of the course with HTAS, and the number under which it is on record."""
        self.recorded: int | None = None
        self._charge = charge
        self._planner = planner
        self._memory = Memory()
        self._shadow: Shadow | None = None
        self._real: RealCourse | None = None
        self._has_edge = False
        self._stays = Stays()
        self._unwritten: deque[Run] = deque(maxlen=REMEMBERED_RUNS)
        self._run_lengths = LearnedRunLengths(policy.run_lengths)
        self._last: CycleResult | None = None
        self._begin_at = 0.0
        self._generation = 0
        self._advice: tuple[Outcome, ...] = ()
        """What the last plan of all stages would do."""
        self._unrecorded = ""

    @property
    def has_answers(self) -> bool:
        return False

    @property
    def has_edge(self) -> bool:
        return self._has_edge

    @property
    def store_problem(self) -> str:
        return self._unrecorded

    def changes(self) -> int:
        return self.ports.cluster.changes()

    def on_news(self, wake: Callable[[], None]) -> None:
        self.ports.cluster.on_change(wake)

    def adopt(self, policy: Policy) -> None:
        """Go on with a new policy: the course with HTAS does so as well, from now on."""
        self.policy = policy
        self._run_lengths.adopt(policy.run_lengths)
        if self._shadow is not None:
            self._shadow.adopt(policy)

    def savings(self) -> Savings | None:
        """Both courses up to the last cycle; None before the first."""
        return self._shadow.savings() if self._shadow is not None else None

    def close(self) -> None:
        if self._shadow is not None:
            self._shadow.close()

    def run_cycle(self, stages: frozenset[Stage] = ALL_STAGES) -> CycleResult:
        """Look, plan, and let happen to the course with HTAS what has really happened.

        Raises TransientError where the cluster cannot be read.
        """
        started = perf_counter()
        now = self.ports.clock.now()
        view = self.ports.cluster.observe()
        self._follow(view, now)
        pods = self._run_lengths.applied(view.pods)
        known = pins.within_limits(msgspec.structs.replace(view, pods=pods), self.policy, now)
        snapshot, policy = snapshot_in_charge(known, self.policy, self._charge, now, self._memory)
        self._generation += 1
        snapshot = msgspec.structs.replace(snapshot, generation=self._generation, store_problem="")
        self._has_edge = any(policy.tier_of(node) is Tier.EDGE for node in view.nodes)
        began = perf_counter()
        if stages - {Stage.SCHEDULING}:
            stages = ALL_STAGES  # what is recommended is told as a whole
        decided = self._planner(snapshot, policy, now, stages)
        planning_s = perf_counter() - began
        self._memory = decided.memory
        if stages == ALL_STAGES:
            self._advice = proposed(decided)
        took_s = perf_counter() - started
        result = CycleResult(snapshot, decided, self._advice, planning_s, stages, took_s, self.savings())
        self._keep(result)
        for listener in self.listeners:
            listener(result)
        return result

    # The course with HTAS.

    def _follow(self, view: ClusterView, now: float) -> None:
        ours = [node for node in view.nodes if is_in_charge_of(node, self.policy, self._charge)]
        if self._shadow is None and now >= self._begin_at:
            self._begin(view, now)
        if self._shadow is None or self._real is None:
            return
        self._real.observe(view, ours, self.policy, now)
        self._shadow.follow(view, now, self._real.course(self.policy, now))

    def _begin(self, view: ClusterView, now: float) -> None:
        """From where the course was on record last, else from the cluster as it is. A store that cannot be read is
        asked again in a minute.
        """
        try:
            store = self.ports.store
            before = next((each for each in store.cycles(limit=1) if each.savings is not None and each.at <= now), None)
            self._run_lengths.learn(store.runs(limit=REMEMBERED_RUNS))
            self._shadow = Shadow(view, self.policy, self._charge, now, store, before)
        except HTASError as error:
            log.warning("what is on record cannot be read, tried again", error=str(error))
            self._begin_at = now + REMEMBER_AGAIN_S
            return
        self._real = _real_course(before, now)
        self._shadow.listeners.append(self._tell_of_course)
        log.info("recommends", since=self._shadow.since, goesOn=before is not None)

    def _tell_of_course(self, result: CycleResult) -> None:
        assert self._shadow is not None
        for listener in self.course_listeners:
            listener(result, self._shadow.recorded)

    # What is on record.

    def _keep(self, result: CycleResult) -> None:
        """Record what really ran, and how long. Where that fails work goes on, and people are told once."""
        try:
            over = self._stays.observe(result.snapshot)
            self._run_lengths.learn(over)
            self._unwritten += over
            before = self._last.snapshot if self._last is not None else None
            self.ports.store.add_profile(profile_rows(before, result.snapshot, self.policy))
            self._last = result
            self.ports.store.add_runs(self._unwritten)
            self._unwritten.clear()
        except HTASError as error:
            if not self._unrecorded:
                log.warning("what is seen cannot be recorded; it goes on", error=str(error))
            self._unrecorded = str(error) or type(error).__name__
        else:
            self._unrecorded = ""


def _real_course(before: CycleRecord | None, now: float) -> RealCourse:
    if before is None or before.savings is None:
        return RealCourse(now)
    told = before.savings
    return RealCourse(told.at, told.real.nano_seconds, told.real.waits)
