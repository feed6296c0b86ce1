"""What became of moves: told once each, learned from, and held against the nodes that pods could not leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    timeouts: Timeouts
    times: dict[str, MoveTimes] = field(default_factory=dict)
    _told: dict[str, None] = field(default_factory=dict)
    _rolled_back: dict[str, MigrationRecord] = field(default_factory=dict)
    """By pod: the last move of it, where that was taken back."""
    _failed: dict[tuple[str, str], MoveBackoff] = field(default_factory=dict)
    """By node and pod. A wait that is over is kept: the next is twice as long."""
    _known_until: float = 0.0

    def begin(self, times: Mapping[str, MoveTimes], failed: Iterable[MoveBackoff], at: float) -> None:
        """Go on from what an earlier daemon had on record: moves that ended before `at` have been told."""
        self.times = {**times, **self.times}
        self._known_until = at
        for each in failed:
            self._failed.setdefault((each.node, each.pod), each)

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
            self._forget_waits(move)
            return Outcome(Action.MOVED, move.pod, OutcomeStatus.DONE, summary(move), target=move.target, move=move)
        self._rolled_back[move.pod] = move
        if move.reason not in NOBODYS_FAULT:
            self.leave_alone(move.source, move.pod, why_of(move), move.reached[move.state])
        return Outcome(Action.MOVED, move.pod, OutcomeStatus.FAILED, summary(move), target=move.target, move=move)

    def failure(self, pod: str, uid: str, since: float) -> str | None:
        """Why a pod's move, begun at or after an instant, was taken back; None: none was."""
        move = self._rolled_back.get(pod)
        if move is None or move.uid != uid or move.started_at < since:
            return None
        return why_of(move)

    def _forget_waits(self, done: MigrationRecord) -> None:
        """Of the pod that was moved, and of drains of its node, from which pods are moved after all.

        Others stay: that one pod could leave says nothing of a neighbour whose eviction a webhook refuses.
        """
        node, pod = done.source, done.pod
        self._failed = {
            key: failed
            for key, failed in self._failed.items()
            if key != (node, pod) and not (failed.node == node and failed.of_drain)
        }

    def leave_alone(self, node: str, pod: str, why: str, now: float, *, of_drain: bool = False) -> None:
        """Let a node and a pod be for a while: 5 minutes at first, twice as long each time, up to 30 (as flavours).

        Failures within a wait do not lengthen it: what was taken back is told by the one who asked for it, too.
        """
        known = self._failed.get((node, pod))
        if known is not None and now < known.until:
            self._failed[node, pod] = msgspec.structs.replace(known, of_drain=known.of_drain or of_drain)
            return
        wait_s = self.timeouts.backoff_initial_s
        if known is not None:
            wait_s = min(2 * (known.wait_s or wait_s), self.timeouts.backoff_max_s)
            del self._failed[node, pod]  # the newest come last
        self._failed[node, pod] = MoveBackoff(node, pod, why, now + wait_s, wait_s, of_drain)
        while len(self._failed) > REMEMBERED:
            del self._failed[next(iter(self._failed))]

    def failed(self, now: float) -> tuple[MoveBackoff, ...]:
        return tuple(failed for failed in self._failed.values() if now < failed.until)
