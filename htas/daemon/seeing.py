"""A cycle, as the API and the pages are told of it."""

from __future__ import annotations

from htas.daemon.cycle import CycleResult, Daemon
from htas.web.seat import Seen


def seen(result: CycleResult, daemon: Daemon) -> Seen:
    return Seen(result.snapshot, result.plan, result.outcomes, result.stages, daemon.recorded)
