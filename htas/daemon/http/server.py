"""One listener: how long a client may take, how many there may be, and its certificate.

A client that sends half a request, or reads its answer a byte at a time, costs a descriptor and a few kilobytes. So
every step has a deadline, and when a new connection comes the oldest goes, first those without a whole request: a
probe, which sends its request at once, is answered while thousands dawdle.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import h11
import structlog
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from htas.ports import PermanentError
from htas.web.sent import STOPPING

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients of one listener may take, in seconds and in numbers."""

    connections: int = 128
    """At once: far below the 1,024 descriptors that a process commonly has."""
    request_s: float = 10.0
    """For the TLS handshake, and for a request from its first byte to the end of its head."""
    answer_s: float = 60.0
    """From there until the answer has been taken: a snapshot of 50,000 pods is some 30 MB."""
    leave_s: float = 1.5
    """When the listener ends: what is not over by then is cut off and its task cancelled, before uvicorn does that
    (after 3 s) and logs an error: a what-if of 33 s was one, at each end of a daemon.
    """


LIMITS = Limits()
CUT_OFF_S = 0.1
"""From there until tasks are cancelled: by then each knows that its client is gone, and ends without an answer."""
SHORT_OF = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
SAID_AGAIN_S = 600.0
"""A shortage that lasts is logged again then."""
MORE_DESCRIPTORS = "raise the limit of open files (ulimit -n), and look at what holds them (ls /proc/PID/fd)"
UNWANTED_BYTES = 2**20
"""Of a body that goes on after its request was answered (refused, say): 100 MB of them were read and thrown away."""


class Listener:
    """Serves an application in a thread of its own from `start` to `stop`.

    Raises PermanentError where it cannot listen, naming the setting `key`, or where the certificate cannot be read.
    """

    def __init__(
        self,
        address: tuple[str, int],
        app: ASGIApp,
        name: str,
        certificate: Certificate | None = None,
        limits: Limits = LIMITS,
        key: str = "http.listen",
    ) -> None:
        self._app = app
        self._socket = _listening(address, key)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            http=partial(PunctualProtocol, limits),  # type: ignore[arg-type] # uvicorn calls it, as it does a class
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # who asks says what it likes in X-Forwarded-For: another address, another scheme
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        config.load()
        config.ssl = certificate.context if certificate is not None else None
        self._server = _Server(config, limits.leave_s + CUT_OFF_S)
        self._limits = limits
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._server.server_state.connections)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[STOPPING] = lambda: self._server.should_exit
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if not self._server.should_exit:
                raise  # else its client was cut off, and an answer that took too long is no defect

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._socket.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=partial(_Loop, self._limits.request_s)) as runner:
            runner.run(self._server.serve([self._socket]))


class _Server(uvicorn.Server):
    """Ends what answers are still worked out, also those whose clients have gone, by itself and without a word."""

    def __init__(self, config: uvicorn.Config, patience_s: float) -> None:
        super().__init__(config)
        self._patience_s = patience_s

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ending = asyncio.get_running_loop().call_later(self._patience_s, self._cancel)
        await super().shutdown(sockets)
        ending.cancel()

    def _cancel(self) -> None:
        for task in list(self.server_state.tasks):
            task.cancel()


