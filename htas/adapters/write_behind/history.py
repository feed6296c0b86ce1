"""Shipping history: many entries in one call, and none that stops the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import structlog

from htas.adapters.write_behind.entries import JournalEntry, Kind, in_calls, write_history
from htas.adapters.write_behind.outbox import MAY_BE_DROPPED
from htas.adapters.write_behind.shipping import Shipper
from htas.adapters.write_behind.state import Lane
from htas.model.record import Run
from htas.ports import PermanentError, RefusedError, TransientError

log = structlog.get_logger()

BATCH, BATCH_BYTES = 200, 1 << 20
"""Entries, and bytes of them, that are read at once: some 5,000 profile rows, or one large cycle."""
IN_A_ROW = 3
"""So many records one after another that the store refuses for good are a fault of theirs; more is one of the store."""


class HistoryShipper(Shipper):
    """A cycle or profile row that the store refuses for good is dropped, with a warning, so that the rest goes on.

    A store that refuses everything (its tables are gone) must not cost the whole buffer: beyond `IN_A_ROW` it counts as
    away, and each further record is given up only after a pause.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._refused: Counter[Kind] = Counter()
        """Records refused one after another, of each kind: a table may be gone while the others are there."""
        self.stuck = ""
        """What is wrong with a run that the store refuses, though it takes the rest; it stays until it is taken."""

    def _ship(self) -> None:
        self.stuck = ""
        for kind, entries in in_calls(self._outbox.oldest(Lane.HISTORY, BATCH, BATCH_BYTES)):
            self._write(kind, entries)
        if self.stuck:
            raise TransientError(self.stuck)

    def _write(self, kind: Kind, entries: Sequence[JournalEntry]) -> None:
        try:
            self._call(lambda store: write_history(store, kind, entries))
        except RefusedError:
            raise  # a matter of rights, or of tables: nothing is wrong with the record
        except PermanentError as error:
            if len(entries) == 1:
                self._give_up(entries[0], error)
            else:
                for entry in entries:
                    self._write(kind, [entry])
        else:
            self._refused[kind] = 0
            self._shipped(entries)

    def _give_up(self, entry: JournalEntry, error: PermanentError) -> None:
        if entry.kind not in MAY_BE_DROPPED:
            self.stuck = f"it refuses a run ({', '.join(run.uid for run in entry.holds(list[Run]))}): {error}"
            return
        self._refused[entry.kind] += 1
        self._outbox.dropped += self._outbox.remove([entry.number])
        log.warning("a record cannot be written to the store and is dropped", kind=entry.kind, error=str(error))
        if self._refused[entry.kind] > IN_A_ROW:
            raise TransientError(f"it refuses one record after another: {error}") from error
