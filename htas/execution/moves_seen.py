"""What became of moves: told once each, and learned from; a pod whose move was taken back is left alone for a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from htas.execution.retries import Retries
from htas.model.migrations import Failure, MigrationRecord, MigrationState
from htas.model.move_times import MoveTimes
from htas.model.outcomes import Action, Outcome, OutcomeStatus
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
START = (MigrationState.PREPARED, MigrationState.RESTORED)
"""What a method without a checkpoint does at first: a fresh copy is started, until it is Ready."""
REMEMBERED = 1000
"""Ids of moves that were told: ten times as many as the port remembers itself."""


NOBODYS_FAULT = frozenset({Failure.SOURCE_ENDED, Failure.SOURCE_LOST, Failure.INTERRUPTED})
"""Failures that say nothing of what another move of the pod would come to."""


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
    parts = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in steps.items())
    line = f"from {move.source} to {move.target} in {total:.1f} s ({parts})"
    if move.archive_bytes:
        line += f", {move.archive_bytes / 2**20:.1f} MiB"
    if move.detour:
        line += f", through the daemon ({move.detour})"
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
        return Outcome(Action.MOVED, move.pod, OutcomeStatus.FAILED, summary(move), target=move.target, move=move)

    def failure(self, pod: str, uid: str, since: float) -> str | None:
        """Why a pod's move, begun at or after an instant, was taken back; None: none was."""
        move = self._rolled_back.get(pod)
        if move is None or move.uid != uid or move.started_at < since:
            return None
        return why_of(move)
