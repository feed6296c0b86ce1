"""Retries: the one memory of what could not be done, since when, and of whom is therefore left alone for a while."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from htas.model.outcomes import Outcome, OutcomeStatus
from htas.model.policy import Timeouts
from htas.model.snapshot import MoveBackoff

FIRST_PAUSE_S = 300.0
"""After a move that failed, at least: what ails a pod or a node passes more slowly than want of a flavour."""
REMEMBERED = 1000
"""So many nodes and pods are left alone at one time; the oldest are forgotten first."""


@dataclass(slots=True)
class Retries:
    """By entry of the queue, who could not leave: a pod (its uid) of a rearrangement; of a drain its node, since one
    pod that goes is progress. By node and pod, until when they are let be, whoever asked."""

    timeouts: Timeouts
    _stuck: dict[str, dict[str, float]] = field(default_factory=dict)
    _refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    _left_alone: dict[tuple[str, str], MoveBackoff] = field(default_factory=dict)
    """A wait that is over is kept: the next is twice as long."""

    def note(self, entry: str, who: str, outcome: Outcome, now: float) -> None:
        """Since when somebody could not leave; who could, is forgotten."""
        if outcome.status is OutcomeStatus.DONE:
            self._stuck.get(entry, {}).pop(who, None)
        else:
            self._stuck.setdefault(entry, {}).setdefault(who, now)

    def keep(self, entry: str, known: Collection[str]) -> None:
        """Of an entry forget all others: they are asked to leave no more."""
        self._stuck[entry] = {who: at for who, at in self._stuck.get(entry, {}).items() if who in known}

    def stuck(self, entry: str, now: float) -> list[str]:
        """Who could not leave for as long as an eviction may be refused."""
        found = self._stuck.get(entry, {}).items()
        return [who for who, at in found if now - at >= self.timeouts.eviction_s]

    def refuse(self, entry: str, pod: str, why: str) -> None:
        """That a pod cannot be moved as it is."""
        self._refused[entry] = pod, why

    def refused(self, entry: str) -> tuple[str, str] | None:
        """A pod that cannot be moved as it is, and why."""
        return self._refused.get(entry)

    def forget_all_but(self, entries: Collection[str]) -> None:
        """Entries that are no more."""
        self._stuck = {entry: found for entry, found in self._stuck.items() if entry in entries}
        self._refused = {entry: found for entry, found in self._refused.items() if entry in entries}

    def begin(self, left_alone: Collection[MoveBackoff]) -> None:
        """Go on from what an earlier daemon had on record."""
        for each in left_alone:
            self._left_alone.setdefault((each.node, each.pod), each)

    def moved(self, node: str, pod: str) -> None:
        """Forget waits of a pod that was moved, and of drains of its node, from which pods are moved after all.

        Others stay: that one pod could leave says nothing of a neighbour whose eviction a webhook refuses.
        """
        self._left_alone = {
            key: each
            for key, each in self._left_alone.items()
            if key != (node, pod) and not (each.node == node and each.of_drain)
        }

    def leave_alone(self, node: str, pod: str, why: str, now: float, *, of_drain: bool = False) -> None:
        """Let a node and a pod be for a while: 5 minutes at first, twice as long each time, up to 30 (`backoffMax`).

        Failures within a wait do not lengthen it: what was taken back is told by the one who asked for it, too.
        """
        known = self._left_alone.get((node, pod))
        if known is not None and now < known.until:
            self._left_alone[node, pod] = msgspec.structs.replace(known, of_drain=known.of_drain or of_drain)
            return
        wait_s = max(FIRST_PAUSE_S, self.timeouts.backoff_initial_s)
        if known is not None:
            wait_s = min(2 * (known.wait_s or wait_s), self.timeouts.backoff_max_s)
            del self._left_alone[node, pod]  # the newest come last
        self._left_alone[node, pod] = MoveBackoff(node, pod, why, now + wait_s, wait_s, of_drain)
        while len(self._left_alone) > REMEMBERED:
            del self._left_alone[next(iter(self._left_alone))]

    def left_alone(self, now: float) -> tuple[MoveBackoff, ...]:
        return tuple(each for each in self._left_alone.values() if now < each.until)
