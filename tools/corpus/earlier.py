"""Snapshots as they were recorded before their form changed: in the form and by the names of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from htas.model.moves import MoveReason

Json = dict[str, Any]

FORMER: Mapping[str, str] = {
    "GatheringForPurchase": "BatchingWindow",
    "PurchaseFirst": "LaunchFirst",
    "MachineComing": "MachineStarting",
    "SlotOfRearrangement": "RearrangementUnderWay",
    "RoomMade": "MovesMakeRoom",
    "InsteadOfBuying": "InsteadOfLaunch",
    "Promised": "Protected",
    "WorkWaits": "PodsPending",
    "release": "delete",
    "purchase-failed": "launch-failed",
    "look-ahead": "headroom",
}
"""Names of reasons and verbs as they were recorded, and their names now."""
_DROPPED = frozenset({"started_at", "is_detour", "breaks_cycle", "is_aim"})
"""Of a move: what its reason says now, and what nobody read."""


def renamed(value: Any) -> Any:
    """A document with every name by its name of today."""
    if isinstance(value, dict):
        return {key: renamed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each) for each in value]
    return FORMER.get(value, value) if isinstance(value, str) else value


def _drain(old: Json) -> Json:
    return {**old, "moves": [_move(move, MoveReason.NODE_DRAINED) for move in old.get("moves", ())]}


def _rearrangement(old: Json) -> Json:
    return {**old, "victims": [victim.get("pod", victim) for victim in old.get("victims", ())]}


def snapshot(old: Json) -> Json:
    """A snapshot in the form of today."""
    rearrangement = old.get("rearrangement")
    return {
        **old,
        "drains": [_drain(drain) for drain in old.get("drains", ())],
        "moves": [_move(move, MoveReason.UNDER_WAY) for move in old.get("moves", ())],
        "rearrangement": _rearrangement(rearrangement) if rearrangement else None,
    }


def _move(old: Json, reason: MoveReason) -> Json:
    return {"uid": "", "reason": reason, **{key: value for key, value in old.items() if key not in _DROPPED}}
