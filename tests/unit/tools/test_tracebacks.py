"""A failure that struck between two lines is shown like any other."""

from __future__ import annotations

from types import TracebackType

import pytest

from tests.tracebacks import line_of, with_lines


def _fails() -> None:
    try:
        raise KeyError("first")
    except KeyError as first:
        raise ValueError("in time") from first


LINELESS = next(2 * at for at, (line, *_) in enumerate(_fails.__code__.co_positions()) if line is None)
"""An instruction of `_fails` without a line, as CPython 3.11 makes one where the name `first` is cleared."""


def _without_a_line(error: ValueError) -> TracebackType:
    """The error's traceback, as if it had struck at that instruction."""
    outer = error.__traceback__
    assert outer is not None and outer.tb_next is not None
    struck = TracebackType(None, outer.tb_next.tb_frame, LINELESS, -1)
    assert line_of(struck) is None, "the case that pytest cannot show"
    return TracebackType(struck, outer.tb_frame, outer.tb_lasti, outer.tb_lineno)


def test_a_frame_between_two_lines_is_shown_at_its_functions_first() -> None:
    with pytest.raises(ValueError) as failure:
        _fails()
    error = failure.value.with_traceback(_without_a_line(failure.value))
    shown = str(pytest.ExceptionInfo.from_exception(with_lines(error)).getrepr())
    assert "ValueError: in time" in shown
    assert f"{__file__.rsplit('/', 1)[-1]}:{_fails.__code__.co_firstlineno}" in shown


def test_the_cause_is_mended_too() -> None:
    with pytest.raises(ValueError) as failure:
        _fails()
    cause = failure.value.with_traceback(_without_a_line(failure.value))
    with pytest.raises(RuntimeError) as later:
        raise RuntimeError("of it") from cause
    shown = str(pytest.ExceptionInfo.from_exception(with_lines(later.value)).getrepr())
    assert "ValueError: in time" in shown and "RuntimeError: of it" in shown
