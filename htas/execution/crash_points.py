"""Points at which the kill tests end the process, to see that what was begun is finished or undone afterwards.

HTAS_CRASH_AT="drain.tainted:2" ends it with SIGKILL the second time it gets to that point. Nothing else uses this.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

POINTS = (
    "launch.journalled",
    "launch.created",
    "launch.recorded",
    "bind.sent",
    "preempt.nominated",
    "preempt.evicted",
    "preempt.done",
    "drain.journalled",
    "drain.claimed",
    "drain.tainted",
    "drain.evicted",
    "drain.emptied",
    "release.asked",
    "drain.undone",
    "release.recorded",
    "rearrange.journalled",
    "rearrange.evicted",
    "rearrange.moved",
    "rearrange.detour-journalled",
    "rearrange.eviction-journalled",
    "rearrange.noted",
    "rearrange.completed",
    "rearrange.cancelled",
    "openstack.server-created",
    "openstack.server-deleted",
    "kwok.machine-recorded",
    "kwok.node-created",
    "kwok.machine-deleted",
    "kwok.node-deleted",
    "move.prepared",
    "move.dumped",
    "move.checkpointed",
    "move.delivered",
    "move.transferred",
    "move.twin-created",
    "move.restored",
    "move.orphaned",
    "move.introduced",
    "move.source-first-to-go",
    "move.adopted",
    "move.switched",
    "move.source-deleted",
    "move.taken-back",
)
"""Of purchases, preemptions, rearrangements, drains, releases; of each provider; of moves."""

VARIABLE = "HTAS_CRASH_AT"

_reached: Counter[str] = Counter()


def reached(point: str) -> None:
    """Say that an effect has just been carried out."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    name, _, times = wanted.partition(":")
    if name == point:
        _reached[point] += 1
        if _reached[point] == int(times or 1):
            os.kill(os.getpid(), signal.SIGKILL)
