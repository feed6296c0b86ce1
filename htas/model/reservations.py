"""Reservations: which pending pod belongs on which machine, carried from plan to plan."""

from __future__ import annotations

import msgspec


class Reservation(msgspec.Struct, frozen=True):
    """A pending pod's room on a launched machine; `claim` is the machine's NodeClaim, `since` when it was reserved."""

    claim: str
    since: float
