"""What is done for work that has no room where nothing can be bought: preempting for it, or searching on its behalf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from htas.model.plan import UnplacedPod
from htas.model.pods import Pod, priority_sort
from htas.model.policy import FallbackMode
from htas.model.proposals import Proposal
from htas.model.reasons import Unplaced
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass
from htas.planning.disrupt.at_once import MOST_AT_ONCE, Preempted
from htas.planning.disrupt.preemption.candidates import EmptiedNodes, PreemptionCandidate
from htas.planning.disrupt.preemption.preemptor import LEAST_LOOKS, HopelessClasses, Preemptor
from htas.planning.disrupt.search_request import MovableRoom, Waiting, has_suggestion, search_request
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand

NOTHING_TO_BUY = frozenset(
    {
        Unplaced.LIMIT_REACHED,
        Unplaced.NAMESPACE_LIMIT,
        Unplaced.QUOTA_REACHED,
        Unplaced.NO_FLAVOUR_FITS,
        Unplaced.NO_NODE_GROUP,
    }
)
"""Reasons that no machine will come for now; what waits for another reason is not to be evicted for."""
PASSING = frozenset({Unplaced.BACKING_OFF, Unplaced.CLOUD_UNREACHABLE, Unplaced.TOO_MANY_LAUNCHES})
"""Reasons that may be over in a moment: who has waited for less than `fallback.patience` is not evicted for."""

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

    def __init__(self, context: PlanContext, at_once: Preempted = (), outlook: Outlook | None = None) -> None:
        """`at_once`: who is preempted for already."""
        self._outlook = outlook
        self._at_once = at_once
        self._context = context
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
        for pod, chosen in at_once:
            self._decide(pod, chosen, {})
        self._others_follow = False
        """Whether less important work is expected to have its turn after that at hand."""

    @cached_property
    def _preemptor(self) -> Preemptor:
        preemptor = Preemptor(self._opening, self._snapshot, self._policy, self._snapshot.taken_at)
        preemptor.go_on_from(chosen for _, chosen in self._at_once)
        return preemptor

    def waiting(self, unplaced: Iterable[UnplacedPod]) -> Waiting:
        """Whom to preempt for, the most important first; a search for others is asked for where one is due."""
        mode = self._policy.fallback.mode
        found = self._without_machine(unplaced) if mode is not FallbackMode.OFF else []
        # What a search finds is journalled.
        if not found or mode is not FallbackMode.OPTIMIZE or self._snapshot.store_problem:
            return found
        movable = MovableRoom(self._opening, self._snapshot, self._policy, self._emptied)
        found = [
            (pod, item)
            for pod, item in found
            if item.reason is not Unplaced.NAMESPACE_LIMIT and movable.holds(pod)  # others do not move for its sake
        ]
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
        given_up = Fallback(self._context, self._at_once).result(told)
        given_up.is_suggestion_in_the_way = True
        return given_up

    @property
    def acts_against_a_suggestion(self) -> bool:
        """Whether more is done than at once while moves for the edge's sake are under way."""
        is_more = len(self._result.proposals) > sum(bool(chosen.victims) for _, chosen in self._at_once)
        return (is_more or bool(self._result.optimize)) and has_suggestion(self._snapshot)

    def _without_machine(self, unplaced: Iterable[UnplacedPod]) -> Waiting:
        """Pods of ours that nothing can be bought for, the most important first and of these the oldest.

        Those that no node could hold, were it empty, are left out: neither preemption nor the optimiser can help them.
        """
        simulated, snapshot, policy = self._opening, self._snapshot, self._policy
        stuck = [item for item in unplaced if item.reason in NOTHING_TO_BUY or item.reason in PASSING]
        pods = {pod.key: pod for pod in (*simulated.waiting, *simulated.nominated)} if stuck else {}
        since = snapshot.taken_at - policy.fallback.patience_s
        found = [
            (pods[item.pod], item)
            for item in stuck
            if item.pod in pods and (item.reason in NOTHING_TO_BUY or pods[item.pod].created_at <= since)
        ]
        ours = [each for each in found if each[0].scheduler == policy.scheduler_name]
        ours = [each for each in ours if self._emptied.hold(each[0])]
        return sorted(ours, key=lambda each: priority_sort(each[0]))

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
        self._decide(pod, found, item.nodes)

    def _decide(self, pod: Pod, chosen: PreemptionCandidate, refusals: Mapping[str, int]) -> None:
        result = self._result
        if chosen.victims:
            result.proposals.append(chosen.proposal_for(pod))
        result.nominated[pod.key] = chosen.node
        result.leaving += chosen.victims
        message = f"nominated to {chosen.node}: {chosen.who()}"
        self._nominated[pod.key] = UnplacedPod(pod.key, Unplaced.NOMINATED, message, refusals)


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
