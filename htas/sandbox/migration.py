"""Moves in the sandbox: the pod runs on at its source until it runs at the target.

A move takes T = C ÷ B + K (HTAS paper 5.3): the image's size (here the pod's memory request) over the bandwidth, and
the time to end the pod at the source. Its states are those of real moves; so are attempts, roll-back and what is done
twice: the source's work since the dump, by which the pod ends later. A service that is replaced starts at the target
instead, as long as any pod starts, and ends at the source within its own grace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from htas.model.migrations import ENDED_KEPT, Failure, MigrationRecord, MigrationState, Refusal
from htas.model.moves import MigrationMethod, Move
from htas.model.pods import Phase, Pod, WorkKind
from htas.ports import ConflictError, HTASError, MoveRefusedError, NotFoundError, TransientError
from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.cluster import SandboxCluster
from htas.sandbox.faults import Faults
from htas.sandbox.ledger import Ledger
from htas.sandbox.pod_life import START_S

BANDWIDTH_BYTES_PER_S = 150_000_000
"""1,200 Mbit/s per machine (HTAS paper 6.2)."""
TERMINATION_S = 2.0
"""K: to end the pod at its source."""
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast images are written, copied and read, in bytes a second; None: at once, as in the paper's formula.

    Of real nodes: 500 MB were dumped in 3.3 to 3.6 s and restored in 2.1 to 3.8 s (docs/migration.md).
    """

    copy: float = BANDWIDTH_BYTES_PER_S
    dump: float | None = None
    restore: float | None = None


