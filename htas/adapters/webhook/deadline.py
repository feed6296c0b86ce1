"""An end for a whole request: timeouts of sockets begin anew with each byte, and there may be one every second."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType

_present = threading.local()


class Deadline:
    """Cuts off what its thread has connected to meanwhile when its time is over: calls that wait there then raise."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._lines: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        _present.deadline = self
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        _present.deadline = None
        with self._lock:
            for line in self._lines:
                line.close()
            self._lines.clear()

    def _cut(self) -> None:
        with self._lock:
            self.is_over = True
            for line in self._lines:
                _shut(line)

    def hold(self, connected: socket.socket) -> None:
        """By another descriptor: TLS takes the socket's own away, and a handshake may take as long as an answer."""
        with self._lock:
            self._lines.append(connected.dup())
            if self.is_over:
                _shut(connected)


def held(connected: socket.socket) -> socket.socket:
    """A new connection, under the deadline of this thread if it has one."""
    deadline: Deadline | None = getattr(_present, "deadline", None)
    if deadline is not None:
        deadline.hold(connected)
    return connected


def _shut(line: socket.socket) -> None:
    with suppress(OSError):  # it has ended by itself
        line.shutdown(socket.SHUT_RDWR)
