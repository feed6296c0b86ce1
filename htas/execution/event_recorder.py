"""Events and marks on the objects of people: in kube-scheduler's and Cluster Autoscaler's words, and not too often.

The same thing is said of the same object once in five minutes (Cluster Autoscaler's rule); a waiting pod is marked
when the reason changes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from htas.model.migrations import MigrationRecord, MigrationState
from htas.model.news import EventReason, News
from htas.model.nodes import Node
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Plan, UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import OutcomeReason, Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.ports import AnnouncerPort

REPEAT_S = 300.0
ANSWER_S = 600.0
"""How long the pods of a launch are remembered: twice the cloud's default timeout."""
ASKED_SOON_S = 5.0
"""Longer than the default batching window of cycles."""
NOT_BOUGHT = frozenset(
    {Unplaced.NO_FLAVOUR_FITS, Unplaced.LIMIT_REACHED, Unplaced.QUOTA_REACHED, Unplaced.NO_NODE_GROUP}
    | {Unplaced.BACKING_OFF, Unplaced.NOT_SUPPORTED, Unplaced.TOO_MANY_LAUNCHES, Unplaced.DECLINED}
)
"""Reasons that say no machine will come, as far as it can be known now."""
_OF_IDENTITY = {
    OutcomeReason.RELABELLED: EventReason.LABELS_RESTORED,
    OutcomeReason.PODS_RUN: EventReason.DELETION_HELD,
}
UNSPOKEN = frozenset({Unplaced.SCHEDULING_GATED, Unplaced.NOMINATED, Unplaced.SURPLUS})
"""Pods that are not ours to speak of yet."""


class EventRecorder:
    """Turns plans and outcomes into News and marks. Keeps what it said lately; a restart says it once more."""

    def __init__(self, announcer: AnnouncerPort, policy: Policy) -> None:
        self.policy = policy
        self._announcer = announcer
        self._said: dict[tuple[str, str, str, str], float] = {}
        self._marked: dict[str, tuple[str, str]] = {}
        self._bought_for: dict[str, tuple[float, tuple[str, ...]]] = {}
        """When each claim was asked for, and its pods: the cloud answers after the cycle that asked."""

    def announce(self, snapshot: ClusterSnapshot, plan: Plan, outcomes: Iterable[Outcome]) -> None:
        """Tell what this cycle did, and why pods wait."""
        now = snapshot.taken_at
        told = list(outcomes)
        self._bought_for = {claim: each for claim, each in self._bought_for.items() if now - each[0] < ANSWER_S}
        self._bought_for |= {launch.claim: (now, launch.pods) for launch in plan.launches}
        asked = [key for outcome in told for key in self._bought_for.get(outcome.subject, (now, ()))[1]]
        pods = _pods(snapshot, plan, told, asked)
        news = [*self._of_waiting(plan, pods), *self._of_outcomes(plan, told, snapshot, pods)]
        news += _of_flavours(told, snapshot.cluster.nodes)
        self._said = {what: at for what, at in self._said.items() if now - at < REPEAT_S}
        fresh = [each for each in news if self._is_fresh(each, now)]
        fresh.sort(key=lambda each: not each.is_warning)  # should some be dropped, let it be good news
        self._announcer.tell(fresh)
        self._mark(plan, pods, now)

    def _is_fresh(self, news: News, now: float) -> bool:
        what = (news.kind, news.uid or news.name, news.reason, news.message)
        if what in self._said:
            return False
        self._said[what] = now
        return True

    def _mark(self, plan: Plan, pods: Mapping[str, Pod], now: float) -> None:
        """Note on pods of ours that they wait, where the reason is not the one they bear."""
        marked: dict[str, tuple[str, str]] = {}
        for item in plan.unplaced:
            pod = pods.get(item.pod)
            if pod is None or item.reason in UNSPOKEN or pod.scheduler != self.policy.scheduler_name:
                continue
            if item.reason is Unplaced.AUTOSCALING_NOT_DUE:  # whether a machine is bought has not been asked this time
                if item.pod in self._marked:
                    marked[item.pod] = self._marked[item.pod]
                    continue
                if now - pod.created_at < ASKED_SOON_S:
                    continue  # it is about to be, and two marks a moment apart would tell no more than one
            marked[item.pod] = pod.uid, item.message
            if self._marked.get(item.pod) != marked[item.pod]:
                self._announcer.mark_waiting(pod, item.message)
        self._marked = marked

    def _of_waiting(self, plan: Plan, pods: Mapping[str, Pod]) -> Iterator[News]:
        for item in plan.unplaced:
            pod = pods.get(item.pod)
            if pod is None or item.reason in UNSPOKEN or item.reason is Unplaced.AUTOSCALING_NOT_DUE:
                continue
            if pod.scheduler == self.policy.scheduler_name:
                yield _of_pod(pod, EventReason.FAILED_SCHEDULING, _refusal(item), is_warning=True)
            if item.reason in NOT_BOUGHT:
                yield _of_pod(
                    pod,
                    EventReason.NOT_TRIGGER_SCALE_UP,
                    f"no machine is launched: {item.reason.value}: {item.message}",
                )
        for launch in plan.launches:
            message = f"launches {launch.flavour} for group {launch.group} (claim {launch.claim})"
            yield from (
                _of_pod(pods[key], EventReason.TRIGGERED_SCALE_UP, message) for key in launch.pods if key in pods
            )

    def _of_outcomes(
        self, plan: Plan, outcomes: Iterable[Outcome], snapshot: ClusterSnapshot, pods: Mapping[str, Pod]
    ) -> Iterator[News]:
        yield from _of_initialization(outcomes, snapshot)
        nodes = {node.name: node for node in snapshot.cluster.nodes}
        emptied: set[str | None] = {drain.node for drain in snapshot.drains}
        for outcome in outcomes:
            yield from _of_identity(outcome, snapshot.cluster.nodes)
            is_done = outcome.status is OutcomeStatus.DONE
            pod, node = pods.get(outcome.subject), nodes.get(outcome.subject)
            match outcome.action:
                case Action.BIND if is_done:
                    message = f"Successfully assigned {outcome.subject} to {outcome.target}"
                    yield _of(outcome.subject, pod, EventReason.SCHEDULED, message)
                case Action.BIND if pod is not None:
                    yield _of_pod(
                        pod, EventReason.FAILED_SCHEDULING, f"bind refused: {outcome.message}", is_warning=True
                    )
                case Action.LAUNCH if outcome.status is OutcomeStatus.FAILED:
                    for key in self._bought_for.get(outcome.subject, (0.0, ()))[1]:
                        if key in pods:
                            yield _of_pod(pods[key], EventReason.FAILED_TO_SCALE_UP, outcome.message, is_warning=True)
                case Action.EVICT | Action.MIGRATE if is_done and pod is not None:
                    yield _of_leaving(pod, outcome, emptied)
                case Action.MIGRATE if pod is not None:
                    yield _of_pod(pod, EventReason.MIGRATION_FAILED, outcome.message, is_warning=True)
                case Action.MOVED if outcome.move is not None:
                    yield _of_move(outcome.move, outcome.message)
                case Action.DRAIN | Action.UNDO_DRAIN if node is not None:
                    yield from _of_drain(outcome, node)
                case _ if is_done:
                    is_near = plan.suggest or (snapshot.rearrangement and snapshot.rearrangement.is_suggestion)
                    yield from _of_suggestion(outcome, pod) if is_near else _of_fallback(outcome, pod, snapshot, plan)