class SandboxMigration:
    """Implements MigrationPort.

    Faults can be arranged for `migrate` (the call itself), `checkpoint`, `transfer` and `restore`: a TransientError
    costs one attempt, any other ends the move.
    """

    def __init__(
        self,
        clock: VirtualClock,
        queue: EventQueue,
        cluster: SandboxCluster,
        ledger: Ledger,
        *,
        rates: Rates | None = None,
        termination_s: float = TERMINATION_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._clock = clock
        self._queue = queue
        self._cluster = cluster
        self._ledger = ledger
        self.rates = rates or Rates()
        self.termination_s = termination_s
        self.attempts = attempts
        self.faults = Faults()
        self._serial = 0
        self._moves: dict[str, MigrationRecord] = {}
        self._ended: deque[MigrationRecord] = deque(maxlen=ENDED_KEPT)

    def start(self, pod: Pod, target: str, method: MigrationMethod = MigrationMethod.CHECKPOINT) -> None:
        self.faults.strike("migrate")
        if pod.key in self._moves:
            return
        present = self._cluster.pod(pod.key)
        if present is None or present.uid != pod.uid:
            raise NotFoundError(f"pod {pod.key} is gone")
        if present.node == target:
            return
        if present.phase is not Phase.RUNNING or present.node is None or present.is_terminating:
            raise MoveRefusedError(Refusal.NOT_RUNNING, f"pod {pod.key} does not run, or not for long")
        if method is MigrationMethod.REPLACE and present.kind is WorkKind.BATCH:
            raise MoveRefusedError(Refusal.BEGINS_AGAIN, f"pod {pod.key} is batch work, which would begin again")
        self._cluster.reserve(target, pod.key, present.requests)
        self._serial += 1
        self._moves[pod.key] = MigrationRecord.prepared(
            f"m{self._serial}", present, present.node, target, method, self._clock.now()
        )
        self._attempt(pod.key)

    def moving(self) -> Sequence[Move]:
        return tuple(each.move for each in self._moves.values())

    def records(self) -> Sequence[MigrationRecord]:
        return (*self._moves.values(), *self._ended)

    # The steps of an attempt. Each ends by itself or by what went missing meanwhile.

    def _attempt(self, key: str) -> None:
        if _is_fresh(self._moves[key]):
            self._after(START_S, key, self._restored)
        else:
            self._dump(key)

    def _dump(self, key: str) -> None:
        move = self._moves[key] = msgspec.structs.replace(self._moves[key], dumped_at=self._clock.now())
        self._after(_seconds(move, self.rates.dump), key, self._dumped)

    def _dumped(self, key: str) -> None:
        if self._goes_on(key, "checkpoint", Failure.CHECKPOINT_FAILED):
            move = self._advance(key, MigrationState.CHECKPOINTED, archive_bytes=self._moves[key].memory_bytes)
            self._after(_seconds(move, self.rates.copy), key, self._copied)

    def _copied(self, key: str) -> None:
        if self._goes_on(key, "transfer", Failure.TRANSFER_FAILED):
            move = self._advance(key, MigrationState.TRANSFERRED)
            self._after(_seconds(move, self.rates.restore), key, self._restored)

    def _restored(self, key: str) -> None:
        if self._goes_on(key, "restore", Failure.RESTORE_FAILED):
            move = self._advance(key, MigrationState.RESTORED)
            self._cluster.repeat(key, move.repeated_s or 0.0)
            self._advance(key, MigrationState.SWITCHED)
            self._after(self._end_s(move), key, self._source_ended)

    def _source_ended(self, key: str) -> None:
        if not self._goes_on(key, "", Failure.SWITCH_FAILED):
            return
        move = self._moves[key]
        self._cluster.unreserve(key)
        self._cluster.relocate(key, move.target, move.reached[MigrationState.RESTORED] if _is_fresh(move) else None)
        self._ledger.migrations += 1
        self._ledger.work_repeated_s += move.repeated_s or 0.0
        self._end(key, MigrationState.DONE)

    # What steps have in common.

    def _after(self, seconds: float, key: str, step: Callable[[str], None]) -> None:
        self._queue.after(seconds, partial(self._if_current, key, self._moves[key].id, step))

    def _if_current(self, key: str, move_id: str, step: Callable[[str], None]) -> None:
        move = self._moves.get(key)
        if move is not None and move.id == move_id:
            step(key)

    def _goes_on(self, key: str, step: str, failure: Failure) -> bool:
        """Whether a step succeeded; else the next attempt has begun, or the move was taken back."""
        move = self._moves[key]
        lost = self._lost(move)
        if lost is not None:
            self._roll_back(key, *lost)
            return False
        try:
            self.faults.strike(step)
        except TransientError as error:
            if move.attempt >= self.attempts:
                self._roll_back(key, failure, str(error))
            else:
                self._advance(key, MigrationState.PREPARED, reason=failure.value, detail=str(error))
                self._attempt(key)
            return False
        except HTASError as error:
            self._roll_back(key, failure, str(error))
            return False
        return True

    def _lost(self, move: MigrationRecord) -> tuple[Failure, str] | None:
        """What went missing, if it makes the move pointless: the pod, or the target."""
        pod = self._cluster.pod(move.pod)
        if pod is None or pod.uid != move.uid or pod.is_terminating:
            return Failure.SOURCE_ENDED, f"pod {move.pod} ended or was deleted"
        try:
            self._cluster.unreserve(move.pod)
            self._cluster.reserve(move.target, move.pod, pod.requests)
        except (ConflictError, NotFoundError) as error:
            return Failure.TARGET_LOST, str(error)
        return None

    def _roll_back(self, key: str, failure: Failure, detail: str) -> None:
        move = self._moves[key]
        self._cluster.unreserve(key)
        if MigrationState.RESTORED in move.reached:
            self._cluster.repeat(key, -(move.repeated_s or 0.0))
        self._end(key, MigrationState.ROLLED_BACK, reason=failure.value, detail=detail)

    def _end(self, key: str, state: MigrationState, **changes: object) -> None:
        self._ended.append(self._advance(key, state, **changes))
        del self._moves[key]

    def _advance(self, key: str, state: MigrationState, **changes: object) -> MigrationRecord:
        self._moves[key] = self._moves[key].advanced(state, self._clock.now(), **changes)
        return self._moves[key]

    def _end_s(self, move: MigrationRecord) -> float:
        """K; what serves until it ends has its own grace for that."""
        pod = self._cluster.pod(move.pod)
        return pod.grace_s if pod is not None and _is_fresh(move) else self.termination_s


def _is_fresh(move: MigrationRecord) -> bool:
    return move.method is MigrationMethod.REPLACE


def _seconds(move: MigrationRecord, rate: float | None) -> float:
    return 0.0 if rate is None else move.memory_bytes / rate
