"""Logs: one line for each event on standard error, for people on a terminal or as JSON for machines."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import Processor

from htas.config.serving import LoggingSetting

QUIET = {
    "cassandra": logging.CRITICAL,
    "urllib3": logging.ERROR,
    "uvicorn": logging.WARNING,
}
"""Libraries that tell of their routine; what goes wrong in our use of them, we say ourselves."""


MOST_ALIKE = 60
"""Warnings and errors of one text in a minute; half-open connections once brought 175,000 lines in 70 s."""
WINDOW_S = 60.0


class Alike(logging.Filter):
    """Lets so many warnings and errors of one text pass in a minute, and then says how many were left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since = clock()
        self._counts: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        now = self._clock()
        if now - self._since >= WINDOW_S:
            self._since = now
            self._counts.clear()
        text = str(record.msg.get("event") if isinstance(record.msg, dict) else record.msg)
        key = f"{record.name} {text[:200]}"
        self._counts[key] += 1
        if self._counts[key] == MOST_ALIKE and isinstance(record.msg, dict):
            record.msg = {**record.msg, "more": f"like this are left out for up to {WINDOW_S:g} s"}
        return self._counts[key] <= MOST_ALIKE


def set_up_logs(setting: LoggingSetting, stream: TextIO | None = None) -> None:
    """Write logs to `stream` (standard error) as configured; may be called again with other settings.

    Tracebacks are without local variables, which structlog would show: those of a request hold its token.
    """
    stream = stream or sys.stderr
    is_json = setting.format == "json" or (setting.format == "auto" and not stream.isatty())
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(setting.level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    last: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if is_json:
        told = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
        last += [told, structlog.processors.JSONRenderer()]
    else:
        shown = structlog.dev.RichTracebackFormatter(show_locals=False)
        last.append(structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=shown))
    handler = logging.StreamHandler(stream)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=last, foreign_pre_chain=shared))
    handler.addFilter(Alike())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(setting.level.upper())
    for name, level in QUIET.items():
        logging.getLogger(name).setLevel(level)
