"""Whose work a machine's money was spent on: its bill, split by what each pod asked for while it was there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from htas.model.flavours import Billing
from htas.model.record import Bill, Run
from htas.profiler.accounts import ALWAYS, Window, nano_seconds
from htas.profiler.stays import WHOLE

IDLE = "(idle)"
"""What nobody asked for: free room, time without work, and what rounding to the billing granularity adds."""


def by_work(
    key: Callable[[Run], str],
    bills: Iterable[Bill],
    runs: Iterable[Run],
    billing: Billing,
    now: float,
    window: Window = ALWAYS,
) -> dict[str, int]:
    """Price × billed seconds by a key of the work, such as its namespace, and IDLE: exactly the sum of the bills.

    A pod pays its share of the machine (the mean of its shares of CPU and memory) for the time it was there.
    """
    on_claim: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        on_claim[run.claim].append(run)
    sums: dict[str, int] = defaultdict(int)
    for bill in bills:
        whole = nano_seconds(bill, billing, now, window)
        parts = _parts(key, bill, on_claim.get(bill.claim, []), now, window)
        asked = sum(parts.values())
        if asked > whole:  # a pod's twin and itself, or clocks that disagree
            parts = {name: part * whole // asked for name, part in parts.items()}
        for name, part in parts.items():
            sums[name] += part
        sums[IDLE] += whole - sum(parts.values())
    return dict(sorted(sums.items(), key=lambda item: (item[0] == IDLE, item[0])))


def _parts(key: Callable[[Run], str], bill: Bill, runs: Iterable[Run], now: float, window: Window) -> dict[str, int]:
    start, end = max(bill.started_at, window.since), min(_end(bill, now), window.until)
    parts: dict[str, int] = defaultdict(int)
    for run in runs:
        held_ms = int((min(run.ended_at, end) - max(run.came_at, start)) * 1000)
        if held_ms > 0:
            parts[key(run)] += bill.nanos_per_hour * held_ms * run.share_millionths // (1000 * WHOLE)
    return parts


def _end(bill: Bill, now: float) -> float:
    return bill.ended_at if bill.ended_at is not None else now
