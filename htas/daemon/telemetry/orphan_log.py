"""Orphans in the log: each once when it is found, and once when it has a place again."""

from __future__ import annotations

import structlog

from htas.daemon.loops.cycle import CycleResult
from htas.model.orphans import Orphan

log = structlog.get_logger()


class OrphanLog:
    """Told of each cycle."""

    def __init__(self) -> None:
        self._told: frozenset[Orphan] = frozenset()

    def observe(self, result: CycleResult) -> None:
        """Write down what has changed since the last cycle."""
        if result.snapshot.cloud_problem:
            return  # what is not listed is not known
        found = frozenset(result.snapshot.orphans)
        for each in sorted(found - self._told, key=lambda each: each.machine):
            log.warning("a machine that the configuration has no place for", machine=each.machine, what=each.says)
        for machine in sorted({each.machine for each in self._told} - {each.machine for each in found}):
            log.info("a machine is no orphan any more", machine=machine)
        self._told = found