def _of_initialization(outcomes: Iterable[Outcome], snapshot: ClusterSnapshot) -> Iterator[News]:
    """Machines that were not initialized in time, reported at their nodes."""
    late = {outcome.subject: outcome.message for outcome in outcomes if outcome.action is Action.INITIALIZE}
    for node in snapshot.cluster.nodes if late else ():
        if node.claim in late:
            yield News("Node", node.name, EventReason.NOT_INITIALIZED, late[node.claim], node.uid, True)


def _pods(snapshot: ClusterSnapshot, plan: Plan, outcomes: Iterable[Outcome], asked: Iterable[str]) -> dict[str, Pod]:
    """The pods that something is to be said of."""
    keys = {item.pod for item in plan.unplaced} | set(asked)
    keys.update(key for launch in plan.launches for key in launch.pods)
    keys.update(outcome.subject for outcome in outcomes)
    return {pod.key: pod for pod in snapshot.cluster.pods if pod.key in keys} if keys else {}


def _of_leaving(pod: Pod, outcome: Outcome, emptied: Container[str | None]) -> News:
    """Only drains evict; a move may be one that an operator asked for, and its node stays."""
    if outcome.action is Action.MIGRATE and pod.node not in emptied:
        return _of_pod(pod, EventReason.MIGRATING, f"leaves its node {outcome.message}")
    return _of_pod(pod, EventReason.SCALE_DOWN, f"leaves its node, which HTAS drains and deletes: {outcome.action}")


