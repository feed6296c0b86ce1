"""The remote store: opened when it is first needed, and again until that succeeds."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from htas.ports import StorePort


class Remote:
    """Opens the store once, by whichever thread needs it first. Safe from several threads."""

    def __init__(self, open_remote: Callable[[], StorePort]) -> None:
        self._open = open_remote
        self._lock = Lock()
        self._store: StorePort | None = None

    def get(self) -> StorePort:
        """The open store; raises what opening it raises, and tries again the next time."""
        with self._lock:
            if self._store is None:
                self._store = self._open()
            return self._store

    def close(self) -> None:
        """Close it if it was opened. A thread that is opening it is waited for."""
        with self._lock:
            if self._store is not None:
                self._store.close()
