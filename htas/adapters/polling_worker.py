"""Looking after moves in a thread of its own: again and again, until it is closed."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

import structlog

from htas.ports import HTASError

log = structlog.get_logger()


class PollingWorker:
    """Repeats `look`, and `rest` in between. What fails is told and tried again: it never ends the thread."""

    def __init__(self, name: str, look: Callable[[], None], rest: Callable[[], None], closing: Event) -> None:
        self._look = look
        self._rest = rest
        self._closing = closing
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def begin(self, first: Callable[[], None]) -> None:
        """Do what cannot wait before this returns, then go on beside the caller."""
        try:
            first()
        except HTASError as error:
            log.warning("moves cannot be looked for, tried again", error=str(error))
        self._thread.start()

    def close(self) -> None:
        """End after the present look, which is waited for five seconds."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._look()
            except HTASError as error:
                log.warning("moves cannot be looked for, tried again", error=str(error))
            except Exception:
                log.exception("moves failed on a defect of htas, tried again")
            self._rest()
