"""Logs: one line for each event on standard error, for people on a terminal or as JSON for machines."""

from __future__ import annotations

import logging
import sys
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
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(setting.level.upper())
    for name, level in QUIET.items():
        logging.getLogger(name).setLevel(level)
