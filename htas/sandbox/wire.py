"""How a sandbox world is talked to from another process: one JSON object a line, over a Unix socket.

A request is {"call": "cluster.bind", "args": [...]}; the answer {"ok": ...} or {"error": {...}} with the error's class
by name, so that it can be raised again on the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from htas.model.claims import Headroom, Instance, NodeClaim, Usage
from htas.model.constraints import Taint
from htas.model.flavours import Flavour
from htas.model.migrations import MigrationRecord, Refusal
from htas.model.moves import MigrationMethod, Move
from htas.model.news import News
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.snapshot import ClusterView
from htas.ports import (
    CapacityError,
    ConflictError,
    HTASError,
    MoveRefusedError,
    NotFoundError,
    PermanentError,
    RefusedError,
    TransientError,
)
from htas.sandbox.ledger import Ledger
from htas.sandbox.world import World

CALLS: dict[str, tuple[Callable[[World], Callable[..., Any]], tuple[Any, ...], Any]] = {
    "clock.now": (lambda world: world.clock.now, (), float),
    "clock.speed": (lambda world: lambda: world.clock.speed, (), float),
    "cluster.observe": (lambda world: world.cluster.observe, (), ClusterView),
    "cluster.changes": (lambda world: world.cluster.changes, (), int),
    "cluster.bind": (lambda world: world.cluster.bind, (Pod, str, int | None), None),
    "cluster.evict": (lambda world: world.cluster.evict, (Pod, float | None), None),
    "cluster.nominate": (lambda world: world.cluster.nominate, (Pod, str | None), None),
    "cluster.preempt": (lambda world: world.cluster.preempt, (Pod, str), None),
    "cluster.set_draining": (lambda world: world.cluster.set_draining, (str, bool), None),
    "cluster.set_up_node": (lambda world: world.cluster.set_up_node, (str, dict[str, str], list[Taint]), None),
    "cluster.disown_node": (lambda world: world.cluster.disown_node, (str,), None),
    "cluster.delete_node": (lambda world: world.cluster.delete_node, (str,), None),
    "announcer.tell": (lambda world: world.announcer.tell, (list[News],), None),
    "announcer.mark_waiting": (lambda world: world.announcer.mark_waiting, (Pod, str), None),
    "announcer.publish": (lambda world: world.announcer.publish, (str,), None),
    "announcer.published": (lambda world: lambda: world.announcer.status, (), str),
    "announcer.told": (lambda world: world.announcer.told, (), list[News]),
    "cloud.create": (lambda world: world.cloud.create, (NodeClaim, Flavour, Node), Instance),
    "cloud.delete": (lambda world: world.cloud.delete, (str,), None),
    "cloud.adopt": (lambda world: world.cloud.adopt, (str, str, str, str), None),
    "cloud.instances": (lambda world: world.cloud.instances, (), list[Instance]),
    "cloud.usage": (lambda world: world.cloud.usage, (float, float), list[Usage] | None),
    "cloud.headroom": (lambda world: world.cloud.headroom, (), Headroom),
    "cloud.changes": (lambda world: world.cloud.changes, (), int),
    "migration.start": (lambda world: world.migration.start, (Pod, str, MigrationMethod), None),
    "migration.moving": (lambda world: world.migration.moving, (), list[Move]),
    "migration.records": (lambda world: world.migration.records, (), list[MigrationRecord]),
    "world.advance_to": (lambda world: world.advance_to, (float,), None),
    "world.next_event_at": (lambda world: world.next_event_at, (), float | None),
    "world.ledger": (lambda world: lambda: world.ledger, (), Ledger),
}
"""Every call: where to find it, its arguments' types, its result's type."""

ERRORS: dict[str, type[HTASError]] = {
    kind.__name__: kind
    for kind in (TransientError, PermanentError, RefusedError, NotFoundError, ConflictError, CapacityError)
}


class Request(msgspec.Struct):
    call: str
    args: list[msgspec.Raw] = []


class Failure(msgspec.Struct, omit_defaults=True):
    kind: str
    message: str
    retry_after_s: float | None = None
    is_quota: bool = False
    refusal: Refusal | None = None


class Answer(msgspec.Struct, omit_defaults=True):
    ok: msgspec.Raw = msgspec.Raw(b"null")
    error: Failure | None = None


def answer(world: World, line: bytes) -> bytes:
    """Carry out one request on a world. A request that makes no sense, or that is refused, is answered with why."""
    try:
        call, args = _understood(line)
        result = call(world)(*args)
    except HTASError as error:
        return msgspec.json.encode(Answer(error=_failure(error)))
    return msgspec.json.encode(Answer(ok=msgspec.Raw(msgspec.json.encode(result))))


def _understood(line: bytes) -> tuple[Callable[[World], Callable[..., Any]], list[Any]]:
    try:
        request = msgspec.json.decode(line, type=Request)
        find, kinds, _ = CALLS[request.call]
        return find, [msgspec.json.decode(arg, type=kind) for arg, kind in zip(request.args, kinds, strict=True)]
    except (KeyError, ValueError, msgspec.MsgspecError) as error:
        raise PermanentError(f"no such call or wrong arguments: {error}") from error


def _failure(error: HTASError) -> Failure:
    return Failure(
        type(error).__name__,
        error.args[0] if isinstance(error, MoveRefusedError) else str(error),
        error.retry_after_s if isinstance(error, TransientError) else None,
        isinstance(error, CapacityError) and error.is_quota,
        error.reason if isinstance(error, MoveRefusedError) else None,
    )


def raised(failure: Failure) -> HTASError:
    """The error an answer stands for; one of an unknown kind does not tell whether the call was carried out."""
    kind = ERRORS.get(failure.kind, TransientError)
    if failure.refusal is not None:
        return MoveRefusedError(failure.refusal, failure.message)
    if kind is TransientError:
        return TransientError(failure.message, failure.retry_after_s)
    if kind is CapacityError:
        return CapacityError(failure.message, is_quota=failure.is_quota)
    return kind(failure.message)
