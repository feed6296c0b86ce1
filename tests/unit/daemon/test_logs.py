"""What the daemon's logs tell of an exception, and what they keep to themselves."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
import structlog

from htas.config.serving import LoggingSetting
from htas.daemon.telemetry.logs import MOST_ALIKE, Alike, set_up_logs

FORMATS = ("json", "console")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Logs are the whole process's: other tests find them as they were."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("form", FORMATS)
def test_a_traceback_tells_where_and_no_local_variable(form: str) -> None:
    stream = io.StringIO()
    set_up_logs(LoggingSetting.model_validate({"format": form}), stream)
    try:
        _asks_with("tok" + "en-of-a-secret")
    except ValueError:
        structlog.get_logger().exception("defect")
    written = stream.getvalue()
    assert "defect" in written
    assert "_asks_with" in written
    assert "the kubelet said no" in written
    assert "token-of-a-secret" not in written


def _asks_with(token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    raise ValueError(f"the kubelet said no to {len(headers)} header")


def test_of_many_warnings_alike_sixty_are_told_in_a_minute() -> None:
    now = [0.0]
    alike = Alike(lambda: now[0])
    record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, "Invalid HTTP request received.", (), None)
    other = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, "another", (), None)
    told = logging.LogRecord("htas", logging.INFO, "", 0, {"event": "bind"}, (), None)
    assert [alike.filter(record) for _ in range(MOST_ALIKE + 5)] == [True] * MOST_ALIKE + [False] * 5
    assert alike.filter(other)
    assert all(alike.filter(told) for _ in range(1000)), "what is done is told as often as it is done"
    now[0] = 60.0
    assert alike.filter(record)
