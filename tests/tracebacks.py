"""Tracebacks that pytest can show."""

from __future__ import annotations

from types import TracebackType


def with_lines(error: BaseException) -> BaseException:
    """The error, each frame of its traceback with a line.

    CPython has instructions without one (the clearing of `as error`, the resuming of a generator). An exception that a
    signal raises there, as a time limit does, has None for a line, from which pytest 9.1 takes one and ends the whole
    run with an internal error. Such a frame is shown at its function's first line.
    """
    seen: BaseException | None = error
    while seen is not None:
        seen.__traceback__ = _lined(seen.__traceback__)
        seen = seen.__cause__ or seen.__context__
    return error


def _lined(traceback: TracebackType | None) -> TracebackType | None:
    if traceback is None:
        return None
    traceback.tb_next = _lined(traceback.tb_next)
    if line_of(traceback) is not None:
        return traceback
    frame = traceback.tb_frame
    return TracebackType(traceback.tb_next, frame, -1, frame.f_code.co_firstlineno)


def line_of(traceback: TracebackType) -> int | None:
    """The line of a traceback's frame: typeshed says that there is always one."""
    return traceback.tb_lineno
