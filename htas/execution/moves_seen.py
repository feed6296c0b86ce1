"""What became of moves, told once each and learned from; who could not leave, and is left alone for a while."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from htas.model.migrations import Failure, MigrationRecord, MigrationState
from htas.model.move_times import MoveTimes
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Timeouts
from htas.model.snapshot import MoveBackoff
from htas.ports import MigrationPort

STEPS = {
    "checkpoint": (MigrationState.PREPARED, MigrationState.CHECKPOINTED),
    "copy": (MigrationState.CHECKPOINTED, MigrationState.TRANSFERRED),
    "restore": (MigrationState.TRANSFERRED, MigrationState.RESTORED),
    "switch": (MigrationState.RESTORED, MigrationState.SWITCHED),
    "end": (MigrationState.SWITCHED, MigrationState.DONE),
    "total": (MigrationState.PREPARED, MigrationState.DONE),
}
"""What people call the time between two states of the attempt that succeeded."""
LEAST_TOLD_S = 0.05
"""A step that took less is left out of the line that tells of a move."""
START = (MigrationState.PREPARED, MigrationState.RESTORED)
"""What a method without a checkpoint does at first: a fresh copy is started, until it is Ready."""
REMEMBERED = 1000
"""Ids of moves that were told: ten times as many as the port remembers itself."""


NOBODYS_FAULT = frozenset({Failure.SOURCE_ENDED, Failure.SOURCE_LOST, Failure.INTERRUPTED})
"""Failures that say nothing of what another move of the pod would come to."""
FIRST_PAUSE_S = 300.0
"""After a move that failed, at least: what ails a pod or a node passes more slowly than want of a flavour."""
MOST_LEFT_ALONE = 1000
"""So many nodes and pods are left alone at one time; the oldest are forgotten first."""


def why_of(move: MigrationRecord) -> str:
    """Why a move was taken back, in words."""
    return f"{move.reason}: {move.detail}" if move.detail else move.reason


def step_seconds(move: MigrationRecord) -> dict[str, float]:
    """How long each step of the last attempt took, as far as it came."""
    is_fresh = MigrationState.CHECKPOINTED not in move.reached
    steps = {"start": START, **STEPS} if is_fresh else STEPS
    taken = {step: move.took(*edge) for step, edge in steps.items()}
    return {step: seconds for step, seconds in taken.items() if seconds is not None}


def summary(move: MigrationRecord) -> str:
    """A move that is over, in one line."""
    tries = "1 attempt" if move.attempt == 1 else f"{move.attempt} attempts"
    if move.state is MigrationState.ROLLED_BACK:
        where = f"it stays on {move.source}"
        if move.reason in (Failure.SOURCE_ENDED, Failure.SOURCE_LOST):
            where = "nothing was left to move"
        return f"to {move.target} rolled back after {tries}: {move.reason}: {move.detail}; {where}"
    steps = step_seconds(move)
    total = steps.pop("total", 0.0)
    parts = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in steps.items() if seconds >= LEAST_TOLD_S)
    line = f"from {move.source} to {move.target} in {total:.1f} s" + (f" ({parts})" if parts else "")
    if move.archive_bytes:
        line += f", {move.archive_bytes / 2**20:.1f} MiB"
    if (again := move.repeated_s) is not None:
        line += f", {again:.1f} s of work repeated"
    return line if move.attempt == 1 else f"{line}, after {tries}"


@dataclass(slots=True)
class MovesSeen:
    """Looks at the port's records once a cycle. What it keeps is on record in the newest cycle, too."""

    migration: MigrationPort
    retries: Retries
    times: dict[str, MoveTimes] = field(default_factory=dict)
    _told: dict[str, None] = field(default_factory=dict)
    _rolled_back: dict[str, MigrationRecord] = field(default_factory=dict)
    """By pod: the last move of it, where that was taken back."""
    _known_until: float = 0.0

    def begin(self, times: Mapping[str, MoveTimes], at: float) -> None:
        """Go on from what an earlier daemon had on record: moves that ended before `at` have been told."""
        self.times = {**times, **self.times}
        self._known_until = at

    def look(self) -> list[Outcome]:
        """Moves that have ended since the last look."""
        outcomes = []
        for move in self.migration.records():
            ended_at = move.ended_at
            if ended_at is None:
                self._rolled_back.pop(move.pod, None)
            elif move.id not in self._told:
                self._told[move.id] = None
                if ended_at > self._known_until:
                    outcomes.append(self._ended(move))
        while len(self._told) > REMEMBERED:
            del self._told[next(iter(self._told))]
        while len(self._rolled_back) > REMEMBERED:
            del self._rolled_back[next(iter(self._rolled_back))]
        return outcomes

    def _ended(self, move: MigrationRecord) -> Outcome:
        if move.state is MigrationState.DONE:
            if move.method.keeps_progress:  # size is no matter where nothing is copied
                self.times[move.method] = self.times.get(move.method, MoveTimes()).learned(move)
            self._rolled_back.pop(move.pod, None)
            self.retries.moved(move.source, move.pod)
            return Outcome(Action.MOVED, move.pod, OutcomeStatus.DONE, summary(move), target=move.target, move=move)
        self._rolled_back[move.pod] = move
        if move.reason not in NOBODYS_FAULT:
            self.retries.leave_alone(move.source, move.pod, why_of(move), move.reached[move.state])
        # A pod that ended, or was deleted, during its move leaves nothing to move: nothing failed.
        status = OutcomeStatus.DROPPED if move.reason == Failure.SOURCE_ENDED else OutcomeStatus.FAILED
        return Outcome(Action.MOVED, move.pod, status, summary(move), target=move.target, move=move)

    def failure(self, pod: str, uid: str, since: float) -> str | None:
        """Why a pod's move, begun at or after an instant, was taken back; None: none was."""
        move = self._rolled_back.get(pod)
        if move is None or move.uid != uid or move.started_at < since:
            return None
        return why_of(move)


@dataclass(slots=True)
class Retries:
    """The one memory of what could not be done, since when, and of whom is therefore left alone for a while.

    By entry of the queue, who could not leave: a pod (its uid) of a rearrangement; of a drain its node, since one
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
        while len(self._left_alone) > MOST_LEFT_ALONE:
            del self._left_alone[next(iter(self._left_alone))]

    def left_alone(self, now: float) -> tuple[MoveBackoff, ...]:
        return tuple(each for each in self._left_alone.values() if now < each.until)