def _of_move(move: MigrationRecord, message: str) -> News:
    """A move that is over: told of the pod that runs now, which bears another name where it has a twin's."""
    if move.state is not MigrationState.DONE:
        return News("Pod", move.pod, EventReason.MIGRATION_FAILED, message, move.uid, is_warning=True)
    space, _, name = move.pod.partition("/")
    return News("Pod", f"{space}/{move.twin or name}", EventReason.MIGRATED, message, "" if move.twin else move.uid)


def _of_flavours(outcomes: Iterable[Outcome], nodes: Iterable[Node]) -> Iterator[News]:
    """Machines that are others than were ordered, or than they were: told of their nodes, where they have one."""
    others = {each.subject: each.message for each in outcomes if each.action is Action.OTHER_FLAVOUR}
    for node in nodes if others else ():
        if node.claim in others:
            yield News("Node", node.name, EventReason.OTHER_FLAVOUR, others[node.claim], node.uid, is_warning=True)


def _of_drain(outcome: Outcome, node: Node) -> Iterator[News]:
    if outcome.action is Action.UNDO_DRAIN:
        yield News("Node", node.name, EventReason.SCALE_DOWN_FAILED, outcome.message, node.uid, is_warning=True)
    elif outcome.status is OutcomeStatus.DONE:
        message = f"HTAS drains and deletes it: {outcome.message}"
        yield News("Node", node.name, EventReason.SCALE_DOWN, message, node.uid)


def _of_identity(outcome: Outcome, nodes: Iterable[Node]) -> Iterator[News]:
    """Told of nodes whose labels were set back, and of those that run pods while their machine was to be deleted."""
    said = _OF_IDENTITY.get(outcome.reason) if outcome.reason is not None else None
    if said is not None:
        of = (node for node in nodes if outcome.subject in (node.name, node.claim))
        yield from (News("Node", node.name, said, outcome.message, node.uid, is_warning=True) for node in of)


def _of(name: str, pod: Pod | None, reason: EventReason, message: str) -> News:
    return News("Pod", name, reason, message, pod.uid if pod is not None else "")


def _of_pod(pod: Pod, reason: EventReason, message: str, *, is_warning: bool = False) -> News:
    return News("Pod", pod.key, reason, message, pod.uid, is_warning)


def _of_suggestion(outcome: Outcome, pod: Pod | None) -> Iterator[News]:
    """What was moved so that services come nearer to their targets."""
    if outcome.action is Action.MOVE and pod is not None:
        yield _of_pod(pod, EventReason.DESCHEDULED, f"for services' share of the edge: {outcome.message}")


def _of_fallback(outcome: Outcome, pod: Pod | None, snapshot: ClusterSnapshot, plan: Plan) -> Iterator[News]:
    """What was done for work that nothing was bought for."""
    current, proposed = snapshot.rearrangement, plan.instead_of_buying
    instead = proposed.message if proposed is not None else current.why if current is not None else ""
    match outcome.action:
        case Action.PREEMPT if pod is not None:
            yield _of_pod(pod, EventReason.PREEMPTED, f"leaves its node {outcome.message}")
        case Action.NOMINATE if pod is not None and outcome.target:
            message = f"nominated to {outcome.target}: HTAS evicts pods of lower priority"
            yield _of_pod(pod, EventReason.NOMINATED, message)
        case Action.MOVE if pod is not None:
            for_whom = f"HTAS {instead}" if instead else "makes room for pods of higher priority"
            yield _of_pod(pod, EventReason.DESCHEDULED, f"{for_whom}: {outcome.message}")
        case Action.DISPLACE if pod is not None:
            yield _of_pod(pod, EventReason.PREEMPTED, f"leaves its node: {outcome.message}")
        case Action.REARRANGE if proposed is not None:
            yield from (
                News("Pod", seat.pod, EventReason.NOMINATED, f"HTAS {instead}", seat.uid) for seat in proposed.seats
            )
        case Action.REARRANGE:
            yield from _of_seats(snapshot, EventReason.NOMINATED, "nominated to {}, from which other pods move")
        case Action.CANCEL_REARRANGEMENT:
            message = f"its reservation is cancelled: {outcome.message}"
            yield from _of_seats(snapshot, EventReason.REARRANGEMENT_CANCELLED, message, is_warning=True)


def _of_seats(
    snapshot: ClusterSnapshot, reason: EventReason, message: str, *, is_warning: bool = False
) -> Iterator[News]:
    """The same of every pod that waits for its slot in the rearrangement under way."""
    if snapshot.rearrangement is None:
        return
    for slot in snapshot.rearrangement.slots:
        if slot.source is None:
            yield _of_pod(slot.pod, reason, message.replace("{}", slot.node), is_warning=is_warning)


def _refusal(item: UnplacedPod) -> str:
    return f"{item.reason.value}: {item.message}"
