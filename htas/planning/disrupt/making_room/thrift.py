"""Thrift: what moves off a machine cost in its life never exceeds what they saved.

A move for room is expected to save more than it costs, or it is not made. What is expected may not come: work that
arrives a minute later may have the machine bought after all. So for each machine is remembered what moves off it have
cost, and what they have saved up to now: the price of what was not bought for as long as nothing has been bought since,
and no longer than that was meant to be held. Another move off it must be paid for by what was saved so far and by what
it is expected to save itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from htas.model.snapshot import RoomMade


def saved(made: RoomMade, now: float) -> int:
    """Billionths an hour × seconds that moves off a machine have saved up to now."""
    return made.saved + int(made.nanos_per_hour * max(0.0, min(now, made.until) - made.since))


def may_move(made: RoomMade | None, cost: int, expected: int, now: float) -> bool:
    """Whether moves off a machine that cost so much, and are expected to save so much, are paid for."""
    if made is None:
        return cost < expected
    return cost < expected and made.cost + cost <= saved(made, now) + expected


def with_moves(made: RoomMade | None, cost: int, nanos_per_hour: int, held_s: float, now: float) -> RoomMade:
    """What is remembered of a machine once pods move off it instead of a machine being bought."""
    before, spent = (0, 0) if made is None else (saved(made, now), made.cost)
    return RoomMade(spent + cost, before, nanos_per_hour, now, now + held_s)


def remembered(
    before: Mapping[str, RoomMade], news: Mapping[str, RoomMade], nodes: Iterable[str], now: float, *, buys: bool
) -> dict[str, RoomMade]:
    """What the next plan is told: of nodes that are there. A purchase ends what was being saved."""
    there = set(nodes)
    kept = {name: _ended(made, now) if buys else made for name, made in before.items() if name in there}
    return kept | dict(news)


def _ended(made: RoomMade, now: float) -> RoomMade:
    return msgspec.structs.replace(made, until=min(made.until, max(now, made.since)))
