"""Metrics in Prometheus' form, on a registry of our own. What each means: docs/metrics.md.

Counters and histograms are written as things happen; the state of the cluster is worked out when somebody scrapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

import htas
from htas.daemon.http.optimize_endpoint import SearchMetrics
from htas.daemon.loops.cycle import CycleResult
from htas.daemon.telemetry.state_metrics import StateCollector
from htas.daemon.wiring.remote_store import StoreMetrics
from htas.execution.moves_seen import step_seconds
from htas.model.claims import ClaimState
from htas.model.defects import Step
from htas.model.migrations import Failure, MigrationRecord, MigrationState
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.proposals import Launch
from htas.model.reasons import OutcomeReason, ProposalReason

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SETTLED = frozenset({ClaimState.READY, ClaimState.FAILED, ClaimState.RELEASED})
MOVES = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
WAITS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


disable_created_metrics()  # type: ignore[no-untyped-call] # else a second series for each counter


class Metrics:
    """Told of cycles and calls from any thread. `last` is the newest cycle, which the state is taken from."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.state = StateCollector(self.registry)
        self.store = StoreMetrics(self.registry)
        self.searches = SearchMetrics(self.registry)
        make = self.registry
        self._machines, self._moves = _Machines(make), _Moves(make)
        self._api_server = _Calls("htas_apiserver", "Calls to the API server.", ["method"], make)
        self._cloud = _Calls("htas_cloud", "Calls to the cloud.", ["service", "method"], make)
        info = Gauge("htas_build_info", "Always 1; label: the running version.", ["version"], registry=make)
        info.labels(htas.__version__).set(1)
        self._leader = Gauge("htas_leader", "1 while this daemon leads.", registry=make)
        self._last_success = Gauge(
            "htas_last_success_timestamp_seconds", "When the last cycle succeeded.", registry=make
        )
        self._cycles = Counter("htas_cycles_total", "Cycles run.", ["result"], registry=make)
        self._cycle_s = Histogram(
            "htas_cycle_duration_seconds", "Duration of a cycle.", ["part"], buckets=SECONDS, registry=make
        )
        self._actions = Counter("htas_actions_total", "Actions taken.", ["verb", "status"], registry=make)
        self._restored = Counter("htas_node_labels_restored_total", "Nodes whose labels HTAS restored.", registry=make)
        self._held = Counter(
            "htas_deletions_held_total", "Deletions refused because pods ran on the node.", registry=make
        )
        self._waited = Histogram(
            "htas_pod_bind_wait_seconds", "Seconds from a pod's creation to its bind.", buckets=WAITS, registry=make
        )
        self._wrong_tokens = Counter("htas_http_wrong_tokens_total", "Requests with an unknown token.", registry=make)
        self._restarts = Counter(
            "htas_watch_restarts_total", "Lists repeated after a failure or a 410.", ["kind"], registry=make
        )
        self._dropped = Counter("htas_events_dropped_total", "Events dropped by the rate limit.", registry=make)
        self._reloads = Counter("htas_config_reloads_total", "Reloads of the configuration.", ["result"], registry=make)
        self._failed_steps = Counter(
            "htas_step_failures_total", "Steps of a cycle that raised an exception.", ["step"], registry=make
        )
        for step in Step:
            self._failed_steps.labels(step.value)  # from 0 on, as below
        for result in ("adopted", "refused"):
            self._reloads.labels(result)  # from 0 on: Prometheus sees no increase in a series that begins with 1

    @property
    def last(self) -> CycleResult | None:
        return self.state.last

    def render(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self.registry)

    def observe(self, result: CycleResult) -> None:
        """A cycle that succeeded."""
        self._cycles.labels("success").inc()
        self._last_success.set(result.snapshot.taken_at)
        self._cycle_s.labels("planning").observe(result.planning_s)
        self._cycle_s.labels("all").observe(result.took_s)
        for outcome in result.outcomes:
            if outcome.status is OutcomeStatus.RECOMMENDED:
                continue  # the same again in each cycle: the course with HTAS is what is counted
            self._actions.labels(outcome.action.value, outcome.status.value).inc()
            if outcome.reason is OutcomeReason.RELABELLED:
                self._restored.inc()
            if outcome.reason is OutcomeReason.PODS_RUN:
                self._held.inc()
            if outcome.move is not None:
                self._moves.count(outcome.move)
        self._machines.observe(result)
        self._time_binds(result)
        self.searches.observe(result)
        self.state.last = result

    def observe_course(self, outcomes: Iterable[Outcome]) -> None:
        """What would have been done in a cycle of the course with HTAS."""
        for outcome in outcomes:
            self._actions.labels(outcome.action.value, outcome.status.value).inc()

    def failed(self, why: str) -> None:
        """A cycle that was given up."""
        self._cycles.labels("failed").inc()

    def step_failed(self, step: Step) -> None:
        """A step of a cycle that failed on a defect."""
        self._failed_steps.labels(step.value).inc()

    def leads(self, is_leader: bool) -> None:
        self._leader.set(is_leader)

    def called(self, method: str, status: int, seconds: float) -> None:
        """A call to the API server; status 0: there was no answer."""
        self._api_server.count(status, seconds, method)

    def called_cloud(self, method: str, service: str, status: int, seconds: float) -> None:
        """A call to the cloud; status 0: there was no answer."""
        self._cloud.count(status, seconds, service, method)

    def wrong_token(self) -> None:
        self._wrong_tokens.inc()

    def restarted(self, kind: str) -> None:
        self._restarts.labels(kind).inc()

    def dropped(self, count: int) -> None:
        self._dropped.inc(count)

    def reloaded(self, is_adopted: bool) -> None:
        self._reloads.labels("adopted" if is_adopted else "refused").inc()

    def _time_binds(self, result: CycleResult) -> None:
        bound = {o.subject for o in result.outcomes if o.action is Action.BIND and o.status is OutcomeStatus.DONE}
        if bound:
            for pod in result.snapshot.cluster.pods:
                if pod.key in bound:
                    self._waited.observe(max(0.0, result.snapshot.taken_at - pod.created_at))


