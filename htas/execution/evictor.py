"""The evictor: the one place that makes pods leave their nodes, by eviction or by a move that makes a twin.

Who leaves, and in which order, is decided elsewhere; here the call is made, told in the words of what it is made for,
and held to how many moves may be under way. Who could not leave, and since when, is kept in mind by `Retries`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from htas.execution.calls import Call, attempted, attempted_once
from htas.execution.crash_points import reached
from htas.execution.ports import Ports
from htas.model.moves import Move, MoveReason
from htas.model.nodes import Node
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Policy, grace_of
from htas.ports import MoveRefusedError

SYSTEM_CRITICAL = 2_000_000_000
"""Priorities of system-cluster-critical and above: those pods leave a node when the others have left."""


def first_to_leave(pods: Sequence[Pod]) -> Sequence[Pod]:
    """Of the pods of a node that is emptied those that leave now: the system-critical ones last."""
    return [pod for pod in pods if pod.priority < SYSTEM_CRITICAL] or pods


def told_as(move: Move) -> tuple[Action, str]:
    """What a move's outcome is told as, where it is begun."""
    to = f"to {move.target}"
    if move.reason is MoveReason.NODE_DRAINED:
        return (Action.MIGRATE, to) if move.method.makes_twin else (Action.EVICT, "")
    if move.target is None:
        return Action.DISPLACE, "evicted for more important work"
    return Action.MOVE, to if move.method.makes_twin else f"evicted, goes {to}"


Noted = Callable[[Outcome], None]
"""Told of each outcome, by the thread that made the call."""


@dataclass(slots=True)
class Evictor:
    ports: Ports
    policy: Policy

    def under_way(self) -> frozenset[str]:
        """Pods that are being moved."""
        return frozenset(move.pod for move in self.ports.migration.moving())

    def departures(self, nodes: Iterable[Node]) -> Departures:
        """Pods that leave in one step, held to how many moves may be under way at one time."""
        under_way = self.under_way()
        groups = {node.name: self.policy.group(node.group) for node in nodes}
        return Departures(self, groups, under_way, self.policy.migration.at_once - len(under_way))

    def evict(self, pod: Pod, group: NodeGroup | None, action: Action, message: str = "", target: str = "") -> Outcome:
        """By the Eviction API, with as long to end as the group of its node allows."""
        act = partial(self.ports.cluster.evict, pod, grace_of(pod, group))
        return attempted(action, pod.key, act, message, target)

    def preempt(self, victim: Pod, group: NodeGroup | None, message: str, *, breaks_budget: bool) -> Outcome:
        """Evict a victim; where a budget forbids that and the policy does not, delete it as kube-scheduler does."""
        act = partial(self.ports.cluster.evict, victim, grace_of(victim, group))
        if breaks_budget:
            act = partial(self.ports.cluster.preempt, victim, f"{self.policy.scheduler_name}: preempting {message}")
        outcome = attempted_once(Action.PREEMPT, victim.key, act, message)
        if outcome.status is OutcomeStatus.DONE:
            reached("preempt.evicted")
        return outcome

    def start(self, pod: Pod, move: Move) -> None:
        """Begin a move, as its method does; raises what that raises, MoveRefusedError among it."""
        self.ports.migration.start(pod, move.target or "", move.method)


@dataclass(slots=True)
class Departures:
    """Calls that make pods leave. `refused` has those whose move was refused, by uid, once the calls were made."""

    evictor: Evictor
    groups: Mapping[str, NodeGroup | None]
    under_way: frozenset[str]
    may_begin: int
    refused: dict[str, MoveRefusedError] = field(default_factory=dict)

    def call(self, pod: Pod, move: Move, noted: Noted) -> Call | None:
        """The call for one pod; None: it is on its way already, or as many moves as may be are under way."""
        if pod.key in self.under_way:
            return None
        if move.target is None or not move.method.makes_twin:
            return partial(self._evicted, pod, move, noted)
        if self.may_begin <= 0:
            return None
        self.may_begin -= 1
        return partial(self._moved, pod, move, noted)

    def _evicted(self, pod: Pod, move: Move, noted: Noted) -> Outcome:
        action, message = told_as(move)
        target = move.target or ""
        outcome = self.evictor.evict(pod, self.groups.get(move.source), action, message, target)
        noted(outcome)
        if outcome.status is OutcomeStatus.DONE:
            reached("drain.evicted" if move.reason is MoveReason.NODE_DRAINED else "rearrange.evicted")
        return outcome

    def _moved(self, pod: Pod, move: Move, noted: Noted) -> Outcome:
        action, message = told_as(move)

        def start() -> None:
            try:
                self.evictor.start(pod, move)
            except MoveRefusedError as error:
                self.refused[pod.uid] = error
                raise

        outcome = attempted(action, pod.key, start, message, move.target or "")
        noted(outcome)
        if outcome.status is OutcomeStatus.DONE and move.reason is not MoveReason.NODE_DRAINED:
            reached("rearrange.moved")
        return outcome
