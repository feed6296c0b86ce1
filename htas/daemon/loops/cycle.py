"""One cycle: repair → observe → plan → ask → execute → record."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from time import perf_counter

import msgspec
import structlog

from htas.daemon.loops.failed_searches import FailedSearches
from htas.daemon.loops.optimizer import InlineOptimizer, Optimizer
from htas.daemon.loops.searching import Searching
from htas.execution.approvals import Approvals
from htas.execution.backoff import Backoffs
from htas.execution.bookkeeping import Bookkeeper
from htas.execution.calls import Calls, DirectCalls
from htas.execution.claims_seen import ready_by_now
from htas.execution.cloud_calls import CloudCalls
from htas.execution.drainer import Drainer
from htas.execution.event_recorder import EventRecorder
from htas.execution.evictor import Evictor
from htas.execution.executor import Executor
from htas.execution.expectations import Expectations
from htas.execution.journal import Journal, OpenBusiness
from htas.execution.machines import Machines
from htas.execution.moves_seen import MovesSeen, Retries
from htas.execution.orphans import orphans
from htas.execution.our_machines import strangers
from htas.execution.ports import Ports
from htas.execution.rearrangement import RearrangementExecutor
from htas.execution.requested_moves import RequestedMoves
from htas.execution.settled_launches import journal_settled
from htas.execution.steps import Steps
from htas.execution.taking_over import take_over
from htas.model.claims import Headroom, Instance, NodeClaim
from htas.model.defects import Defect, Step
from htas.model.disruptions import drains_of, rearrangement_of
from htas.model.edge import Tier
from htas.model.outcomes import Outcome
from htas.model.plan import Plan, UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.model.record import CycleRecord, Run
from htas.model.savings import Savings
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.cluster.machines import learned_allocatable
from htas.planning.cluster.offered import capped_view, valid
from htas.planning.cluster.optional_searches import error_text
from htas.planning.namespaces import pins
from htas.planning.planner import Planner, plan
from htas.planning.provision.launch_record import HOUR_S, as_journalled
from htas.ports import HTASError, TransientError
from htas.profiler.rows import profile_rows
from htas.profiler.run_lengths import LearnedRunLengths
from htas.profiler.stays import Stays, without

log = structlog.get_logger()

REMEMBERED_RUNS = 20_000
"""So many of the newest runs on record teach a daemon that starts: read and learned in about a second."""
REMEMBER_AGAIN_S = 60.0
READ_CYCLES = 5
"""A daemon begins with the newest cycle on record, and with the one before it where that row is damaged."""


class Cloud(msgspec.Struct, frozen=True):
    """What the cloud showed last. `problem` tells why it does not answer now; empty: it does."""

    instances: tuple[Instance, ...] = ()
    headroom: Headroom = Headroom()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CycleResult:
    """What one cycle saw, decided and did. `planning_s` and `took_s` (all of it) are real time."""

    snapshot: ClusterSnapshot
    plan: Plan
    outcomes: tuple[Outcome, ...]
    planning_s: float
    stages: frozenset[Stage] = ALL_STAGES
    took_s: float = 0.0
    savings: Savings | None = None
    """Of a daemon that only recommends: what HTAS would have saved by now."""
    is_held: bool = False
    """Whether all that was planned waits for approval."""
    remarks: tuple[str, ...] = ()
    """What people must know beside the snapshot: of bills, of a store that was lost, of defects."""
    unconfirmed_bills: int = 0
    """Closed bills whose end the cloud has not confirmed."""
    defects: tuple[Defect, ...] = ()
    """Steps that failed: the cycle did without them."""

    @property
    def waits_to_buy(self) -> bool:
        """Whether pods were left without room that this cycle was not to buy for."""
        return any(item.reason is Unplaced.AUTOSCALING_NOT_DUE for item in self.plan.unplaced)


class Daemon:
    """Runs cycles. What it keeps between them could be lost: it is found again in the journal and the world."""

    def __init__(
        self,
        ports: Ports,
        policy: Policy,
        *,
        calls: Calls | None = None,
        cloud_calls: Calls | None = None,
        optimizer: Optimizer | None = None,
        keeps_history: bool = True,
        planner: Planner = plan,
    ) -> None:
        self.ports = ports
        self.policy = policy
        self._planner = planner
        self.listeners: list[Callable[[CycleResult], None]] = []
        calls, cloud_calls = calls or DirectCalls(), cloud_calls or DirectCalls()
        self._calls = calls
        self._cloud_calls = CloudCalls(cloud_calls, ports.clock)
        self._cloud = Cloud()
        self._journal = Journal(ports.store, ports.clock)
        ports = replace(ports, store=self._journal)
        self._keeps_history = keeps_history
        self.steps = Steps()
        self._expectations = Expectations()
        self._backoffs = Backoffs(policy.timeouts)
        self._machines = Machines(ports, self._cloud_calls, policy, self._backoffs)
        self._retries = Retries(policy.timeouts)
        self._moves = MovesSeen(ports.migration, self._retries)
        self._evictor = Evictor(ports, policy)
        self.requested_moves = RequestedMoves(self._evictor)
        self._draining = Drainer(ports, calls, policy, self._machines, self._moves, self._evictor, self._retries)
        self._rearranging = RearrangementExecutor(
            ports, calls, policy, self._moves, self._evictor, self._retries, self._machines
        )
        self.searching = Searching(ports, policy, optimizer or InlineOptimizer(), self._rearranging)
        self._executor = Executor(
            ports,
            calls,
            policy,
            self._machines,
            self._expectations,
            self._evictor,
            self._draining,
            self._rearranging,
            self.steps,
        )
        self._failed_searches = FailedSearches()
        self._announcing = EventRecorder(ports.announcer, policy)
        self.approvals = Approvals(policy.approval, ports.clock.now)
        self._memory = Memory()
        self._owes_launches = True
        """Whether the journal may have launches that the memory lacks."""
        self._launches_until = -math.inf
        """Up to when the memory has them all."""
        self._generation = 0
        self._last: ClusterSnapshot | None = None
        self._stays = Stays()
        self._has_begun = False
        self._unrecorded = ""
        self.recorded: int | None = None
        """The number under which the last cycle is on record; None: it is not, since nothing was done in it."""
        self._unwritten: deque[Run] = deque(maxlen=REMEMBERED_RUNS)
        self._run_lengths = LearnedRunLengths(policy.run_lengths)
        self._remember_at = 0.0
        self._is_overtaken = Event()
        self.has_edge = False
        """Whether any node that was seen last is of tier edge: else nothing is to be suggested."""
        self._last_unplaced: tuple[UnplacedPod, ...] = ()

    @property
    def has_answers(self) -> bool:
        """Whether calls that were not waited for have ended: the next cycle tells what came of them."""
        return self._calls.has_done() or self._cloud_calls.has_answers() or self.searching.has_answer

    def changes(self) -> int:
        """A number that changes with news that a cycle should come early for."""
        asked = self.searching.requests + self.requested_moves.asked + self.approvals.words
        return self.ports.cluster.changes() + self.ports.provider.changes() + asked

    def on_news(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when `changes` or `has_answers` has changed."""
        self.ports.cluster.on_change(wake)
        self.ports.provider.on_change(wake)
        self._calls.on_done(wake)
        self._cloud_calls.on_answer(wake)
        self.searching.on_news(wake)
        self.requested_moves.on_request = wake
        self.approvals.on_word = wake

    @property
    def bookkeeper(self) -> Bookkeeper:
        """Who keeps its bills."""
        return self._machines.bookkeeper

    @property
    def store_problem(self) -> str:
        """Why what is done cannot be written down (the journal, or history); empty: it is."""
        return self._journal.problem or self._unrecorded

    def adopt(self, policy: Policy) -> None:
        """Go on with a new policy. To be called between cycles, by the thread that runs them."""
        self.policy = policy
        self._backoffs.timeouts = policy.timeouts
        self._retries.timeouts = policy.timeouts
        self._machines.policy = policy
        self._evictor.policy = policy
        self._draining.policy = policy
        self._executor.policy = policy
        self._rearranging.policy = policy
        self.searching.policy = policy
        self.approvals.approval = policy.approval
        self._announcing.policy = policy
        self._run_lengths.adopt(policy.run_lengths)

    def note_overtaken(self) -> None:
        """What another daemon journalled has come to be known only now. From any thread; the next cycle sees to it."""
        self._is_overtaken.set()

    def take_over(self) -> list[Outcome]:
        """Begin to lead after another daemon: what our own journal still intends has been overtaken."""
        self._owes_launches = True
        return take_over(replace(self.ports, store=self._journal), self._machines)

    def run_cycle(self, stages: frozenset[Stage] = ALL_STAGES) -> CycleResult:
        """Repair, observe, plan, ask for a word where one is needed, execute, record.

        Raises TransientError where the cluster cannot be read: nothing has been planned then. A cloud that does not
        answer stops purchases and releases alone; so does a journal that cannot be written. A step that fails on a
        defect is left out. Where that is a fact for the plan, the plan only binds.
        """
        started, attempt, books = perf_counter(), self.steps.attempt, self.bookkeeper
        if self.ports.clock.now() >= self._remember_at:
            attempt(Step.RECORDS, self._remember, None)
        repairs = self.steps.outcomes(Step.REPAIRS, self._repair)
        snapshot, begun = self._facts()
        began = perf_counter()
        decided = self._planner(snapshot, self.policy, snapshot.taken_at, stages)
        took = perf_counter() - began
        gate = partial(self.approvals.gate, decided, snapshot, self.policy.catalogue.currency)
        binds = decided.binds_alone(snapshot.memory)
        allowed, said = attempt(Step.APPROVALS, gate, (binds, list[Outcome]()))
        decided = binds if allowed is binds else decided  # nobody is told of launches that are not made
        outcomes = (*repairs, *begun, *said, *self._carried_out(allowed, decided, snapshot))
        took_s, is_held = perf_counter() - started, allowed.is_empty and not decided.is_empty
        result = CycleResult(snapshot, decided, outcomes, took, stages, took_s, is_held=is_held)
        attempt(Step.EVENTS, partial(self._announcing.announce, snapshot, decided, outcomes), None)
        attempt(Step.HISTORY, partial(self._keep, result), None)
        told = attempt(Step.REPAIRS, lambda: (books.remarks, books.unconfirmed), (tuple[str, ...](), 0))
        defects = self.steps.taken()
        remarks = (*told[0], *(each.message for each in defects))
        result = replace(result, remarks=remarks, unconfirmed_bills=told[1], defects=defects)
        for listener in self.listeners:
            listener(result)
        return result

    def _facts(self) -> tuple[ClusterSnapshot, list[Outcome]]:
        """What the plan goes by, and what is begun before it; nothing is, while a fact is missing."""
        snapshot, outcomes = self.observe(), list[Outcome]()
        if self.requested_moves.are_waiting and not self.steps.missing:
            outcomes += self.steps.outcomes(Step.MOVES, partial(self.requested_moves.carry_out, snapshot, self.policy))
            snapshot = self.observe()
        if not self.steps.missing:
            settle = partial(self.searching.settle, snapshot)
            snapshot, taken_up = self.steps.attempt(Step.SEARCHES, settle, (snapshot, list[Outcome]()))
            outcomes += taken_up
        return msgspec.structs.replace(snapshot, defects=self.steps.missing), outcomes

    def _carried_out(self, allowed: Plan, decided: Plan, snapshot: ClusterSnapshot) -> list[Outcome]:
        """Execute what is allowed of a plan, and ask for the search that it wants."""
        attempt = self.steps.attempt
        self._memory = allowed.memory
        if not self._owes_launches:
            self._launches_until = snapshot.taken_at
        attempt(Step.JOURNAL, partial(self._journal_settled, snapshot), None)
        executed = self._executor.execute(allowed, snapshot)
        attempt(Step.APPROVALS, partial(self.approvals.settle, executed), None)
        attempt(Step.SEARCHES, partial(self.searching.ended, executed, snapshot), None)
        asked = self.steps.outcomes(Step.SEARCHES, partial(self.searching.ask, decided, snapshot))
        failed = self.steps.outcomes(Step.SEARCHES, partial(self._failed_searches.note, decided))
        return [*executed, *asked, *failed]

    def _remember(self) -> None:
        """Begin with what is on record, once: the newest cycle, so that what ended meanwhile is told and a no stands;
        and run lengths.

        A store that cannot be read is asked again in a minute; a daemon places work meanwhile.
        """
        now = self.ports.clock.now()
        self._remember_at = now + REMEMBER_AGAIN_S  # whatever fails
        try:
            store = self.ports.store
            newest = deque(store.cycles(limit=READ_CYCLES), maxlen=1)  # one at a time
            self.approvals.remember(newest[0].asked if newest else ())
            over = store.runs(newest[0].at) if newest else ()
            runs = store.runs(limit=REMEMBERED_RUNS)
        except HTASError as error:
            log.warning("what is on record cannot be read, tried again", error=str(error))
            return
        if newest:
            self._go_on_from(newest[0], over, now)
        self._run_lengths.learn(runs)
        self._remember_at = math.inf

    def _go_on_from(self, newest: CycleRecord, over: Sequence[Run], now: float) -> None:
        """Take up what the newest cycle on record knew."""
        before, known = newest.snapshot, newest.plan.memory
        if self._last is None:
            self._last = without(before, over)
            self._stays.observe(self._last)
        self._moves.begin(before.move_times, min(newest.at, now))  # the clock may have been put back
        self._retries.begin(before.failed_moves)
        self._machines.times = before.machine_times
        self._memory = known.after_a_restart()
        self._launches_until, self._owes_launches = newest.at, True

    def _recall_launches(self, now: float) -> None:
        """Add to the memory the launches of the last hour that the journal alone has.

        The bound on launches holds whether history can be read or not. While the journal cannot be read, nothing is
        launched.
        """
        if not self._owes_launches or self._journal.problem:
            return
        with suppress(HTASError):  # the journal has noted it
            claims = self._journal.claims_made_since(now - HOUR_S)
            launches = as_journalled(self._memory.launches, claims, self._launches_until, now)
            self._memory = msgspec.structs.replace(self._memory, launches=launches)
            self._owes_launches = False

    def _journal_settled(self, snapshot: ClusterSnapshot) -> None:
        """Write down which launches are settled; that waits for a journal that can be written, and for all facts."""
        if snapshot.store_problem or snapshot.defects or self._owes_launches:
            return
        with suppress(HTASError):  # the journal has noted it
            under_way = self._cloud_calls.under_way
            journal_settled(self._journal, snapshot.claims, self._memory.launches, under_way)

    def _repair(self) -> list[Outcome]:
        """Bring the journal, the cloud and the cluster to agree: orders repeated, nodes set up, drains taken further,
        machines released.
        """
        if not self._journal.works():
            return []
        try:
            return self._repaired()
        except HTASError:
            if not self._journal.problem:
                raise
            return []  # the journal has told; work is placed all the same

    def _repaired(self) -> list[Outcome]:
        self.bookkeeper.remember()
        overtaken = []
        if self._is_overtaken.is_set():
            self._is_overtaken.clear()
            try:
                overtaken = self.take_over()
            except Exception:
                self._is_overtaken.set()  # in the next cycle, then
                raise
        cloud = self._look_at_the_cloud()
        view = self._machines.observed(cloud.instances)
        outcomes = overtaken + (self._machines.reconcile(view, cloud.instances) if not cloud.problem else [])
        return outcomes + self._draining.advance(view, cloud.instances, can_release=not cloud.problem)

    def _look_at_the_cloud(self) -> Cloud:
        """What the cloud shows; while it does not answer, what it showed last: work is placed all the same."""
        provider, was_away = self.ports.provider, bool(self._cloud.problem)
        try:
            listed = {each.id: each for each in provider.instances()}  # a page that moved may repeat machines
            self._cloud = Cloud(tuple(listed.values()), provider.headroom())
            if was_away:
                self._cloud_calls.resume()
        except HTASError as error:
            self._cloud = msgspec.structs.replace(self._cloud, problem=str(error) or type(error).__name__)
        except Exception as error:  # a defect of ours, or an answer that no adapter foresaw
            if not was_away:
                log.exception("what the cloud shows cannot be read")
            self._cloud = msgspec.structs.replace(self._cloud, problem=error_text(error))
        return self._cloud

    def observe(self) -> ClusterSnapshot:
        """The snapshot of this moment. A fact that fails on a defect is left out, and `steps` has it."""
        now, attempt, catalogue = self.ports.clock.now(), self.steps.attempt, self.policy.catalogue
        self._generation += 1
        # Claims before the cloud: an order answered in between counts twice against the quota, never not at all.
        # The cluster last: it shows most of what the repairs have just changed.
        business = attempt(Step.JOURNAL, self._journal.business, self._journal.last)
        cloud = self._look_at_the_cloud()
        attempt(Step.JOURNAL, partial(self._recall_launches, now), None)
        view = self.ports.cluster.observe()
        claims = attempt(Step.IDENTITY, partial(self._ours, business, cloud), business.claims)
        corrections: tuple[tuple[Step, Callable[[ClusterView], ClusterView]], ...] = (
            (Step.IDENTITY, lambda seen: self._machines.identified(seen, cloud.instances, business.claims)),
            (Step.PINS, lambda seen: pins.within_limits(seen, self.policy, now)),
            (Step.ALLOCATABLE, lambda seen: capped_view(seen, claims, catalogue)),
            (Step.RUN_LENGTHS, lambda seen: _with_pods(seen, self._run_lengths.applied(seen.pods))),
            (Step.EXPECTATIONS, lambda seen: _with_pods(seen, self._expectations.applied(seen.pods, now))),
        )
        for step, corrected in corrections:
            view = attempt(step, partial(corrected, view), view)
        attempt(Step.EXPECTATIONS, partial(self._expectations.settle, view.pods, now), None)
        snapshot = ClusterSnapshot(
            taken_at=now,
            cluster=view,
            generation=self._generation,
            claims=claims,
            instances=cloud.instances,
            expected_binds=attempt(Step.EXPECTATIONS, lambda: self._expectations.binds, {}),
            headroom=cloud.headroom,
            cloud_problem=cloud.problem,
            store_problem=self._journal.problem,
            memory=self._memory,
        )
        return attempt(Step.FACTS, partial(self._with_the_rest, snapshot, business), snapshot)

    def _ours(self, business: OpenBusiness, cloud: Cloud) -> tuple[NodeClaim, ...]:
        """The claims whose machine bears no other cluster's name."""
        theirs = strangers(cloud.instances, self.policy.cluster)
        return tuple(claim for claim in business.claims if claim.instance not in theirs)

    def _with_the_rest(self, snapshot: ClusterSnapshot, business: OpenBusiness) -> ClusterSnapshot:
        """The snapshot with all that binding can do without."""
        now, nodes, claims = snapshot.taken_at, snapshot.cluster.nodes, snapshot.claims
        learned = valid(business.learned, self.policy.catalogue)
        if self._journal.problem or self.steps.missing:
            claims = ready_by_now(claims, nodes, self.policy, learned)
        self.has_edge = any(self.policy.tier_of(node) is Tier.EDGE for node in nodes)
        snapshot = msgspec.structs.replace(
            snapshot,
            claims=claims,
            drains=drains_of(business.disruptions),
            moves=tuple(self.ports.migration.moving()),
            held_back=self._expectations.held_back(now),
            backoffs=self._backoffs.current(now),
            learned=learned,
            move_times=dict(self._moves.times),
            machine_times=self._machines.times,
            failed_moves=self._retries.left_alone(now),
            rearrangement=rearrangement_of(business.disruptions),
            orphans=orphans(nodes, business.claims, snapshot.instances, self.policy),
        )
        return msgspec.structs.replace(snapshot, learned=dict(learned_allocatable(snapshot, self.policy.catalogue)))

    def _keep(self, result: CycleResult) -> None:
        """Record a cycle. Where that fails (a full disk, say) work goes on, and people are told once."""
        try:
            self._record(result)
        except HTASError as error:
            if not self._unrecorded:
                log.warning("what is done cannot be recorded; work goes on", error=str(error))
            self._unrecorded = str(error) or type(error).__name__
        else:
            if self._unrecorded:
                log.info("what is done is recorded again")
            self._unrecorded = ""

    def _record(self, result: CycleResult) -> None:
        """Profile rows on the five events, stays that are over; the cycle itself where something was done or waits.

        And where a pod has come to run: the newest cycle on record names all that do, and whose the machines are.
        """
        self.recorded = None
        over = self._stays.observe(result.snapshot)
        self._has_begun = self._has_begun or self._stays.has_begun
        self._run_lengths.learn(over)
        self._unwritten += over  # kept until the store has taken them
        if self._journal.problem:  # no use to try: a file that another process holds costs ten seconds
            raise TransientError(self._journal.problem)
        self.ports.store.add_profile(profile_rows(self._last, result.snapshot, self.policy))
        self._last = result.snapshot
        self.ports.store.add_runs(self._unwritten)
        self._unwritten.clear()
        if self._keeps_history and (self._is_news(result) or self._has_begun):
            self.recorded = self.ports.store.add_cycle(
                CycleRecord(
                    id=0,
                    at=result.snapshot.taken_at,
                    stages=tuple(sorted(result.stages)),
                    snapshot=_for_planning(result.snapshot),
                    plan=result.plan,
                    outcomes=result.outcomes,
                    planning_s=result.planning_s,
                    asked=tuple(self.approvals.asked()),
                )
            )
            self._has_begun = False

    def _is_news(self, result: CycleResult) -> bool:
        """Whether something was done, or other pods wait or for other reasons. One that waits for days is told once."""
        others_wait = False
        if Stage.AUTOSCALING in result.stages:  # else the reason is only that nobody asked
            others_wait = result.plan.unplaced != self._last_unplaced
            self._last_unplaced = result.plan.unplaced
        return bool(result.outcomes) or others_wait or not (result.plan.is_empty or result.is_held)


def _for_planning(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """What a plan was made from, without what it did not look at."""
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, ended=()))


def _with_pods(view: ClusterView, pods: tuple[Pod, ...]) -> ClusterView:
    return msgspec.structs.replace(view, pods=pods)
