"""What is done for work that has no room where nothing can be bought."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from htas.model.plan import Preemption, UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import FallbackMode, Policy
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import Ints, PodClass
from htas.planning.cluster.opening import Opening
from htas.planning.disrupt.preemption.preemptor import Preempted, Preemptor, rows_there

NOTHING_TO_BUY = frozenset(
    {Unplaced.LIMIT_REACHED, Unplaced.QUOTA_REACHED, Unplaced.NO_FLAVOUR_FITS, Unplaced.NO_NODE_GROUP}
)
"""Reasons that no machine will come for now; what waits for another reason is not to be evicted for."""
PASSING = frozenset({Unplaced.BACKING_OFF, Unplaced.CLOUD_UNREACHABLE})
"""Reasons that may be over in a moment: who has waited for less than `fallback.patience` is not evicted for."""
MOST_AT_ONCE = 100
"""So many pods are preempted for by one plan, the most important ones; the next goes on from what came of it."""


@dataclass(slots=True)
class FallingBack:
    """What the stage came to: the plan's parts, and the running pods that are to leave."""

    unplaced: list[UnplacedPod]
    preempt: list[Preemption] = field(default_factory=list)
    nominated: dict[str, str] = field(default_factory=dict)
    """The node of each pod that room is made for, or that waits for what ends there anyway."""
    displaced: frozenset[str] = frozenset()
    """Nominated pods whose room goes to more important ones."""
    optimize: tuple[str, ...] = ()
    leaving: list[Pod] = field(default_factory=list)
    is_suggestion_in_the_way: bool = False
    """Moves for the edge's sake are under way, and are to be given up: with their room more may be done for it."""
    is_lesser_work_in_the_way: bool = False
    """Work that this plan has just placed holds room that somebody is preempted for: all is to be placed anew.

    That somebody is the last one: whom else to preempt for depends on where that work goes now.
    """

    @property
    def acts(self) -> bool:
        """Whether room is made for somebody."""
        return bool(self.optimize or self.preempt)


def fall_back(
    opening: Opening, snapshot: ClusterSnapshot, policy: Policy, unplaced: Sequence[UnplacedPod]
) -> FallingBack:
    """Preempt for what nothing can be bought for, or ask for the optimiser, as the policy says.

    While a suggestion is under way nothing of that is done yet: first it is given up.
    """
    if not _is_suggestion(snapshot):
        return _fall_back(opening, snapshot, policy, unplaced)
    nominees = list(opening.sim.nominees)
    with opening.sim.fork() as branch:
        result = _fall_back(opening, snapshot, policy, unplaced)
        if not result.acts:
            branch.commit()
            return result
    opening.sim.nominees = nominees
    helped = {*result.nominated, *result.optimize}
    told = [_also(item, _MADE_WAY) if item.pod in helped else item for item in unplaced]
    return FallingBack(told, is_suggestion_in_the_way=True)


_MADE_WAY = "moves for the edge's sake are given up for it"


def _is_suggestion(snapshot: ClusterSnapshot) -> bool:
    return snapshot.rearrangement is not None and snapshot.rearrangement.is_suggestion


def _fall_back(
    opening: Opening, snapshot: ClusterSnapshot, policy: Policy, unplaced: Sequence[UnplacedPod]
) -> FallingBack:
    result = FallingBack(list(unplaced))
    waiting = _waiting(opening, snapshot, policy, unplaced)
    if policy.fallback.mode is FallbackMode.OFF or not waiting:
        return result
    told: dict[str, UnplacedPod] = {}
    if policy.fallback.mode is FallbackMode.OPTIMIZE and not snapshot.store_problem:  # what is found is journalled
        waiting = _ask_optimiser(result, told, snapshot, policy, waiting)
    if waiting:
        _preempt(result, told, opening, snapshot, policy, waiting)
    result.unplaced = [told.pop(item.pod, item) for item in unplaced]
    result.unplaced += told.values()
    return result


_Waiting = list[tuple[Pod, UnplacedPod]]


