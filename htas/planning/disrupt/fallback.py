"""What is done for work that has no room where nothing can be bought: preempting for it, or searching on its behalf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

import msgspec
import numpy as np

from htas.model.plan import UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import FallbackMode, Policy
from htas.model.proposals import Proposal
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility import host_ports
from htas.planning.cluster.feasibility.filter_context import accepted
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.simulated import SimulatedCluster
from htas.planning.disrupt.preemption.candidates import EmptiedNodes
from htas.planning.disrupt.preemption.preemptor import LEAST_LOOKS, HopelessClasses, Preemptor
from htas.planning.eligibility.disruption_policy import AllowedFor, DisruptionKind, DisruptionPolicy
from htas.planning.eligibility.drain_rules import not_disrupted_until
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand

NOTHING_TO_BUY = frozenset(
    {Unplaced.LIMIT_REACHED, Unplaced.QUOTA_REACHED, Unplaced.NO_FLAVOUR_FITS, Unplaced.NO_NODE_GROUP}
)
"""Reasons that no machine will come for now; what waits for another reason is not to be evicted for."""
PASSING = frozenset({Unplaced.BACKING_OFF, Unplaced.CLOUD_UNREACHABLE, Unplaced.NOT_LET_IN})
"""Reasons that may be over in a moment: who has waited for less than `fallback.patience` is not evicted for."""
MOST_AT_ONCE = 100
"""So many pods are preempted for by one plan, the most important ones; the next goes on from what came of it."""
FEW_NODES = 16
"""Of a class that so few nodes could hold it is asked who on them has to stay; of others hope is taken for granted."""
PROVEN = "proven: no other placement of what runs and is free to move would take it in (htas optimize tells who is not)"

Waiting = list[tuple[Pod, UnplacedPod]]
"""Pods to preempt for, and why nothing is bought for each, the most important first."""
Shortage = Callable[[Sequence[Demand]], Sequence[UnplacedPod]]
"""Which pods of some demands nothing would be bought for, and why: a what-if."""


@dataclass(slots=True)
class Preemptions:
    """What the stage came to: the plan's parts, and the running pods that are to leave."""

    unplaced: list[UnplacedPod] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    nominated: dict[str, str] = field(default_factory=dict)
    """The node of each pod that room is made for, or that waits for what ends there anyway."""
    optimize: tuple[str, ...] = ()
    leaving: list[Pod] = field(default_factory=list)
    is_suggestion_in_the_way: bool = False
    """Moves for the edge's sake are under way, and are to be given up: with their room more may be done for it."""

    @property
    def acts(self) -> bool:
        """Whether room is made for somebody."""
        return bool(self.optimize or self.proposals)


_MADE_WAY = "moves for the edge's sake are given up for it"


class Outlook:
    """What came of placing and buying for everybody at once. It holds for a priority while nobody lost room meanwhile.

    So 100 priorities whose work finds no room cost one what-if of the purchase, not one each of all the work so far.
    """

    def __init__(
        self, waiting: Waiting, demands: Sequence[Demand], unplaced: Iterable[UnplacedPod], shortage: Shortage
    ) -> None:
        self.waiting = waiting
        self._demands = list(demands)
        self._unplaced = {item.pod: item for item in unplaced}
        self._shortage = shortage

    def unplaced(self, demands: Sequence[Demand], priority: int) -> list[UnplacedPod]:
        """Pods of a priority that nothing would be bought for; `demands` is what has no room of it and of those before.

        It is asked anew, of the work still to come too, where other pods than expected have no room.
        """
        expected = {id(each.cls): each.count for each in self._demands if each.count and each.cls.priority >= priority}
        self._demands = [*demands, *(each for each in self._demands if each.cls.priority < priority)]
        if expected != {id(each.cls): each.count for each in demands}:
            self._unplaced = {item.pod: item for item in self._shortage(self._demands)}
        own = [each for each in demands if each.cls.priority == priority]
        pods = [pod for each in own for pod in each.youngest(each.count)]
        return [self._unplaced[pod.key] for pod in pods if pod.key in self._unplaced]


