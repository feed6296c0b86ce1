"""Cost sharing: whose work a machine's money was spent on.

At each instant the price of a machine is shared by the greatest shares of it that its pods ask for (`dominant_share`):

    pod's part = price × share ÷ max(1, Σ shares)

Where the shares come to less than 1, the rest of the price is idle. Where they come to more, nothing is idle, and each
pays in proportion. A pod without requests has no share and pays nothing.

A machine of 8 cores, 64 GiB and one GPU costs 1.15 an hour. A job with the GPU and one core has a share of 1, a build
of 6 cores 0.75. Together they are 1.75: the job pays 1.15 × 1 ÷ 1.75 = 0.657 an hour, the build 0.493, and nothing is
idle. Alone the build pays 0.75 × 1.15 = 0.8625 an hour, and 0.2875 are idle: the GPU and two cores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from htas.model.billing import Billing
from htas.model.record import Bill, Run
from htas.model.resources import MILLION
from htas.profiler.accounts import ALWAYS, Window, billed_span, nano_seconds

IDLE = "(idle)"
"""What no pod asked for: free room, time without work, and what rounding to the billing granularity adds."""


def part_of(nanos: int, share: int, shares: int) -> int:
    """What a pod pays of a machine's price for its share while all shares come to `shares`, both in millionths."""
    return nanos * share // max(MILLION, shares)


def by_work(
    key: Callable[[Run], str],
    bills: Iterable[Bill],
    runs: Iterable[Run],
    billing: Billing,
    now: float,
    window: Window = ALWAYS,
) -> dict[str, int]:
    """Price × billed seconds by a key of the work, such as its namespace, and IDLE: exactly the sum of the bills.

    A pod pays for the time it was on the machine. A bill that its monthly cap has lowered is spread evenly.
    """
    on_claim: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        on_claim[run.claim].append(run)
    sums: dict[str, int] = defaultdict(int)
    for bill in bills:
        whole = nano_seconds(bill, billing, now, window)
        idle = whole
        for name, part in _parts(key, bill, on_claim.get(bill.claim, []), billing, now, window, whole).items():
            sums[name] += part
            idle -= part
        sums[IDLE] += idle
    return dict(sorted(sums.items(), key=lambda item: (item[0] == IDLE, item[0])))


def _parts(
    key: Callable[[Run], str],
    bill: Bill,
    runs: Sequence[Run],
    billing: Billing,
    now: float,
    window: Window,
    whole: int,
) -> dict[str, int]:
    start, end = max(bill.started_at, window.since), min(_end(bill, now), window.until)
    stays = [_Stay(_ms(max(run.came_at, start)), _ms(min(run.ended_at, end)), run) for run in runs]
    stays = [stay for stay in stays if stay.until > stay.since]
    if not stays:
        return {}
    first, last = billed_span(bill, billing, now, window)
    # Windows are billed from their first whole second, stays are counted from the millisecond.
    whole_ms = max(1000 * (last - first), _ms(end) - _ms(start))
    parts: dict[str, int] = defaultdict(int)
    for name, held in _held(key, stays).items():
        parts[name] += whole * held // (whole_ms * MILLION)
    return parts


class _Stay(NamedTuple):
    """A run while its machine is billed: from and until, in milliseconds."""

    since: int
    until: int
    run: Run


def _held(key: Callable[[Run], str], stays: Sequence[_Stay]) -> dict[str, int]:
    """Milliseconds × millionths of the machine by key: between two changes each has the same part of it."""
    changes: dict[int, tuple[list[Run], list[Run]]] = defaultdict(lambda: ([], []))
    for stay in stays:
        changes[stay.since][0].append(stay.run)
        changes[stay.until][1].append(stay.run)
    shares: dict[str, int] = defaultdict(int)
    held: dict[str, int] = defaultdict(int)
    for at, following in pairwise(sorted(changes)):
        came, left = changes[at]
        for run in came:
            shares[key(run)] += run.share_millionths
        for run in left:
            shares[key(run)] -= run.share_millionths
        together = sum(shares.values())
        for name, share in shares.items():
            held[name] += part_of((following - at) * MILLION, share, together)
    return held


def _ms(instant: float) -> int:
    return int(instant * 1000)


def _end(bill: Bill, now: float) -> float:
    return bill.ended_at if bill.ended_at is not None else now