def _waiting(opening: Opening, snapshot: ClusterSnapshot, policy: Policy, unplaced: Iterable[UnplacedPod]) -> _Waiting:
    """Pods of ours that nothing can be bought for, the most important first and of these the oldest.

    Those that no node could hold, were it empty, are left out: neither preemption nor the optimiser can help them.
    """
    pods = {pod.key: pod for pod in (*opening.waiting, *opening.nominated)}
    since = snapshot.taken_at - policy.fallback.patience_s
    found = [
        (pods[item.pod], item)
        for item in unplaced
        if item.pod in pods
        and (item.reason in NOTHING_TO_BUY or (item.reason in PASSING and pods[item.pod].created_at <= since))
    ]
    ours = [each for each in found if each[0].scheduler == policy.scheduler_name]
    there, hopes = rows_there(opening, snapshot), dict[int, bool]()
    for pod, _ in ours:
        cls = opening.book.class_of(pod)
        if id(cls) not in hopes:
            hopes[id(cls)] = bool((opening.sim.could_hold(cls) & there).any())
    ours = [each for each in ours if hopes[id(opening.book.class_of(each[0]))]]
    return sorted(ours, key=lambda each: (-each[0].priority, each[0].created_at, each[0].key))


def _ask_optimiser(
    result: FallingBack, told: dict[str, UnplacedPod], snapshot: ClusterSnapshot, policy: Policy, waiting: _Waiting
) -> _Waiting:
    """Ask for a search where one is due; returns those whom the last search left though nothing was proven of them."""
    search, fallback, now = snapshot.search, policy.fallback, snapshot.taken_at
    if search.is_under_way and not _is_suggestion(snapshot):
        told |= {pod.key: _also(item, _under_way(snapshot, policy)) for pod, item in waiting}
        return []
    is_same = search.ended_at is not None and search.circumstances == circumstances(snapshot)
    left = search.left if search.ended_at is not None else {}
    ripe = [(pod, item) for pod, item in waiting if now - pod.created_at >= fallback.after_s]
    asked = [(pod, item) for pod, item in ripe if not (is_same and pod.uid in left)]
    paused_s = 0.0 if search.ended_at is None else search.ended_at + fallback.pause_s - now
    # The plan that comes with an answer asks for no other one: it preempts for what was left, even without a pause.
    if asked and paused_s <= 0 and search.ended_at != now:
        result.optimize = tuple(pod.key for pod, _ in asked)
        told |= {pod.key: _also(item, "a better placement of what runs is searched for") for pod, item in asked}
        return []
    for pod, item in waiting:
        if is_same and left.get(pod.uid, False):
            told[pod.key] = _also(item, "proven: no other placement of what runs would take it in")
        elif paused_s > 0:
            told[pod.key] = _also(
                item, f"a better placement is searched for again {policy.fallback.pause_s:g} s after the last search"
            )
    return [(pod, item) for pod, item in waiting if left.get(pod.uid) is False]


def _under_way(snapshot: ClusterSnapshot, policy: Policy) -> str:
    """What is waited for, and the longest that it may take."""
    if snapshot.rearrangement is None:
        return f"a search for a better placement is under way, of {policy.fallback.budget_s:g} s at most"
    left_s = max(0.0, snapshot.rearrangement.started_at + policy.timeouts.drain_s - snapshot.taken_at)
    return f"a rearrangement is under way, for {left_s:.0f} s more at most"


def _also(item: UnplacedPod, message: str) -> UnplacedPod:
    return msgspec.structs.replace(item, message=f"{item.message} {message}" if item.message else message)


