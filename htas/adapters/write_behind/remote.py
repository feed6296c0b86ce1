"""The remote store: opened when it is first needed, and again until that succeeds."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from htas.ports import HTASError, RefusedError, StorePort, TransientError


class Remote:
    """Opens the store once, by whichever thread needs it first. Safe from several threads."""

    def __init__(self, open_remote: Callable[[], StorePort]) -> None:
        self._open = open_remote
        self._lock = Lock()
        self._store: StorePort | None = None

    def get(self) -> StorePort:
        """The open store; raises what opening it raises, and tries again the next time.

        What is wrong for good then (its tables are of another version, say) is a RefusedError: no record is at fault.
        """
        with self._lock:
            if self._store is None:
                try:
                    self._store = self._open()
                except (TransientError, RefusedError):
                    raise
                except HTASError as error:
                    raise RefusedError(str(error)) from error
            return self._store

    def close(self) -> None:
        """Close it if it was opened. A thread that is opening it is waited for."""
        with self._lock:
            if self._store is not None:
                self._store.close()
