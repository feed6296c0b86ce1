"""Moves that an operator asked for: judged as the cleaner's are, and carried out between two plans."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_hex
from threading import Lock

import msgspec

from htas.model.migrations import MigrationRecord, Refusal
from htas.model.nodes import Node
from htas.model.pods import Phase, Pod
from htas.model.policy import CleaningRules, MigrationMethod, Policy
from htas.model.record import Outcome, OutcomeStatus
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.opening import open_simulation
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.drain_rules.rule import Context
from htas.planning.eligibility.movability import VolumeBook, refusal, source_refusal, target_refusal
from htas.ports import HTASError, MigrationPort, MoveRefusedError

REMEMBERED = 100
"""Requests that are kept for those who ask what became of them; so many may wait, too."""


class TooManyWaitingError(HTASError):
    """No more requests are taken until a cycle has seen to those that wait."""


class MoveRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was asked for; forced, wishes that the pod stay are passed over.

    `uid` is that of the pod whose move has begun; `refusal` why none did (a Refusal, or none of them), and `detail` its
    text.
    """

    id: str
    pod: str
    target: str
    method: MigrationMethod | None = None
    uid: str = ""
    begun_at: float | None = None
    is_refused: bool = False
    is_forced: bool = False
    refusal: str = ""
    detail: str = ""

    @property
    def is_waiting(self) -> bool:
        return self.begun_at is None and not self.is_refused


@dataclass(slots=True)
class RequestedMoves:
    """Asked from any thread, carried out by the one that runs the cycles."""

    migration: MigrationPort
    _requests: deque[MoveRequest] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)
    _asked: int = 0
    on_request: Callable[[], None] = lambda: None
    """Called, by the thread that asks, for each."""

    def ask(
        self, pod: str, target: str, method: MigrationMethod | None = None, *, is_forced: bool = False
    ) -> MoveRequest:
        """Ask for a pod (`namespace/name`) to be moved; the next cycle begins it, or says why not.

        Raises TooManyWaitingError; the oldest that waits no more is forgotten for a new one, never one that waits.
        """
        request = MoveRequest(token_hex(4), pod, target, method, is_forced=is_forced)
        with self._lock:
            if len(self._requests) >= REMEMBERED:
                seen_to = next((each for each in self._requests if not each.is_waiting), None)
                if seen_to is None:
                    raise TooManyWaitingError(
                        f"{REMEMBERED} moves that were asked for wait to be begun; ask again later"
                    )
                self._requests.remove(seen_to)
            self._requests.append(request)
            self._asked += 1
        self.on_request()
        return request

    @property
    def asked(self) -> int:
        """How many have been asked for so far: a number that grows with each."""
        return self._asked

    @property
    def are_waiting(self) -> bool:
        with self._lock:
            return any(request.is_waiting for request in self._requests)

    def state(self, request_id: str) -> tuple[MoveRequest, MigrationRecord | None] | None:
        """What became of a request, with the newest record of its move; None: it is not known, or forgotten."""
        with self._lock:
            request = next((each for each in self._requests if each.id == request_id), None)
        if request is None:
            return None
        moves = [move for move in self.migration.records() if move.uid == request.uid and request.uid]
        return request, max(moves, key=lambda move: move.started_at, default=None)

    def carry_out(self, snapshot: ClusterSnapshot, policy: Policy) -> list[Outcome]:
        """Begin what waits, or refuse it with the reason."""
        with self._lock:
            waiting = [request for request in self._requests if request.is_waiting]
        return [self._carry_out(request, snapshot, policy) for request in waiting]

    def _carry_out(self, request: MoveRequest, snapshot: ClusterSnapshot, policy: Policy) -> Outcome:
        try:
            pod, method = judged(request, snapshot, policy)
            self.migration.start(pod, request.target, method)
        except HTASError as error:
            reason = error.reason.value if isinstance(error, MoveRefusedError) else ""
            detail = str(error.args[0]) if error.args else type(error).__name__
            self._replace(msgspec.structs.replace(request, is_refused=True, refusal=reason, detail=detail))
            return Outcome("migrate", request.pod, OutcomeStatus.FAILED, f"to {request.target}, as asked: {error}")
        begun = msgspec.structs.replace(request, uid=pod.uid, begun_at=snapshot.taken_at, method=method)
        self._replace(begun)
        how = "by force" if request.is_forced else "as asked"
        return Outcome("migrate", request.pod, OutcomeStatus.DONE, f"to {request.target}, {how}")

    def _replace(self, request: MoveRequest) -> None:
        with self._lock:
            for at, each in enumerate(self._requests):
                if each.id == request.id:
                    self._requests[at] = request