class _Calls:
    """Calls to one server, by what `labels` name; status 0: there was no answer."""

    def __init__(self, name: str, what: str, labels: Sequence[str], make: CollectorRegistry) -> None:
        self._requests = Counter(f"{name}_requests_total", what, [*labels, "code"], registry=make)
        self._seconds = Histogram(
            f"{name}_request_duration_seconds", "Duration of those calls.", labels, buckets=SECONDS, registry=make
        )

    def count(self, status: int, seconds: float, *labels: str) -> None:
        self._requests.labels(*labels, str(status) if status else "none").inc()
        self._seconds.labels(*labels).observe(seconds)


class _Moves:
    """Moves that ended, and those that did so well by their steps and sizes."""

    def __init__(self, make: CollectorRegistry) -> None:
        self._ended = Counter(
            "htas_moves_total",
            "Migrations that ended; reason: why rolled back.",
            ["method", "result", "reason"],
            registry=make,
        )
        self._seconds = Histogram(
            "htas_move_duration_seconds",
            "Duration of each step of migrations.",
            ["method", "step"],
            buckets=MOVES,
            registry=make,
        )
        self._bytes = Counter("htas_move_bytes_total", "Bytes of checkpoints moved.", ["method"], registry=make)
        self._repeated = Counter(
            "htas_move_repeated_seconds_total",
            "Seconds of work that migrated pods repeated.",
            ["method"],
            registry=make,
        )

    def count(self, move: MigrationRecord) -> None:
        result = "done" if move.state is MigrationState.DONE else "rolled-back"
        reason = move.reason if result != "done" and move.reason in set(Failure) else ""  # of a few words, no text
        self._ended.labels(move.method, result, reason).inc()
        if result != "done":
            return
        for step, seconds in step_seconds(move).items():
            self._seconds.labels(move.method, step).observe(max(0.0, seconds))
        self._bytes.labels(move.method).inc(move.archive_bytes)
        self._repeated.labels(move.method).inc(max(0.0, move.repeated_s or 0.0))


class _Machines:
    """Machines that this daemon buys and releases, followed from cycle to cycle."""

    def __init__(self, make: CollectorRegistry) -> None:
        self._asked: dict[str, Launch] = {}
        """Launches that the cloud has not answered: it does so after the cycle that asked."""
        self._awaited: set[str] = set()
        self._groups: dict[str, str] = {}
        """The group of each claim, as the last cycle saw it."""
        self._bought = Counter("htas_nodes_launched_total", "Machines launched.", ["group", "flavour"], registry=make)
        self._released = Counter("htas_nodes_deleted_total", "Machines deleted.", ["group", "reason"], registry=make)
        self._saved = Counter(
            "htas_deleted_cost_per_hour_total", "Hourly prices of machines that scale-down deleted.", registry=make
        )
        self._started = Histogram(
            "htas_node_startup_seconds", "Seconds from the decision to launch to Ready.", buckets=WAITS, registry=make
        )

    def observe(self, result: CycleResult) -> None:
        self._count(result)
        self._time_startups(result)

    def _count(self, result: CycleResult) -> None:
        self._asked |= {launch.claim: launch for launch in result.plan.launches}
        groups = self._groups | {claim.id: claim.group for claim in result.snapshot.claims}
        self._groups = {claim.id: claim.group for claim in result.snapshot.claims}
        removals = {item.claim: item for item in result.plan.remove}
        for outcome in result.outcomes:
            if outcome.status is not OutcomeStatus.DONE:
                continue
            launch = self._asked.pop(outcome.subject, None) if outcome.action is Action.LAUNCH else None
            if launch is not None:
                self._awaited.add(launch.claim)
                self._bought.labels(launch.group, launch.flavour).inc()
            elif outcome.action is Action.DELETE:
                self._released.labels(groups.get(outcome.subject, ""), _why(outcome)).inc()
        planned = {launch.claim for launch in result.plan.launches}
        self._asked = {key: each for key, each in self._asked.items() if key in self._groups or key in planned}
        for item in removals.values():
            if any(_is_drain_of(outcome, item.node) for outcome in result.outcomes):
                self._saved.inc(item.savings_nanos_per_hour / 1e9)

    def _time_startups(self, result: CycleResult) -> None:
        """Machines that this daemon bought and that are Ready now."""
        claims = {claim.id: claim for claim in result.snapshot.claims}
        just_bought = {outcome.subject for outcome in result.outcomes if outcome.action is Action.LAUNCH}
        for claim_id in tuple(self._awaited):
            claim = claims.get(claim_id)
            if claim is not None and claim.state is ClaimState.READY:
                self._started.observe(max(0.0, claim.since - claim.created_at))
            if claim_id not in just_bought and (claim is None or claim.state in SETTLED):
                self._awaited.discard(claim_id)


def _why(outcome: Outcome) -> str:
    """Cleaning's reason; what clouds say of machines that failed is without end, and no label."""
    reasons = {reason for reason in ProposalReason if reason.empties_nodes}
    return outcome.message if outcome.message in reasons else "Failed"


def _is_drain_of(outcome: Outcome, node: str) -> bool:
    return outcome.action is Action.DRAIN and outcome.subject == node and outcome.status is OutcomeStatus.DONE
