"""What one machine costs until it is given back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htas.model.claims import NodeClaim
from htas.model.flavours import Billing

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RunningBill:
    """The bill of a machine that is charged for since an instant; a price is billionths of the currency an hour."""

    price: int
    since: float
    billing: Billing

    def seconds_in(self, now: float, s: float) -> int:
        """What is billed of a machine given back in so many seconds; nothing is taken back if it is not rented yet."""
        return self.billing.billed_seconds(now - self.since + s)

    def until(self, instant: float) -> int:
        """The bill of a machine given back at an instant: price × billed seconds.

        10 a second by the minute, charged for since 0: 600 until 1, 1,200 until 61.
        """
        return self.price * self.seconds_in(instant, 0.0)

    def longer(self, until: float, later: float) -> int:
        """What it costs to give it back later: 0 within what is paid for anyway, and where `later` is not later."""
        return max(0, self.until(later) - self.until(until))


def paid_for_s(claim: NodeClaim, billing: Billing, now: float) -> float:
    """How long a machine is paid for already: 40 s into a minute, 20 s.

    A machine rented later than now tells that our clock is behind the cloud's, or was put back: of its time only the
    place within a period is taken, or with a clock three days behind every machine would be kept for three days.
    """
    held = now - claim.rented_since
    if held < 0:
        return -held % billing.granularity_s
    return billing.billed_seconds(held) - held


def billed_until(billing: Billing, since: Floats, until: Floats) -> Floats:
    """Seconds that machines are billed for which are rented from `since` to `until`: of many at once."""
    held = np.ceil(np.maximum(until - since, 0.0) / billing.granularity_s) * billing.granularity_s
    billed: Floats = np.maximum(held, billing.minimum_s)
    return billed
