"""A sandbox world in a process (or thread) of its own: it lives on while daemons come and go."""

from __future__ import annotations

import contextlib
import socket
import socketserver
from pathlib import Path
from threading import Event, Lock, Thread

from htas.ports import PermanentError
from htas.sandbox.clock import PacedClock
from htas.sandbox.wire import answer
from htas.sandbox.world import World

TICK_S = 0.02
"""How often a paced world lets its events happen, in real seconds."""


class WorldServer:
    """Serves a world on a Unix socket. Calls are atomic: one at a time, each carried out whole.

    `speed` is how many seconds of the world pass in a real one; None: time moves only when a client moves it.
    """

    def __init__(self, world: World, address: Path, speed: float | None) -> None:
        self.world = world
        self.address = address
        self._paced = PacedClock(world.clock.now(), speed) if speed is not None else None
        world.clock.speed = speed if speed is not None else 1.0
        self._lock = Lock()
        self._stopping = Event()
        _refuse_what_is_no_stale_socket(address)
        outer = self

        class Connection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                # A client that was killed in mid-call leaves a broken pipe; its call was carried out whole.
                with contextlib.suppress(ConnectionError, BrokenPipeError):
                    for line in self.rfile:
                        self.wfile.write(outer.answer(line) + b"\n")

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

        starting = address.with_name(address.name + ".new")
        try:
            starting.unlink(missing_ok=True)
            self._server = Server(str(starting), Connection)
            starting.chmod(0o600)  # who may connect may do all that a cloud's administrator may
            # Under its own name only once it listens: whoever sees the socket can connect to it.
            starting.rename(address)
        except OSError as error:
            raise PermanentError(f"{address}: cannot listen there: {error}") from error
        self._threads = [Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)]
        if speed is not None:
            self._threads.append(Thread(target=self._pace, daemon=True))

    def answer(self, line: bytes) -> bytes:
        """One request's answer, at the present moment."""
        with self._lock:
            self._catch_up()
            return answer(self.world, line)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self.address.unlink(missing_ok=True)

    def _catch_up(self) -> None:
        if self._paced is not None:
            self.world.advance_to(self._paced.now())

    def _pace(self) -> None:
        while not self._stopping.wait(TICK_S):
            with self._lock:
                self._catch_up()


def _refuse_what_is_no_stale_socket(path: Path) -> None:
    """Raise PermanentError where a file or a living world would be replaced."""
    if not path.exists():
        return
    if not path.is_socket():
        raise PermanentError(f"{path}: is no socket; name another place, this one is not overwritten")
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(str(path))
        raise PermanentError(f"{path}: a world listens there already; end it first or name another place")