def _preempt(
    result: FallingBack,
    told: dict[str, UnplacedPod],
    opening: Opening,
    snapshot: ClusterSnapshot,
    policy: Policy,
    waiting: _Waiting,
) -> None:
    preemptor = Preemptor(opening, snapshot, policy, snapshot.taken_at)
    hopeless = _Hopeless()
    classes_left = {id(opening.book.class_of(pod)) for pod, _ in waiting}
    for pod, item in _in_turn(waiting, preemptor):
        cls = opening.book.class_of(pod)
        is_enough = len(result.nominated) == MOST_AT_ONCE or preemptor.is_lesser_work_in_the_way
        if is_enough or preemptor.looks_left <= 0:
            told[pod.key] = _also(item, "others are preempted for first")
            continue
        found = hopeless.why(cls) or preemptor.preempt(pod, len(classes_left))
        classes_left.discard(id(cls))
        if isinstance(found, str):
            told[pod.key] = _also(item, found)
            if pod.preempts:
                hopeless.note(cls, found)
            continue
        _decide(result, pod, found)
        told[pod.key] = UnplacedPod(
            pod.key, Unplaced.NOMINATED, f"nominated to {found.node}: {_who(found)}", item.nodes
        )
    for nominee in preemptor.displaced:
        pod, node = nominee.pod, opening.sim.table.nodes[nominee.row].name
        told[pod.key] = UnplacedPod(pod.key, Unplaced.GIVES_WAY, f"its room on {node} goes to work of higher priority")
    result.displaced = frozenset(nominee.pod.key for nominee in preemptor.displaced)
    result.is_lesser_work_in_the_way = preemptor.is_lesser_work_in_the_way
    preemptor.restore()


def _in_turn(waiting: _Waiting, preemptor: Preemptor) -> Iterator[tuple[Pod, UnplacedPod]]:
    """The most important first, for half of the work that a plan does; then those whose turn it is.

    So work of high priority that there is no way for does not keep all other work waiting for ever.
    """
    for i, each in enumerate(waiting):
        if not preemptor.has_much_left:
            yield from preemptor.turned(waiting[i:])
            return
        yield each


class _Hopeless:
    """Classes there was no way for: nor is there for the next pod of them, nor for one that asks for more."""

    def __init__(self) -> None:
        self._known: dict[object, list[tuple[Ints, str]]] = {}

    def note(self, cls: PodClass, why: str) -> None:
        self._known.setdefault(self._kind(cls), []).append((cls.requests, why))

    def why(self, cls: PodClass) -> str | None:
        """Why there is no way for a class, as far as that is known."""
        known = self._known.get(self._kind(cls), ())
        return next((why for requests, why in known if (requests <= cls.requests).all()), None)

    @staticmethod
    def _kind(cls: PodClass) -> object:
        """Spread and affinity tell classes apart; without them what the node is asked for does."""
        return id(cls) if cls.is_dynamic else (cls.priority, cls.static_key)


def _decide(result: FallingBack, pod: Pod, found: Preempted) -> None:
    result.preempt += [Preemption(victim.key, found.node, pod.key) for victim in found.victims]
    result.nominated[pod.key] = found.node
    result.leaving += found.victims


def _who(found: Preempted) -> str:
    """Who leaves, by name where they are few."""
    if not found.victims:
        return "it waits for pods that end there"
    names = [victim.key for victim in found.victims[:3]]
    more = len(found.victims) - len(names)
    return f"{', '.join(names)}{f' and {more} more' if more else ''} of lower priority leave for it"


def circumstances(snapshot: ClusterSnapshot) -> str:
    """What a search for a better placement depends on, as a short text: while it is the same, so is what is found.

    It changes with every pod that comes, goes or is bound, with every node, and with what budgets allow.
    """
    cluster = snapshot.cluster
    digest = blake2b(digest_size=16)
    for pod in sorted((pod.uid, pod.node or "", pod.is_terminating, len(pod.gates)) for pod in cluster.pods):
        digest.update(repr(pod).encode())
    for node in sorted((node.name, node.is_ready, node.is_unschedulable, len(node.taints)) for node in cluster.nodes):
        digest.update(repr(node).encode())
    for budget in sorted((budget.namespace, budget.name, budget.disruptions_allowed) for budget in cluster.budgets):
        digest.update(repr(budget).encode())
    return digest.hexdigest()
