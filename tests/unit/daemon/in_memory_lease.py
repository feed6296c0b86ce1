"""LeasePort in memory: the second of two writers over the same version fails, as the API server has it."""

from __future__ import annotations

import msgspec

from htas.ports import ConflictError, LeaseRecord, TransientError


class InMemoryLease:
    """Shared by candidates. `lose_requests` and `lose_answers` count calls that fail before and after their effect."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.lose_requests = 0
        self.lose_answers = 0
        self._version = 0

    def read(self) -> LeaseRecord | None:
        self._maybe_lose("lose_requests")
        return self.record

    def write(self, record: LeaseRecord) -> LeaseRecord:
        self._maybe_lose("lose_requests")
        if record.version != (self.record.version if self.record is not None else ""):
            raise ConflictError("somebody else was first")
        self._version += 1
        self.record = msgspec.structs.replace(record, version=str(self._version))
        self._maybe_lose("lose_answers")
        return self.record

    def delete(self, record: LeaseRecord) -> None:
        if self.record is not None and self.record.version != record.version:
            raise ConflictError("somebody else was first")
        self.record = None

    def _maybe_lose(self, kind: str) -> None:
        left = getattr(self, kind)
        if left:
            setattr(self, kind, left - 1)
            raise TransientError("the connection was lost")