def judged(request: MoveRequest, snapshot: ClusterSnapshot, policy: Policy) -> tuple[Pod, MigrationMethod]:
    """The pod of a request and how to move it; raises MoveRefusedError where something speaks against it."""
    view = snapshot.cluster
    pod = next((pod for pod in view.pods if pod.key == request.pod), None)
    if pod is None or pod.phase is not Phase.RUNNING or pod.node is None or pod.is_terminating:
        raise MoveRefusedError(Refusal.NOT_RUNNING, f"there is no pod {request.pod} that runs, and goes on running")
    nodes = {node.name: node for node in view.nodes}
    source, target = nodes.get(pod.node), nodes.get(request.target)
    if target is None:
        raise MoveRefusedError(Refusal.TARGET_NOT_READY, f"there is no node {request.target}")
    if pod.node == target.name:
        raise MoveRefusedError(Refusal.NOT_RUNNING, f"pod {pod.key} is on {target.name} already")
    method = request.method or _method_for(source, policy)
    refused = (
        _not_anybodys(pod)
        or refusal(pod, method, policy.migration, VolumeBook.of(view.volumes))
        or (None if request.is_forced else _promised(pod, source, snapshot, policy))
        or (source_refusal(source, method) if source is not None else None)
        or target_refusal(target, method)
        or _no_room(pod, target, snapshot, policy)
    )
    if refused is not None:
        raise MoveRefusedError(refused[0], f"pod {pod.key}: {refused[1]}")
    return pod, method


def _not_anybodys(pod: Pod) -> tuple[Refusal, str] | None:
    """Pods that belong to their node: another would be made there at once. The cleaner never asks for those."""
    if pod.is_daemon:
        return Refusal.OWNER_UNKNOWN, "a DaemonSet's pod belongs to its node"
    return (Refusal.OWNER_UNKNOWN, "it is the kubelet's own (a static pod)") if pod.is_mirror else None


def _promised(pod: Pod, source: Node | None, snapshot: ClusterSnapshot, policy: Policy) -> tuple[Refusal, str] | None:
    """A wish that the pod stay where it is, which the cleaner heeds, too."""
    group = policy.group(source.group if source is not None else None)
    rules = group.cleaning if group is not None else CleaningRules()
    budgets = BudgetLedger(snapshot.cluster.budgets, ())
    verdict = drain_rules.promised(pod, Context(rules, budgets, snapshot.taken_at))
    if verdict is None or verdict.blocked is None:
        return None
    return Refusal.PROMISED, f"{verdict.blocked.value}: {verdict.message}; --force moves it all the same"


def _method_for(source: Node | None, policy: Policy) -> MigrationMethod:
    """The group's method; of a node without a group, the only one that any group has."""
    group = policy.group(source.group if source is not None else None)
    groups = [group] if group is not None else policy.groups
    methods = {each.cleaning.migration for each in groups if each.cleaning.migration.makes_twin}
    if len(methods) != 1:
        whose = f"group {group.name} moves" if group is not None else "the groups move"
        how = ", ".join(sorted({each.cleaning.migration.value for each in groups}))
        raise MoveRefusedError(Refusal.NOT_CONFIGURED, f"{whose} pods by {how}; state another method")
    return methods.pop()


def _no_room(pod: Pod, target: Node, snapshot: ClusterSnapshot, policy: Policy) -> tuple[Refusal, str] | None:
    """Whether the scheduler's filters refuse the pod there, and in which words."""
    opening = open_simulation(snapshot, policy, snapshot.taken_at)
    sim, cls = opening.sim, opening.book.class_of(pod)
    row = sim.table.row_of[target.name]
    if sim.fits(cls, row):
        return None
    why = ", ".join(sim.diagnose(cls, slice(row, row + 1))) or "it takes no pods now"
    return Refusal.NO_ROOM, f"node {target.name}: {why}"
