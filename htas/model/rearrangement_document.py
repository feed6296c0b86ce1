"""Tiers, moves and seats as plain data: the form users script against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from htas.model.moves import Move
from htas.model.proposals import Seat
from htas.model.rearrangement import PriorityTier


def tiers_document(tiers: Iterable[PriorityTier]) -> list[dict[str, Any]]:
    """What each priority gains, from the highest."""
    return [
        {
            "priority": tier.priority,
            "wanted": tier.wanted,
            "placedBefore": tier.placed_before,
            "placedAfter": tier.placed_after,
            "placedBound": tier.placed_bound,
            "placingProven": tier.is_placing_proven,
            "stays": tier.stays,
            "staysBound": tier.stays_bound,
            "stayingProven": tier.is_staying_proven,
        }
        for tier in tiers
    ]


def leave_document(moves: Iterable[Move]) -> list[dict[str, Any]]:
    """Pods that leave their nodes; `to` null: for nowhere."""
    return [{"pod": move.pod, "from": move.source, "to": move.target, "method": move.method.value} for move in moves]


def place_document(seats: Iterable[Seat]) -> list[dict[str, Any]]:
    """Waiting pods that get a node."""
    return [{"pod": seat.pod, "node": seat.node} for seat in seats]
