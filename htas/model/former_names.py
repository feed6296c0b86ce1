"""Names of reasons and verbs that an earlier htas recorded, and their names now."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

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


class Named(StrEnum):
    """Words that records keep: those of an earlier htas are read, and written by their names now."""

    @classmethod
    def _missing_(cls, value: object) -> Named | None:
        now = FORMER.get(value) if isinstance(value, str) else None
        return next((each for each in cls if each.value == now), None)
