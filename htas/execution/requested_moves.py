"""Moves that an operator asked for: proposals of one move each, validated like any other, and begun between two plans.

A move has no entry in the journal's queue: its method writes it down on the pods, state by state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from threading import Lock

import msgspec

from htas.execution.evictor import Evictor
from htas.execution.validation import Refused, Validator
from htas.model.migrations import MigrationRecord, Refusal
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.nodes import Node
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.pods import Phase
from htas.model.policy import Policy
from htas.model.proposals import Proposal
from htas.model.reasons import ProposalReason
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.eligibility.migration_methods import MigrationMethods
from htas.ports import HTASError, MoveRefusedError

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

    evictor: Evictor
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
                    raise TooManyWaitingError(f"{REMEMBERED} requested moves are pending; try again later")
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
        moves = [move for move in self.evictor.ports.migration.records() if move.uid == request.uid and request.uid]
        return request, max(moves, key=lambda move: move.started_at, default=None)

    def carry_out(self, snapshot: ClusterSnapshot, policy: Policy) -> list[Outcome]:
        """Begin what waits, or refuse it with the reason."""
        with self._lock:
            waiting = [request for request in self._requests if request.is_waiting]
        validator = Validator(snapshot.cluster, policy, snapshot.taken_at, (), snapshot=snapshot)
        return [self._carry_out(request, validator) for request in waiting]

    def _carry_out(self, request: MoveRequest, validator: Validator) -> Outcome:
        told = partial(Outcome, Action.MIGRATE, request.pod, target=request.target)
        try:
            proposal = proposed(request, validator.view, validator.policy)
            wrong = validator.why_not(proposal)
            if isinstance(wrong, Refused):
                raise MoveRefusedError(wrong.refusal, wrong.message)
            [move] = proposal.moves
            self.evictor.start(validator.pods[move.pod], move)
        except HTASError as error:
            reason = error.reason.value if isinstance(error, MoveRefusedError) else ""
            detail = str(error.args[0]) if error.args else type(error).__name__
            self._replace(msgspec.structs.replace(request, is_refused=True, refusal=reason, detail=detail))
            return told(OutcomeStatus.FAILED, f"to {request.target}, as requested: {error}")
        self._replace(msgspec.structs.replace(request, uid=move.uid, begun_at=validator.now, method=move.method))
        return told(OutcomeStatus.DONE, f"to {request.target}, {'by force' if request.is_forced else 'as requested'}")

    def _replace(self, request: MoveRequest) -> None:
        with self._lock:
            for at, each in enumerate(self._requests):
                if each.id == request.id:
                    self._requests[at] = request


def proposed(request: MoveRequest, view: ClusterView, policy: Policy) -> Proposal:
    """What is asked for, as it is to be validated; raises MoveRefusedError where there is no such pod, node or way."""
    pod = next((pod for pod in view.pods if pod.key == request.pod), None)
    if pod is None or pod.phase is not Phase.RUNNING or pod.node is None or pod.is_terminating:
        raise MoveRefusedError(Refusal.NOT_RUNNING, f"there is no pod {request.pod} that runs, and goes on running")
    if all(node.name != request.target for node in view.nodes):
        raise MoveRefusedError(Refusal.TARGET_NOT_READY, f"there is no node {request.target}")
    if pod.node == request.target:
        raise MoveRefusedError(Refusal.NOT_RUNNING, f"pod {pod.key} is on {request.target} already")
    method = request.method or MigrationMethods(view, policy).wanted(pod)
    if method is None:
        raise _no_method(next((node for node in view.nodes if node.name == pod.node), None), policy)
    reason = ProposalReason.FORCED if request.is_forced else ProposalReason.REQUESTED
    return Proposal(reason, (Move(pod.key, pod.uid, pod.node, request.target, method, MoveReason.REQUESTED),))


def _no_method(source: Node | None, policy: Policy) -> MoveRefusedError:
    group = policy.group(source.group if source is not None else None)
    whose = f"group {group.name} moves" if group is not None else "the groups move"
    how = ", ".join(sorted({each.cleaning.migration.value for each in ([group] if group else policy.groups)}))
    return MoveRefusedError(Refusal.NOT_CONFIGURED, f"{whose} pods by {how}; state another method")
