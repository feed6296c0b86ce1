"""Bodies as stores and queues hold them: read in today's form, or in that of an earlier htas.

Moves had seven types once, of which one told who is preempted, one what leaves a node that is drained, and so on; a
victim of a rearrangement was a pod with the node that it stands on anyway. Journals are migrated when a store is
opened; recorded cycles and what waits to be shipped stay as they were written, and are understood as they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from htas.model.moves import MigrationMethod, MoveReason
from htas.model.rearrangement import OpenRearrangement
from htas.model.record import CycleRecord
from htas.model.snapshot import Drain

_T = TypeVar("_T")
Json = dict[str, Any]


def decoded(body: bytes | str, kind: type[_T]) -> _T:
    """A body of that kind; raises msgspec.DecodeError where it is of no form that was ever written."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        if (upgrade := _UPGRADES.get(kind)) is None:
            raise
        return msgspec.convert(upgrade(msgspec.json.decode(body, type=Json)), kind)


def _drain(old: Json) -> Json:
    return {**old, "moves": [_move(move, MoveReason.NODE_DRAINED) for move in old.get("moves", ())]}


def _rearrangement(old: Json) -> Json:
    return {**old, "victims": [victim.get("pod", victim) for victim in old.get("victims", ())]}


def _cycle(old: Json) -> Json:
    snapshot, plan = old["snapshot"], old["plan"]
    carry = plan.get("carry", {})
    steps = [_move(step, _step_reason(step)) for step in carry.get("steps", ())]
    suggest = [_move(move, _suggested_reason(move)) for move in carry.get("suggest", ())]
    rearrangement = snapshot.get("rearrangement")
    return {
        **old,
        "snapshot": {
            **snapshot,
            "drains": [_drain(drain) for drain in snapshot.get("drains", ())],
            "moves": [_move(move, MoveReason.UNDER_WAY) for move in snapshot.get("moves", ())],
            "rearrangement": _rearrangement(rearrangement) if rearrangement else None,
        },
        "plan": {
            **plan,
            "preempt": [_preemption(item) for item in plan.get("preempt", ())],
            "migrate": [_move(move, MoveReason.NODE_DRAINED) for move in plan.get("migrate", ())],
            "carry": {**carry, "steps": steps, "suggest": suggest},
        },
    }


def _move(old: Json, reason: MoveReason) -> Json:
    return {"uid": "", "reason": reason, **old}


def _step_reason(old: Json) -> MoveReason:
    if old.get("is_detour"):
        return MoveReason.DETOUR
    return MoveReason.BREAKS_CYCLE if old.get("breaks_cycle") else MoveReason.MAKES_ROOM


def _suggested_reason(old: Json) -> MoveReason:
    return MoveReason.NEARER_TO_USERS if old.get("is_aim") else MoveReason.MAKES_ROOM


def _preemption(old: Json) -> Json:
    if "source" in old:
        return old
    move = {"pod": old["pod"], "source": old["node"], "target": None, "method": MigrationMethod.EVICT}
    return _move({**move, "beneficiary": old["beneficiary"]}, MoveReason.PREEMPTED)


_UPGRADES: dict[type[Any], Callable[[Json], Json]] = {
    Drain: _drain,
    OpenRearrangement: _rearrangement,
    CycleRecord: _cycle,
}