class Fallback:
    """Preempts for pods that nothing can be bought for, or asks for the optimiser, as the policy says."""

    def __init__(self, context: PlanContext, outlook: Outlook | None = None) -> None:
        self._outlook = outlook
        self._opening = context.simulated
        self._snapshot = context.snapshot
        self._policy = context.policy
        self._emptied = EmptiedNodes(context.simulated, context.snapshot)
        self._result = Preemptions()
        self._told: dict[str, str] = {}
        """What is said beside why nothing is bought, by pod."""
        self._nominated: dict[str, UnplacedPod] = {}
        self._hopeless = HopelessClasses()
        expected = [] if outlook is None else outlook.waiting
        self._untried = {id(self._opening.book.class_of(pod)): pod.priority for pod, _ in expected}
        """Classes that share the looks left, and their priority; those whose turn comes later, too."""
        self._drawn: frozenset[int] | None = None
        self._others_follow = False
        """Whether less important work is expected to have its turn after that at hand."""

    @cached_property
    def _preemptor(self) -> Preemptor:
        return Preemptor(self._opening, self._snapshot, self._policy, self._snapshot.taken_at)

    def waiting(self, unplaced: Iterable[UnplacedPod]) -> Waiting:
        """Whom to preempt for, the most important first; a search for others is asked for where one is due."""
        mode = self._policy.fallback.mode
        found = self._without_machine(unplaced) if mode is not FallbackMode.OFF else []
        # What a search finds is journalled.
        if not found or mode is not FallbackMode.OPTIMIZE or self._snapshot.store_problem:
            return found
        movable = MovableRoom(self._opening, self._snapshot, self._policy, self._emptied)
        found = [each for each in found if movable.holds(each[0])]
        request = search_request(self._snapshot, self._policy, found)
        self._result.optimize = request.asked
        self._told |= request.told
        return request.rest

    def is_outranked(self, waiting: Waiting) -> bool:
        """Whether the plan has given less important work room on a node that is there: it is that work's turn later."""
        most = max((pod.priority for pod, _ in waiting if pod.preempts), default=None)
        is_there = self._emptied.is_there
        return most is not None and any(
            cls.is_ours and cls.priority < most and row < len(is_there) and is_there[row]
            for cls, row, _ in self._opening.sim.assignments()
        )

    def preempt(self, waiting: Waiting) -> None:
        """Preempt for one after another."""
        if not waiting:
            return
        book, first = self._opening.book, waiting[0][0].priority
        now = {id(book.class_of(pod)): pod.priority for pod, _ in waiting}
        self._untried = now | {each: at for each, at in self._untried.items() if at < first and each not in now}
        self._others_follow = len(self._untried) > len(now)
        with self._preemptor.victims_gone():
            for pod, item in _in_turn(waiting, self._preemptor):
                self._preempt(pod, item)

    def preempt_in_turn(self, demands: Sequence[Demand], priority: int) -> None:
        """Preempt for pods of a priority, whose turn it is, as far as nothing would be bought for them."""
        unplaced = () if self._outlook is None else self._outlook.unplaced(demands, priority)
        waiting = self._without_machine(unplaced)
        if self._policy.fallback.mode is FallbackMode.OPTIMIZE and not self._snapshot.store_problem:
            left = self._snapshot.search.left
            waiting = [(pod, item) for pod, item in waiting if left.get(pod.uid) is False]
        self.preempt(waiting)
        helped = [pod for pod, _ in waiting if pod.key in self._result.nominated]
        by_class = {id(demand.cls): demand for demand in demands}
        for cls, pods in _by_class(helped, self._opening.book):
            by_class[id(cls)].leave_out(self._opening.sim, pods)

    def result(self, unplaced: Sequence[UnplacedPod]) -> Preemptions:
        """What all of it came to; `unplaced` is what the other stages left."""
        result, certain = self._result, dict(self._nominated)
        for nominee in self._preemptor.displaced if "_preemptor" in self.__dict__ else ():
            key, node = nominee.pod.key, self._opening.sim.table.nodes[nominee.row].name
            certain[key] = UnplacedPod(key, Unplaced.GIVES_WAY, f"its room on {node} goes to work of higher priority")
        result.unplaced = [certain.pop(item.pod, self._with_what_is_told(item)) for item in unplaced]
        result.unplaced += certain.values()
        return result

    def _with_what_is_told(self, item: UnplacedPod) -> UnplacedPod:
        """Why nothing is bought in the end, and what was found for the pod; that says nothing of other reasons.

        Where each priority has its turn, company that comes in a later one may still let a pod be bought for.
        """
        told = self._told.get(item.pod) if item.reason in NOTHING_TO_BUY | PASSING else None
        return item if told is None else _also(item, told)

    def suggestion_given_up(self, unplaced: Sequence[UnplacedPod]) -> Preemptions:
        """While a suggestion is under way nothing of that is done yet: first it is given up."""
        helped = {*self._result.nominated, *self._result.optimize}
        told = [_also(item, _MADE_WAY) if item.pod in helped else item for item in unplaced]
        return Preemptions(told, is_suggestion_in_the_way=True)

    @property
    def acts_against_a_suggestion(self) -> bool:
        """Whether room is made for somebody while moves for the edge's sake are under way."""
        return self._result.acts and has_suggestion(self._snapshot)

    def _without_machine(self, unplaced: Iterable[UnplacedPod]) -> Waiting:
        """Pods of ours that nothing can be bought for, the most important first and of these the oldest.

        Those that no node could hold, were it empty, are left out: neither preemption nor the optimiser can help them.
        """
        simulated, snapshot, policy = self._opening, self._snapshot, self._policy
        pods = {pod.key: pod for pod in (*simulated.waiting, *simulated.nominated)}
        since = snapshot.taken_at - policy.fallback.patience_s
        found = [
            (pods[item.pod], item)
            for item in unplaced
            if item.pod in pods
            and (item.reason in NOTHING_TO_BUY or (item.reason in PASSING and pods[item.pod].created_at <= since))
        ]
        ours = [each for each in found if each[0].scheduler == policy.scheduler_name]
        ours = [each for each in ours if self._emptied.hold(each[0])]
        return sorted(ours, key=lambda each: (-each[0].priority, each[0].created_at, each[0].key))

    def _sharing(self) -> Set[int]:
        """Untried classes that share the looks left.

        Once half of them are spent while less important work follows, these are as many as the rest suffices for,
        others in each plan: no turn takes what all later ones need.
        """
        untried = self._untried.keys()
        if self._preemptor.has_much_left or not self._others_follow:
            return untried
        if self._drawn is None:
            many = max(1, self._preemptor.looks_left // (5 * LEAST_LOOKS))
            self._drawn = frozenset(self._preemptor.turned(list(untried))[:many])
        return untried & self._drawn

    def _preempt(self, pod: Pod, item: UnplacedPod) -> None:
        cls, result, sharing = self._opening.book.class_of(pod), self._result, self._sharing()
        must_wait = id(cls) in self._untried and id(cls) not in sharing
        if len(result.nominated) == MOST_AT_ONCE or self._preemptor.looks_left <= 0 or must_wait:
            self._told[pod.key] = "others are preempted for first"
            return
        found = self._hopeless.why(cls) or self._preemptor.preempt(pod, len(sharing))
        self._untried.pop(id(cls), None)
        if isinstance(found, str):
            self._told[pod.key] = found
            if pod.preempts:
                self._hopeless.note(cls, found)
            return
        if found.victims:
            result.proposals.append(found.proposal_for(pod))
        result.nominated[pod.key] = found.node
        result.leaving += found.victims
        message = f"nominated to {found.node}: {found.who()}"
        self._nominated[pod.key] = UnplacedPod(pod.key, Unplaced.NOMINATED, message, item.nodes)


def _by_class(pods: Iterable[Pod], book: ClassBook) -> Iterable[tuple[PodClass, list[Pod]]]:
    found: dict[int, tuple[PodClass, list[Pod]]] = {}
    for pod in pods:
        cls = book.class_of(pod)
        found.setdefault(id(cls), (cls, []))[1].append(pod)
    return found.values()


def _also(item: UnplacedPod, message: str) -> UnplacedPod:
    return msgspec.structs.replace(item, message=f"{item.message} {message}" if item.message else message)


def _in_turn(waiting: Waiting, preemptor: Preemptor) -> Iterator[tuple[Pod, UnplacedPod]]:
    """The most important first, for half of the work that a plan does; then those whose turn it is.

    So work of high priority that there is no way for does not keep all other work waiting for ever.
    """
    for i, each in enumerate(waiting):
        if not preemptor.has_much_left:
            yield from preemptor.turned(waiting[i:])
            return
        yield each


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """For whom a search is asked for, and who is preempted for meanwhile."""

    asked: tuple[str, ...] = ()
    rest: Waiting = field(default_factory=list)
    """Those whom the last search left though nothing was proven of them."""
    told: dict[str, str] = field(default_factory=dict)
    """What is said of a pod beside why nothing is bought for it."""


def search_request(snapshot: ClusterSnapshot, policy: Policy, waiting: Waiting) -> SearchRequest:
    """Ask for a search where one is due: none is under way, the pause is over, and something is not known yet."""
    search, fallback, now = snapshot.search, policy.fallback, snapshot.taken_at
    if search.is_under_way and not has_suggestion(snapshot):
        under_way = _under_way(snapshot, policy)
        return SearchRequest(told={pod.key: under_way for pod, _ in waiting})
    is_same = search.ended_at is not None and search.circumstances == circumstances(snapshot, policy)
    left = search.left if search.ended_at is not None else {}
    ripe = [pod for pod, _ in waiting if now - pod.created_at >= fallback.after_s]
    asked = tuple(pod.key for pod in ripe if not (is_same and pod.uid in left))
    paused_s = 0.0 if search.ended_at is None else search.ended_at + fallback.pause_s - now
    # The plan that comes with an answer asks for no other one: it preempts for what was left, even without a pause.
    if asked and paused_s <= 0 and search.ended_at != now:
        return SearchRequest(asked, told=dict.fromkeys(asked, "a better placement of what runs is searched for"))
    told = {}
    for pod, _ in waiting:
        if is_same and left.get(pod.uid, False):
            told[pod.key] = PROVEN
        elif paused_s > 0:
            told[pod.key] = f"a better placement is searched for again {fallback.pause_s:g} s after the last search"
    return SearchRequest(rest=[(pod, item) for pod, item in waiting if left.get(pod.uid) is False], told=told)


def has_suggestion(snapshot: ClusterSnapshot) -> bool:
    """Whether moves for the edge's sake are under way: they give way to work that waits."""
    return snapshot.rearrangement is not None and snapshot.rearrangement.is_suggestion


def _under_way(snapshot: ClusterSnapshot, policy: Policy) -> str:
    """What is waited for, and the longest that it may take."""
    if snapshot.rearrangement is None:
        return f"a search for a better placement is under way, of {policy.fallback.budget_s:g} s at most"
    left_s = max(0.0, snapshot.rearrangement.started_at + policy.timeouts.drain_s - snapshot.taken_at)
    return f"a rearrangement is under way, for {left_s:.0f} s more at most"


def circumstances(snapshot: ClusterSnapshot, policy: Policy) -> str:
    """What a search for a better placement depends on, as a short text: while it is the same, so is what is found.

    It changes with every pod that comes, goes, is bound, resized or selected otherwise, or lets itself be moved (by
    annotations, or as the time of its `do-not-disrupt` is over), with every node and what it offers, with what budgets
    select and allow, and with the rules of groups. Else a proof that is none any more is told for ever.
    """
    cluster, now = snapshot.cluster, snapshot.taken_at
    digest = blake2b(repr((policy.groups, policy.fallback, policy.scheduler_name)).encode(), digest_size=16)
    encode = msgspec.msgpack.Encoder(order="deterministic").encode
    for pod in sorted(encode((pod.uid, pod.node, len(pod.gates), *_asks(pod, now))) for pod in cluster.pods):
        digest.update(pod)
    for node in sorted(cluster.nodes, key=lambda node: node.name):
        there = node.is_ready, node.is_unschedulable, node.taints, node.allocatable, node.runtime
        digest.update(repr((node.name, there, sorted(node.labels.items()))).encode())
    for budget in sorted((b.namespace, b.name, b.disruptions_allowed, repr(b.selector)) for b in cluster.budgets):
        digest.update(repr(budget).encode())
    return digest.hexdigest()


def _asks(pod: Pod, now: float) -> tuple[object, ...]:
    """What a pod asks for, is selected by, and wants at a time by its annotations (most: nothing)."""
    wants = (pod.disruption, not_disrupted_until(pod) > now) if pod.disruption else ()
    return pod.is_terminating, pod.priority, pod.requests, pod.labels, wants


class MovableRoom:
    """Nodes as they were if those were gone that may be moved, or are less important than who waits.

    A search for a better placement was announced, cycle after cycle, for pods that no placement could take in.
    """

    def __init__(
        self, simulated: SimulatedCluster, snapshot: ClusterSnapshot, policy: Policy, nodes: EmptiedNodes
    ) -> None:
        self._opening = simulated
        self._snapshot = snapshot
        self._policy = policy
        self._nodes = nodes

    def holds(self, pod: Pod) -> bool:
        """Whether some node would hold a pod then."""
        cls = self._opening.book.class_of(pod)
        among = np.flatnonzero(self._nodes.rows(cls)).tolist()
        return len(among) > FEW_NODES or any(self._has_room_beside_those_that_stay(cls, row) for row in among)

    def _has_room_beside_those_that_stay(self, cls: PodClass, row: int) -> bool:
        sim, book = self._opening.sim, self._opening.book
        with sim.fork():
            for pod in self._leavers(cls, row):
                sim.unplace(book.class_of(pod), row)
            at = slice(row, row + 1)
            has_room = bool(fits(sim.table.free[:, at], cls)[0])
            return has_room and bool(accepted(sim.filter_context, (host_ports.refuse,), cls, at)[0])

    def _leavers(self, cls: PodClass, row: int) -> Iterable[Pod]:
        """Pods on a row that end, may be moved by the optimiser, or give way to more important work."""
        for pod in self._opening.running.get(row, ()):
            if pod.is_work and (
                pod.is_terminating or self._may_move(pod) or (pod.priority < cls.priority and self._gives_way(pod))
            ):
                yield pod

    def _gives_way(self, pod: Pod) -> bool:
        terms = self._disturbing.terms_of_victim(pod), self._disturbing.terms(pod, DisruptionKind.MOVE)
        return any(each.allowed_for is not AllowedFor.NOBODY for each in terms)

    def _may_move(self, pod: Pod) -> bool:
        """Whether a search for a better placement may move it: what depends on its neighbours stays in each."""
        is_known = pod.scheduler == self._policy.scheduler_name and not self._opening.book.class_of(pod).is_dynamic
        return is_known and self._disturbing.terms(pod, DisruptionKind.MOVE).allowed_for is AllowedFor.ANYBODY

    @cached_property
    def _disturbing(self) -> DisruptionPolicy:
        return DisruptionPolicy(self._snapshot.cluster, self._policy, self._snapshot.taken_at)
