"""A proxy before one Cassandra node that loses answers: the request is done, and the connection breaks instead."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock, Thread


class AnswerCutter:
    """Listens at `port` from its making to `stop`. After `lose_next` one answer is lost with its connection."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.lost = 0
        self._is_armed = False
        self._target, self._lock = target, Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        Thread(target=self._accept, name="cutter", daemon=True).start()

    def lose_next(self) -> None:
        with self._lock:
            self._is_armed = True

    def stop(self) -> None:
        self._listener.close()
        for each in list(self._open):
            _broken(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            self._open |= {client, server}
            Thread(target=self._pass, args=(client, server, False), daemon=True).start()
            Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, may_lose: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if may_lose and self._loses():
                    break
                target.sendall(data)
        _broken(source)
        _broken(target)

    def _loses(self) -> bool:
        with self._lock:
            is_lost, self._is_armed = self._is_armed, False
            self.lost += is_lost
            return is_lost


def _broken(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
