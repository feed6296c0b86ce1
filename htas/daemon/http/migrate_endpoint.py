"""Where operators ask for moves: who may, whether this daemon is the one to ask, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from htas.execution.moves_seen import step_seconds
from htas.execution.requested_moves import MoveRequest, RequestedMoves, TooManyWaitingError
from htas.model.migrations import MigrationRecord
from htas.model.moves import MigrationMethod
from htas.web.sent import RequestRefusedError

Json = dict[str, Any]


class MigrateRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of POST /api/migrate. `method` null: that of the pod's node group; `force`: whoever wishes it stayed."""

    pod: str
    node: str
    method: MigrationMethod | None = None
    force: bool = False


@dataclass(slots=True)
class MigrateEndpoint:
    """Open while this daemon leads. Who may ask has been asked before (`authorization.Guarded`)."""

    requests: RequestedMoves | None = None

    def ask(self, body: bytes) -> Json:
        """Take a request; raises RequestRefusedError."""
        requests = self._open()
        try:
            wish = msgspec.json.decode(body, type=MigrateRequest)
        except msgspec.DecodeError as error:
            raise RequestRefusedError(
                400, f'the body is not {{"pod": "namespace/name", "node": "name"}}: {error}'
            ) from error
        if wish.pod.count("/") != 1 or not all(wish.pod.split("/")) or not wish.node:
            raise RequestRefusedError(
                400, f"{wish.pod!r} to {wish.node!r}: write namespace/name of a pod and the name of a node"
            )
        if wish.method is MigrationMethod.EVICT:
            raise RequestRefusedError(400, "method: evict keeps no progress; kubectl delete pod does as much")
        try:
            return described(requests.ask(wish.pod, wish.node, wish.method, is_forced=wish.force), None)
        except TooManyWaitingError as error:
            raise RequestRefusedError(429, str(error)) from error

    def state(self, request_id: str) -> Json:
        """What became of a request; raises RequestRefusedError."""
        found = self._open().state(request_id)
        if found is None:
            raise RequestRefusedError(
                404, f"{request_id}: no such request; the last hundred are remembered, until a daemon ends"
            )
        return described(*found)

    def _open(self) -> RequestedMoves:
        if self.requests is None:
            raise RequestRefusedError(503, "this daemon does not lead; use the one that does (the lease names it)")
        return self.requests


def described(request: MoveRequest, move: MigrationRecord | None) -> Json:
    """A request as people and programs read it. `state` is Asked, Refused, or that of its move."""
    state = "Refused" if request.is_refused else "Asked"
    told: Json = {"id": request.id, "pod": request.pod, "node": request.target, "state": state}
    if request.method is not None:
        told["method"] = request.method.value
    if request.is_refused:
        return {**told, "reason": request.refusal, "detail": request.detail, "isOver": True}
    if move is None:
        return {**told, "isOver": False}
    told |= {
        "method": move.method.value,
        "state": move.state.value,
        "isOver": move.is_over,
        "from": move.source,
        "twin": move.twin,
        "attempt": move.attempt,
        "archiveBytes": move.archive_bytes,
        "seconds": step_seconds(move),
        "reason": move.reason,
        "detail": move.detail,
    }
    again = move.repeated_s
    return told if again is None else {**told, "repeatedSeconds": again}