class PunctualProtocol(H11Protocol):
    """HTTP/1.1 with deadlines; uvicorn itself ends only connections that idle after an answer."""

    def __init__(self, limits: Limits, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits
        self._deadline: asyncio.TimerHandle | None = None
        self._unwanted = 0
        self.since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in H11Protocol
        _make_room(self.connections, self._limits.connections)
        super().connection_made(transport)
        self._within(self._limits.request_s)
        if len(self.connections) > self._limits.connections:
            self._abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._within(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        was, waited = self.cycle, self.waits
        super().data_received(data)
        if self.cycle is not was and waited:
            self._within(self._limits.answer_s)
        elif self._deadline is None:  # the first bytes of another request
            self._within(self._limits.request_s)
        if self.cycle is not None and self.waits and self.conn.their_state is h11.SEND_BODY:
            self._unwanted += len(data)
            if self._unwanted > UNWANTED_BYTES:
                self._abort()

    def on_response_complete(self) -> None:
        was, is_taken = self.cycle, not self.transport.get_write_buffer_size()
        if is_taken:  # else it is written, but not taken yet: no later request that was sent before gives more time
            self._within(None)
        super().on_response_complete()  # may begin with the next request, sent before this was answered
        if self.cycle is not was and is_taken:
            self._within(self._limits.answer_s)

    def shutdown(self) -> None:
        """The listener ends: what was asked is answered, a body that is half sent is not waited for."""
        super().shutdown()
        self.loop.call_later(self._limits.leave_s, self._abort)

    @property
    def waits(self) -> bool:
        """Whether no whole head of a request has come that is not answered yet."""
        return self.cycle is None or self.cycle.response_complete

    def drop(self) -> None:
        """End it for a newer one."""
        self.connections.discard(self)
        self._abort()

    def _within(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self._is_late) if seconds is not None else None

    def _is_late(self) -> None:
        """An answer that was taken in the meantime leaves the connection to uvicorn's limit on idling."""
        is_answered = self.cycle is not None and self.waits and not self.transport.get_write_buffer_size()
        if is_answered and not self.conn.trailing_data[0]:
            self._deadline = None
        else:
            self._abort()

    def _abort(self) -> None:
        self._deadline = None
        self.transport.abort()


def _make_room(connections: set[Any], most: int) -> None:
    """Where there are as many as may be, one goes: the oldest without a whole request, else the oldest of all."""
    if len(connections) >= most:
        ours = [each for each in connections if isinstance(each, PunctualProtocol)]
        min(ours, key=lambda each: (not each.waits, each.since)).drop()


class _Loop(asyncio.SelectorEventLoop):
    """asyncio allows a minute for a TLS handshake, during which a connection counts for nobody."""

    def __init__(self, handshake_s: float) -> None:
        super().__init__()
        self._handshake_s = handshake_s
        self._short_since: float | None = None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Log once that connections cannot be accepted: asyncio tries again each second, and logs each time."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in SHORT_OF:
            super().call_exception_handler(context)
            return
        now = self.time()
        if self._short_since is None or now - self._short_since > SAID_AGAIN_S:
            self._short_since = now
            log.error(
                "no connection can be accepted, tried again each second", error=error.strerror, remedy=MORE_DESCRIPTORS
            )

    async def create_server(self, *args: Any, **options: Any) -> asyncio.Server:
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = self._handshake_s
        return await super().create_server(*args, **options)


class Certificate:
    """A certificate and its key in PEM files, read again when they change: such are renewed every few weeks."""

    def __init__(self, cert_file: Path, key_file: Path) -> None:
        self._files = (cert_file, key_file)
        self._stamp = self._look()
        self.context = self._current = self._read()
        self.context.sni_callback = self._renew

    def _renew(self, connection: ssl.SSLObject, *_: object) -> None:
        """At each handshake; one that cannot be read leaves the former in place."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._current = self._read()
            except PermanentError as error:
                log.error("the certificate was not renewed, the old one stays", why=str(error))
        connection.context = self._current

    def _look(self) -> list[tuple[int, int]]:
        try:
            return [(stat.st_mtime_ns, stat.st_ino) for stat in (file.stat() for file in self._files)]
        except OSError:
            return []

    def _read(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            made.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            names = ", ".join(map(str, self._files))
            raise PermanentError(
                f"http.tls: {names}: {error.strerror or error}; name a certificate and its key"
            ) from error
        return made


def _listening(address: tuple[str, int], key: str) -> socket.socket:
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family)
    except OSError as error:
        raise PermanentError(f"{key}: {host}:{port}: {error.strerror}; name another port or address") from error
    # asyncio sets it on sockets whose protocol is named; without it the end of each answer waits 40 ms for an ACK.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made
